"""The workflow on a real SLURM: the same results in few jobs, and nothing lost by its faults."""

import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.workflow]

CELL = "layer_dynamics/glorot_moments/main"
TARGET, TRAJECTORY = f"results/{CELL}/metrics.nc", f"results/{CELL}/trajectory.nc"
FIGURES = "results/figures/deep_linear/time_to_learn"
KINDS = {".nc", ".png", ".pdf", ".svg", ".csv", ".md"}


def made(path):
    """All that a run is for, by name."""
    files = [*(path / "results").rglob("*"), *(path / "figures").rglob("*")]
    return {
        str(file.relative_to(path)): file.read_bytes() for file in files if file.suffix in KINDS
    }


@contextmanager
def training(submitting, seconds, target=TARGET):
    """A cell that trains long; gives a function that tells whether its result is as it should be.

    It rests between its steps, so that it takes these seconds and little more on any machine. What
    it should be is made meanwhile in a copy, by the same command without SLURM and faults.
    """
    steps = 400_000
    step = "            done += made\n"
    rest = f"            __import__('time').sleep(made / steps * {seconds})\n"
    submitting.replace("src/neuralrace/training/trainer.py", step, step + rest)
    changed = submitting.workspace.layers
    changed["glorot_moments"]["training"] = {"learning_rate": 1e-6, "steps": steps}
    changed["glorot_moments"]["record"]["every"] = steps // 20
    submitting.workspace.configure("layer_dynamics", changed)
    alone = submitting.path.with_name(f"{submitting.path.name}_alone")
    copy = replace(submitting.workspace, path=alone, cores=1)
    shutil.copytree(submitting.path, copy.path)
    with subprocess.Popen(
        copy.command(target), cwd=copy.path, env=copy.environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as undisturbed:  # fmt: skip

        def sound():
            assert undisturbed.wait() == 0
            return made(copy.path) == made(submitting.path)

        yield sound


def told(fault, submitting, run):
    """The message of a job that was ended by a signal and handed to SLURM again."""
    first, _ = run.submitted
    assert "Trying to restart job" in run.text
    fault.message = "stopped by SIGTERM at step N; the same command continues from the checkpoint"
    (log,) = submitting.path.glob(f".snakemake/slurm_logs/*/{first}.log")
    assert re.search(fault.message.replace(" N;", r" \d+;"), log.read_text()), log.read_text()


def continued(submitting):
    """Whether the job went on from a checkpoint."""
    return "continuing at step" in submitting.log()


def test_the_results_are_those_of_one_machine_in_few_jobs(submitting, finished):
    targets = ("metrics", "claims", "figures/deep_linear/time_to_learn.png")
    with submitting.run(*targets) as run:
        run.succeeds()
    assert len(run.submitted) == 1  # one for all cells
    assert made(submitting.path) == made(finished.path)


def test_a_job_asks_for_what_its_cells_need(submitting):
    submitting.replace("profiles/slurm/nodes.yaml", "gpus: 0", "gpus: 1")
    submitting.replace(  # small cells, too, are worth a GPU
        "src/neuralrace/config/cost.py",
        "GPU_COMPILE = 2e12, 5e-6, 40.0",
        "GPU_COMPILE = 2e12, 0, 0",
    )
    with submitting.run(TARGET) as run:
        told = submitting.cluster.job(run.job(1))
        assert told["TresPerJob"] == "gres:gpu:1"
        assert told["MinMemoryNode"] == "1400M"
        assert told["NumCPUs"] == "1"
        assert told["Partition"] == "main"
        assert told["Account"] == "mine"
        submitting.cluster.ask("scancel", run.job(1))
        told = submitting.cluster.job(run.job(2))
        assert told["MinMemoryNode"] == "2800M"
        submitting.cluster.ask("scancel", "--user=root")


def test_a_cancelled_job_goes_on(submitting, injecting):
    with (
        injecting(
            "a job is cancelled (scancel)",
            group="Cluster",
            recovers="nothing: the run submits it again",
        ) as fault,
        training(submitting, seconds=15) as sound,
    ):
        with submitting.run(TARGET) as run:
            job = run.job(1)
            run.wait_for(lambda: ": step " in submitting.log())
            with fault.injection():
                submitting.cluster.ask("scancel", job)
                run.succeeds()
        told(fault, submitting, run)
        fault.lost += not continued(submitting)
        fault.wrong += not sound()


def test_a_job_at_its_time_limit_goes_on_with_more_time(submitting, injecting):
    study = "src/neuralrace/workflow/study.py"
    submitting.replace(study, "(1 + int(4 * seconds / 60)) * 2 ** (attempt - 1)", "attempt")
    with (
        injecting("a job reaches its time limit during training", group="Cluster",
                  recovers="nothing: the run submits it again with twice the time") as fault,
        training(submitting, seconds=110, target=TRAJECTORY) as sound,
    ):  # fmt: skip
        with submitting.run(TRAJECTORY) as run, fault.injection():
            assert submitting.cluster.job(run.job(1))["TimeLimit"] == "00:01:00"
            second = run.job(2)
            assert submitting.cluster.job(second)["TimeLimit"] == "00:02:00"
            run.succeeds()
        told(fault, submitting, run)
        fault.lost += not continued(submitting)
        fault.wrong += not sound()


def test_the_daemon_of_a_node_stops_and_starts_again(submitting, injecting):
    with (
        injecting("the SLURM daemon of a node restarts", group="Cluster",
                  recovers="nothing") as fault,
        training(submitting, seconds=10) as sound,
    ):  # fmt: skip
        with submitting.run(TARGET) as run:
            run.wait_for(lambda: ": step " in submitting.log())
            with fault.injection():
                submitting.cluster.stop_node()
                submitting.cluster.start_node()
                run.succeeds()
        fault.message = "none: the job goes on"
        fault.lost += len(run.submitted) != 1
        fault.wrong += not sound()


def test_a_job_whose_node_fails_is_started_again_by_slurm(submitting, injecting):
    with (
        injecting("the node of a job fails", group="Cluster",
                  recovers="nothing: SLURM starts the job again") as fault,
        training(submitting, seconds=15) as sound,
    ):  # fmt: skip
        with submitting.run(TARGET) as run:
            job = run.job(1)
            run.wait_for(lambda: ": step " in submitting.log())
            with fault.injection():
                submitting.cluster.fail_node()
                run.wait_for(lambda: submitting.cluster.jobs()[job] != "RUNNING")
                submitting.cluster.resume_node()
                # else it waits for two minutes, in which what is left of it is to end
                submitting.cluster.ask("scontrol", "update", f"JobId={job}", "StartTime=now")
                run.succeeds()
        fault.message = "none: the job waits in the queue again"
        assert run.submitted == [job]
        fault.wrong += not sound()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "configfile: nodes.yaml",
            "configfile: the number of GPUs of a node (gpus) is not set",
        ),
        ("slurm_account: mine", "default-resources: slurm_account not set"),
    ],
)
def test_what_a_profile_does_not_say_is_told_before_anything_is_submitted(submitting, line, told):
    submitting.replace("profiles/slurm/config.yaml", line, "")
    done = subprocess.run(
        [sys.executable, "-m", "neuralrace.workflow.profile", "profiles/slurm"],
        cwd=submitting.path, env=submitting.workspace.environment(), capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: profiles/slurm/config.yaml: {told}")
    assert done.stderr.count("\n") == 1
