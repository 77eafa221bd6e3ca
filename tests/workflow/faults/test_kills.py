"""Jobs and Snakemakes that are killed: the same command goes on, and comes to the same end."""

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

pytestmark = [pytest.mark.workflow, pytest.mark.faults]
GROUP = "Runs"
TIMES = 10
LONGEST = 60.0
"""Seconds that a run is given to start its jobs."""


def long(workspace):
    """A configuration whose jobs take seconds, with checkpoints all the time."""
    deep, layers = workspace.deep, workspace.layers
    for experiment in deep.values():
        experiment["training"]["steps"] = 120_000
        experiment["record"]["every"] = 400
        experiment["training"]["learning_rate"] = 1e-4
    deep["step_size"]["sweep"] = {"training.learning_rate": [1e-4, 5e-5]}
    workspace.configure("deep_linear", deep)
    workspace.configure("layer_dynamics", layers)
    (workspace.path / "often.yaml").write_text("checkpoint_seconds: 0\n")
    return ("cells", "--configfile", "often.yaml")


def started(workspace, command) -> subprocess.Popen:
    return subprocess.Popen(
        workspace.command(*command), cwd=workspace.path, env=workspace.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip


def at_work(controller: subprocess.Popen) -> list[psutil.Process]:
    """The processes in which jobs of a run are at work, once there are some."""
    deadline = time.monotonic() + LONGEST
    while controller.poll() is None and time.monotonic() < deadline:
        children = psutil.Process(controller.pid).children(recursive=True)
        found = []
        for child in children:
            try:
                line = " ".join(child.cmdline())
            except psutil.Error:
                continue
            if "make.py" in line and child.name().startswith("python"):
                found.append(child)
        if found:
            return found
        time.sleep(0.02)
    return []


def kill_job(controller, jobs) -> None:
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
    """What runs without faults make."""
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
        ("a job is killed", kill_job, "A job failed; its message stands above"),
        ("Snakemake is killed, its jobs are not", kill_controller, ""),
        ("Snakemake and its jobs are killed", kill_all, ""),
        ("interrupted from the keyboard", interrupt, "stopped by SIG"),
        ("Snakemake is asked to end", ask_to_end, ""),
    ],
)
def test_the_same_command_goes_on(workspace, truth, injecting, kind, strike, message):
    command, random = long(workspace), np.random.default_rng(len(kind))
    with injecting(kind, group=GROUP, chance=True) as fault:
        printed = ""
        for _ in range(TIMES):
            with fault.injection():
                controller = started(workspace, command)
                jobs = at_work(controller)
                time.sleep(random.uniform(0, 4))
                if controller.poll() is None:
                    strike(controller, [job for job in jobs if job.is_running()] or jobs)
                printed += controller.communicate(timeout=LONGEST)[0]
        final = workspace.snakemake(*command)
        made = results(workspace.path)
        fault.lost += len(truth.keys() - made.keys())
        fault.wrong += sum(made.get(name) != content for name, content in truth.items())
        assert "Traceback" not in final
        assert not list(workspace.path.rglob(".*.tmp"))
        assert not list(workspace.path.rglob("*.last"))
        assert message in printed
        fault.message = message or "nothing: the next run removes its locks and goes on"
