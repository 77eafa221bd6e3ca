"""Shutdown requests: from a person, to all of a run, and from a scheduler, to one job."""

import os
import random
import re
import signal
import subprocess
import time

import psutil
import pytest

pytestmark = [pytest.mark.faults, pytest.mark.workflow]

CELL = "layer_dynamics/glorot_moments/main"
TARGET = f"results/{CELL}/metrics.nc"
LOG = f"results/logs/{CELL}/train.log"
TIMES = 10
STEPS = 16_000_000
"""Steps of a training that takes longer than this test."""


def wait_for(holds, seconds=120):
    deadline = time.monotonic() + seconds
    while not (result := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return result


def working(controller):
    """The process that trains, once it does."""
    children = psutil.Process(controller.pid).children(recursive=True)
    leaves = [each for each in children if not each.children()]
    return next((each for each in leaves if each.name().startswith("python")), None)


def to_all(controller):
    os.killpg(controller.pid, signal.SIGINT)


def to_the_job(controller):
    working(controller).send_signal(signal.SIGTERM)


def to_snakemake_alone(controller):
    controller.send_signal(signal.SIGINT)


KINDS = {
    "Ctrl-C, or SIGTERM to a job, in the middle of training": [
        ("SIGINT", to_all), ("SIGTERM", to_the_job)
    ],
    "SIGINT to Snakemake alone, in the middle of training": [("SIGTERM", to_snakemake_alone)],
}  # fmt: skip
"""Functions that send a signal, each with the signal that reaches the job."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_training_continues(workspace, injecting, kind):
    requests = KINDS[kind]
    changed = workspace.layers
    changed["glorot_moments"]["training"] = {"learning_rate": 1e-6, "steps": STEPS}
    changed["glorot_moments"]["record"]["every"] = 8_000_000  # most steps are between records
    workspace.configure("layer_dynamics", changed)
    random.seed(0)
    log, stopped = workspace.path / LOG, [0]
    with injecting(kind, group="Runs", chance=True) as fault:
        for number in range(TIMES):
            name, send = requests[number % len(requests)]
            log.unlink(missing_ok=True)
            with fault.injection():
                controller = subprocess.Popen(
                    workspace.command(TARGET), cwd=workspace.path, env=workspace.environment(),
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                    start_new_session=True,
                )  # fmt: skip
                wait_for(lambda: log.exists() and re.search(r" step \d+/", log.read_text()))
                time.sleep(random.uniform(0.0, 0.5))
                send(controller)
                wait_for(lambda: "stopped by" in log.read_text())
                printed = controller.communicate(timeout=60)[0]
            assert controller.returncode != 0
            fault.output(printed)
            (step,) = re.findall(rf"stopped by {name} at step (\d+); the same", log.read_text())
            assert int(step) < STEPS
            fault.lost += int(step) < stopped[-1]
            stopped.append(int(step))
            assert not list((workspace.path / "results").rglob("*.tmp"))
        fault.message = (
            f"stopped by {name} at step N; the same command continues from the checkpoint"
        )
        workspace.snakemake(TARGET)
        assert f"continuing at step {stopped[-1]}" in log.read_text()
        resumed = (workspace.path / TARGET).read_bytes()
        (workspace.path / "results").rename(workspace.path / "stopped")
        workspace.snakemake(TARGET)
        fault.wrong += (workspace.path / TARGET).read_bytes() != resumed
