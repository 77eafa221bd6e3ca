"""Requests to stop: from a person, from a service manager or from a scheduler."""

import os
import random
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest

from inherited import ignoring

pytestmark = [pytest.mark.faults, pytest.mark.workflow]

CELL = "layer_dynamics/glorot_moments/main"
TARGET = f"results/{CELL}/metrics.nc"
LOG = f"results/logs/{CELL}/train.log"
STEPS = 16_000_000
"""Steps of a training that takes longer than this test."""
CELLS = ("cells",)
COMMAND = (sys.executable, "-m", "neuralrace.cli.main", "run", "layer_dynamics", "--cores", "2")
LONGEST = 60.0
"""Seconds within which a run must end after a signal, on two busy cores."""


def wait_for(holds, seconds=120):
    deadline = time.monotonic() + seconds
    while not (result := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return result


def children(controller):
    """The worker processes of a run."""
    leaves = psutil.Process(controller.pid).children(recursive=True)
    return [each for each in leaves if not each.children() and each.name().startswith("python")]


def to_all(controller, number):
    os.killpg(controller.pid, number)


def to_the_job(controller, number):
    children(controller)[0].send_signal(number)


def to_the_run_alone(controller, number):
    controller.send_signal(number)


def twice(controller, number):
    to_all(controller, number)
    time.sleep(random.uniform(0.05, 1.0))
    to_all(controller, number)


def in_a_storm(controller, number):
    for _ in range(100):
        to_all(controller, number)
        time.sleep(0.01)


KINDS = {
    "Ctrl-C": ("snakemake", to_all, ["SIGINT"]),
    "Ctrl-C twice within a second": ("snakemake", twice, ["SIGINT"]),
    "Ctrl-C a hundred times within a second": ("snakemake", in_a_storm, ["SIGINT"]),
    "a signal to Snakemake alone": (
        "snakemake", to_the_run_alone, ["SIGINT", "SIGTERM", "SIGHUP"]
    ),
    "a signal to `neuralrace run` alone": (
        "neuralrace", to_the_run_alone, ["SIGINT", "SIGTERM", "SIGHUP"]
    ),
    "Ctrl-C twice in `neuralrace run`": ("neuralrace", twice, ["SIGINT"]),
    "SIGTERM to a job": ("snakemake", to_the_job, ["SIGTERM"]),
}  # fmt: skip
"""Command, function that sends a signal in the middle of training, and names of signals."""


@pytest.fixture
def training(workspace):
    """A workspace with a training that is longer than any test."""
    changed = workspace.layers
    changed["glorot_moments"]["training"] = {"learning_rate": 1e-6, "steps": STEPS}
    changed["glorot_moments"]["record"]["every"] = 8_000_000  # most steps are between records
    workspace.configure("layer_dynamics", changed)
    return workspace


def start(workspace, command, ignored=False):
    command = workspace.command(TARGET) if command == "snakemake" else COMMAND
    with ignoring(["SIGINT"] if ignored else []):
        return subprocess.Popen(
            command, cwd=workspace.path, env=workspace.environment(), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip


def says(log, pattern):
    try:
        return re.search(pattern, log.read_text())
    except FileNotFoundError:  # Snakemake removes the log of a former job
        return None


def trains(log):
    return says(log, r"step \d+/")


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_training_continues(training, injecting, repeat, kind):
    command, send, names = KINDS[kind]
    random.seed(kind)
    log, stopped = training.path / LOG, [0]
    kind = f"{kind}, in the middle of training"
    with injecting(kind, group="Runs", chance=True) as fault:
        for turn in range(max(repeat, len(names))):
            name = names[turn % len(names)]
            log.unlink(missing_ok=True)
            with fault.injection():
                controller = start(training, command)
                wait_for(lambda: trains(log))
                time.sleep(random.uniform(0.0, 0.5))
                send(controller, signal.Signals[name])
                printed = controller.communicate(timeout=LONGEST)[0]
            fault.output(printed)
            (step,) = re.findall(rf"stopped by {name} at step (\d+); the same", log.read_text())
            if send is to_the_job:
                assert controller.returncode == 1
                assert f"stopped by {name} at step {step}; the same command continues" in printed
            else:
                assert controller.returncode == 128 + signal.Signals[name]
                (line,) = [line for line in printed.splitlines() if "stopped by" in line]
                kept = r"\d+ of \d+ jobs completed; 1 unfinished training run will resume from .*"
                assert re.fullmatch(rf"stopped by {name}: {kept}\. To resume, run: .*", line)
                assert printed.endswith(f"{line}\n")
                assert "Exception" not in printed
                assert "Error" not in printed
            assert "Cannot restore" not in printed
            assert int(step) < STEPS
            fault.lost += int(step) < stopped[-1]
            stopped.append(int(step))
            assert not list((training.path / "results").rglob("*.tmp"))
        fault.message = "stopped by SIGNAL: what was completed. To resume, run: the same command"
        if send is to_the_job:
            fault.message = "CELL: stopped by SIGTERM at step N; the same command continues ..."
        resumed = start(training, "snakemake")
        wait_for(lambda: says(log, f"continuing at step {stopped[-1]}"))
        to_all(resumed, signal.SIGTERM)
        resumed.communicate(timeout=LONGEST)


def test_a_continued_training_ends_like_one_that_was_not_stopped(workspace, injecting):
    changed = workspace.layers
    changed["glorot_moments"]["training"] = {"learning_rate": 1e-6, "steps": STEPS // 8}
    changed["glorot_moments"]["record"]["every"] = 1_000_000
    workspace.configure("layer_dynamics", changed)
    log = workspace.path / LOG
    with injecting("a training is stopped, and continues to its end", group="Runs") as fault:
        with fault.injection():
            controller = start(workspace, "snakemake")
            wait_for(lambda: trains(log))
            to_all(controller, signal.SIGINT)
            fault.output(controller.communicate(timeout=LONGEST)[0])
        workspace.snakemake(TARGET)
        assert "continuing at step" in log.read_text()
        resumed = (workspace.path / TARGET).read_bytes()
        (workspace.path / "results").rename(workspace.path / "stopped")
        workspace.snakemake(TARGET)
        fault.wrong += (workspace.path / TARGET).read_bytes() != resumed
        fault.message = "continuing at step N, from the checkpoint ..."


def test_an_interrupt_that_was_ignored_at_the_start_stays_ignored(workspace, injecting):
    log = workspace.path / LOG
    kind = "SIGINT to a run behind `&` in a script, where shells have it ignored"
    with injecting(kind, group="Runs", recovers="nothing: it has no effect") as fault:
        controller = start(workspace, "snakemake", ignored=True)
        wait_for(log.exists)
        with fault.injection(at_once=20):
            for _ in range(20):
                to_all(controller, signal.SIGINT)
                time.sleep(0.05)
        printed = controller.communicate(timeout=LONGEST)[0]
        assert controller.returncode == 0, printed
        assert "failed" not in printed
        fault.lost += not (workspace.path / TARGET).is_file()
        fault.message = "none: the run goes on; SIGTERM stops it"


def test_a_run_is_stopped_before_its_first_job(workspace, injecting, repeat):
    random.seed(0)
    with injecting("Ctrl-C before the first job", group="Runs", chance=True) as fault:
        for turn in range(max(repeat, 2)):
            with fault.injection():
                controller = start(workspace, ("snakemake", "neuralrace")[turn % 2])
                for line in controller.stdout:  # before, Snakemake itself is being imported
                    if "Building DAG" in line:
                        break
                time.sleep(random.uniform(0.0, 0.3))
                to_all(controller, signal.SIGINT)
                printed = controller.communicate(timeout=LONGEST)[0]
            fault.output(printed)
            assert controller.returncode == 130, printed
            assert "stopped by SIGINT: " in printed.splitlines()[-1]
        fault.message = "stopped by SIGINT: no job had started. To resume, run: ..."


def test_a_run_whose_output_is_closed_ends(training, injecting, repeat):
    random.seed(0)
    with injecting("a pipe that reads the output ends", group="Runs", chance=True) as fault:
        for _ in range(repeat):
            with fault.injection():
                controller = start(training, "snakemake")
                time.sleep(random.uniform(0.0, 8.0))
                controller.stdout.close()
                # 1: Snakemake itself ends so before it reads the Snakefile
                assert controller.wait(LONGEST) in (1, 128 + signal.SIGPIPE)
            (training.path / LOG).unlink(missing_ok=True)
        training.snakemake("results/deep_linear/time_to_learn/main/theory.nc")  # none is at work
        fault.message = "none: nobody reads it"


def test_a_run_whose_results_are_deleted_ends(training, injecting):
    # both train when theory is deleted; the shorter one ends, and its next job misses theory
    shorter = training.deep["time_to_learn"]
    shorter["training"] = {"learning_rate": 1e-6, "steps": STEPS // 4}
    shorter["record"]["every"] = STEPS // 8
    training.configure("deep_linear", {"time_to_learn": shorter})
    cell = "deep_linear/time_to_learn/main"
    log, log_of_shorter = training.path / LOG, training.path / f"results/logs/{cell}/train.log"
    theory = training.path / f"results/{cell}/theory.nc"
    training.snakemake(f"results/{cell}/theory.nc")
    kind = "results are deleted during a run, or their disk is slow"
    with injecting(kind, group="Runs") as fault:
        controller = subprocess.Popen(
            training.command(*CELLS), cwd=training.path, env=training.environment(),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        wait_for(lambda: trains(log) and trains(log_of_shorter))
        with fault.injection():
            theory.unlink()
            printed = controller.communicate(timeout=2 * LONGEST)[0]
        assert controller.returncode == 1, printed
        fault.output(printed)
        assert "Missing files after" in printed
        assert "stopped by the end of the run at step" in log.read_text()
        fault.message = "Snakemake's: Missing files after 5 seconds ..."
