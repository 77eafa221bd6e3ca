"""Killed jobs and Snakemake processes: the same command continues to the same results."""

import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest

from inherited import ignoring

pytestmark = [pytest.mark.workflow, pytest.mark.faults]
GROUP = "Runs"
LATER = "wait until the other run has ended, and run the same command again"
MOST = 10
"""Injections until one comes at a time at which there is something to tell."""
LONGEST = 60.0
"""Seconds within which a run must start its jobs."""


def long(workspace):
    """A configuration whose jobs take seconds, and write checkpoints continuously."""
    deep, layers = workspace.deep, workspace.layers
    for experiment in deep.values():
        experiment["training"]["steps"] = 120_000
        experiment["record"]["every"] = 400
        experiment["training"]["learning_rate"] = 1e-4
    deep["step_size"]["sweep"] = {"training.learning_rate": [1e-4, 5e-5]}
    workspace.configure("deep_linear", deep)
    workspace.configure("layer_dynamics", layers)
    (workspace.path / "often.yaml").write_text("checkpoint_seconds: 0\n")
    return ("cells", "--config", "settings=often.yaml")


def started(workspace, command) -> subprocess.Popen:
    with ignoring():
        return subprocess.Popen(
            workspace.command(*command), cwd=workspace.path, env=workspace.environment(),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip


def jobs_of(controller: subprocess.Popen) -> list[psutil.Process]:
    """The worker processes of a run, once there are some."""
    deadline = time.monotonic() + LONGEST
    while controller.poll() is None and time.monotonic() < deadline:
        children = psutil.Process(controller.pid).children(recursive=True)
        workers = []
        for child in children:
            try:
                line = " ".join(child.cmdline())
            except psutil.Error:
                continue
            if "neuralrace.workflow.worker" in line:
                workers.append(child)
        if workers:
            return workers
        time.sleep(0.02)
    return []


def logs(workspace) -> str:
    """The logs of all jobs so far."""
    return "".join(
        path.read_text() for path in sorted(workspace.path.glob("results/logs/**/*.log"))
    )


def struck(workspace, command, strike, wait, at_work) -> str:
    """Starts a run and kills it; returns what it printed. Repeats a run that ended too early."""
    while True:
        before = logs(workspace)
        controller = started(workspace, command)
        jobs = jobs_of(controller)
        while at_work and controller.poll() is None and logs(workspace) in ("", before):
            time.sleep(0.02)
        time.sleep(wait)
        if hit := controller.poll() is None and bool(jobs):
            strike(controller, [job for job in jobs if job.is_running()] or jobs)
        printed = controller.communicate(timeout=LONGEST)[0]
        if hit:
            return printed
        shutil.rmtree(workspace.path / "results")
        wait /= 2  # the machine is fast


def kill_job(controller, jobs) -> None:
    with suppress(psutil.NoSuchProcess):  # the job has just ended
        jobs[0].kill()


def kill_controller(controller, jobs) -> None:
    controller.kill()


def kill_all(controller, jobs) -> None:
    os.killpg(controller.pid, signal.SIGKILL)


def interrupt(controller, jobs) -> None:
    os.killpg(controller.pid, signal.SIGINT)


def ask_to_end(controller, jobs) -> None:
    controller.terminate()


@pytest.fixture(scope="module")
def truth(building):
    """Results of a run without faults."""
    workspace = building("truth")
    workspace.snakemake(*long(workspace))
    return results(workspace.path)


def results(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.glob("results/*/*/*/*.nc")
    }


@pytest.mark.parametrize(
    ("kind", "strike", "message"),
    [
        ("a job is killed (SIGKILL)", kill_job, "A job failed; its message is above"),
        ("Snakemake is killed, its jobs are not (SIGKILL)", kill_controller, ""),
        ("Snakemake and its jobs are killed (SIGKILL)", kill_all, ""),
        ("Ctrl-C", interrupt, "stopped by SIGINT"),
        ("SIGTERM to Snakemake", ask_to_end, ""),
    ],
)
def test_the_same_command_continues(workspace, truth, injecting, kind, strike, message, repeat):
    command, random = long(workspace), np.random.default_rng(len(kind))
    with injecting(kind, group=GROUP, chance=True) as fault:
        turn, printed = 0, ""
        while turn < repeat or (message not in printed and turn < MOST):
            with fault.injection():
                # every second time while jobs compute, else at any time
                wait = random.uniform(0, 1 if turn % 2 else 4)
                printed += struck(workspace, command, strike, wait, at_work=bool(turn % 2))
            turn += 1
        final = workspace.snakemake(*command)
        made = results(workspace.path)
        fault.lost += len(truth.keys() - made.keys())
        fault.wrong += sum(made.get(name) != content for name, content in truth.items())
        fault.output(printed)
        fault.output(final)
        assert not list(workspace.path.rglob(".*.tmp"))
        assert message in printed
        fault.message = message or "none: the next run resumes"


EDITED = {
    "a metric": (
        "metrics/dataset.py",
        "values |= _measured(name, cell)",
        "values |= {k: v.copy(data=v.values * 2) for k, v in _measured(name, cell).items()}",
        "metrics.nc",
    ),
    "what sets up the compiler": (
        "training/environment.py",
        'FLAGS = "--xla_gpu_deterministic_ops=true"',
        'FLAGS = "--xla_cpu_enable_fast_math=true --xla_cpu_fast_math_honor_nans=false"',
        "*.nc",
    ),
    "what gathers arrays into a file": (
        "results/schema.py",
        "variables[name] = ((*RUN_AXES, *declared.dims), values, described)",
        "variables[name] = ((*RUN_AXES, *declared.dims), values + values, described)",
        "*.nc",
    ),
}
"""File of the library, its text, the temporary replacement, and the results to compute again."""
TOO_LATE = re.compile("was edited while this job ran|edited after this run")
"""What is said of an edit; which of the two depends on when it comes."""


@pytest.mark.parametrize("what", EDITED)
def test_code_that_is_edited_and_restored_gives_no_wrong_results(copied, injecting, what, repeat):
    name, right, wrong, remade = EDITED[what]
    workspace, random = copied, np.random.default_rng(3)
    true, path = results(workspace.path), workspace.path / "src/neuralrace" / name
    text = path.read_text()
    assert right in text
    turn, printed, kind = 0, "", f"code is edited during a run, and edited back: {what}"
    with injecting(kind, group=GROUP, chance=True) as fault:
        while turn < repeat or (not TOO_LATE.search(printed) and turn < MOST):
            turn += 1
            for file in workspace.path.glob(f"results/*/*/*/{remade}"):
                file.unlink()
            with fault.injection():
                controller = started(workspace, ("cells",))
                jobs_of(controller)
                time.sleep(random.uniform(0, 1))
                path.write_text(text.replace(right, wrong))
                time.sleep(random.uniform(0, 2))
                path.write_text(text)
                printed += controller.communicate(timeout=LONGEST)[0]
                made = results(workspace.path)
                fault.wrong += sum(true[name] != content for name, content in made.items())
                workspace.snakemake("cells")
            now = results(workspace.path)
            fault.lost += len(true.keys() - now.keys())
            fault.wrong += sum(now.get(name) != content for name, content in true.items())
        assert TOO_LATE.search(printed)
        fault.message = "was edited while this job ran ...; nothing was written"


def test_configuration_that_is_edited_during_a_run_is_for_the_next_run(building, injecting):
    workspace = building("configured")
    workspace.snakemake("cells")
    true, kind = results(workspace.path), "the configuration is edited during a run"
    changed = workspace.deep
    changed["time_to_learn"]["training"]["learning_rate"] = 0.01
    with injecting(kind, group=GROUP) as fault, fault.injection():
        for file in workspace.path.glob("results/*/*/*/*.nc"):
            file.unlink()
        controller = started(workspace, ("cells",))
        jobs_of(controller)
        workspace.configure("deep_linear", changed)
        controller.communicate(timeout=LONGEST)
        fault.wrong += results(workspace.path) != true
        planned = workspace.planned_files("cells")
        cell = "results/deep_linear/time_to_learn/main"
        assert planned == {f"{cell}/{name}.nc" for name in ("trajectory", "theory", "metrics")}
        workspace.snakemake("cells")
        fault.wrong += "verified" not in workspace.snakemake("verify")
        fault.message = "nothing: a run makes what it was planned for"


def test_two_clones_on_one_results_folder_are_noticed(building, injecting, tmp_path):
    clones = [building("clone"), building("other-clone")]
    shared = tmp_path / "shared"
    kind = "two clones on one results folder"
    with injecting(kind, group=GROUP, recovers=LATER) as fault, fault.injection():
        command = ("cells", "--config", f"results={shared}")
        both = [started(clone, command) for clone in clones]
        printed = [each.communicate(timeout=2 * LONGEST)[0] for each in both]
        status = sorted(each.returncode for each in both)
        assert status[0] == 0
        refused = [text for text in printed if "another run is at work in this folder" in text]
        assert len(refused) == status.count(1)
        clones[0].snakemake(*command)
        verified = clones[0].snakemake("verify", "--config", f"results={shared}")
        fault.wrong += "verified" not in verified
        fault.message = "error: FOLDER: another run is at work in this folder; ..."


def test_two_runs_at_once_compute_everything_once(building, injecting):
    workspace = building("twice")
    with (
        injecting("two runs at once in one results folder", group=GROUP, recovers=LATER) as fault,
        fault.injection(),
    ):
        both = [started(workspace, ("cells",)) for _ in range(2)]
        printed = [each.communicate(timeout=2 * LONGEST)[0] for each in both]
        status = sorted(each.returncode for each in both)
        assert status[0] == 0
        workspace.snakemake("cells")
        fault.wrong += "verified" not in workspace.snakemake("verify")
        fault.message = "error: results: another run is at work in this folder; ..."
        refused = [text for text in printed if "another run is at work in this folder" in text]
        assert len(refused) == status.count(1)
