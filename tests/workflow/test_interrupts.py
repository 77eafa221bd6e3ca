"""Signals to a process that plans and runs the workflow."""

import os
import signal
import subprocess
import sys
import time

import pytest

from inherited import ignoring

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
PROGRAM = """
import sys, threading, time, types
from pathlib import Path
from neuralrace.workflow import interrupts as module
from neuralrace.workflow.interrupts import interrupts

module.LOST = 2.0

class Workers:
    busy = False
    def stop(self, name): print("jobs:", name, flush=True); ended.set()
    def kill(self): print("killed", flush=True)

class Executor:
    def cancel(self): pass

class Scheduler:
    _executor, finished_jobs = Executor(), 2
    def exit_gracefully(self): pass
    def schedule(self):
        print("running", flush=True)
        ended.wait()
        time.sleep(float(sys.argv[2]))
        return False

ended = threading.Event()
watched = interrupts()
if sys.argv[1] == "planning":
    print("planning", flush=True)
    time.sleep(60)
workflow = types.SimpleNamespace(scheduler=Scheduler(), local_exec=True, dag=range(5))
watched.attach(workflow, Workers(), Path("results"), print)
workflow.scheduler.schedule()
watched.exit_if_requested()
print("not requested")
"""
"""A run whose scheduler ends some seconds after its jobs."""
FAILING = """
import errno, types
from neuralrace.workflow.interrupts import interrupts

class Workers:
    busy = False
    def stop(self, name): print("jobs:", name)

class Executor:
    def cancel(self): print("cancelled")

class Scheduler:
    _executor = Executor()
    def __init__(self, error): self.error = error
    def exit_gracefully(self): pass
    def schedule(self):
        self._executor.cancel()
        raise self.error

for error in (OSError(errno.ENOSPC, "No space left", "a", None, "b"), ValueError("missing")):
    workflow = types.SimpleNamespace(scheduler=Scheduler(error), local_exec=True)
    interrupts().attach(workflow, Workers(), None, lambda error: print("reported:", error))
    print(workflow.scheduler.schedule())
"""
"""Runs whose scheduler fails."""


def run(program, *arguments, ignored=(), stdout=subprocess.PIPE):
    with ignoring(ignored):
        return subprocess.Popen(
            [sys.executable, "-c", program, *arguments], stdout=stdout, stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("phase", ["planning", "running"])
def test_a_signal_ends_a_run_in_one_line(name, phase):
    number = signal.Signals[name]
    with run(PROGRAM, phase, "0") as process:
        assert process.stdout.readline() == f"{phase}\n"
        process.send_signal(number)
        printed = process.stdout.read()
    kept = "2 of 5 jobs completed"
    kept = kept if phase == "running" else "no job had started"
    stopped = f"jobs: {name}\n" if phase == "running" else ""
    assert printed == f"{stopped}stopped by {name}: {kept}. To resume, run: -c {phase} 0\n"
    assert process.returncode == 128 + number


def test_a_storm_of_signals_ends_a_run_like_one():
    with run(PROGRAM, "running", "0.3") as process:
        process.stdout.readline()
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(signal.SIGINT)
            time.sleep(0.001)
        printed = process.stdout.read()
    assert printed.splitlines()[0] == "jobs: SIGINT"
    assert len(printed.splitlines()) == 2
    assert process.returncode == 130


def test_a_signal_after_some_seconds_kills_jobs_that_do_not_stop():
    with run(PROGRAM.replace("LOST = 2.0", "LOST = 60.0"), "running", "2.6") as process:
        for delay in (0.0, 0.2, 2.0):
            time.sleep(delay)
            process.send_signal(signal.SIGINT) if delay else process.stdout.readline()
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        printed = process.stdout.read()
    assert printed.splitlines()[:2] == ["jobs: SIGINT", "killed"]


def test_a_run_ends_even_if_the_end_of_a_job_was_lost():
    with run(PROGRAM, "running", "3600") as process:
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        printed = process.stdout.read()
    assert printed.endswith("To resume, run: -c running 3600\n")
    assert process.returncode == 143


@pytest.mark.parametrize("phase", ["planning", "running"])
def test_a_run_whose_output_nobody_reads_ends(phase):
    with run(PROGRAM, phase, "0") as process:
        process.stdout.readline()
        process.stdout.close()
    assert process.returncode == 128 + signal.SIGPIPE


def test_a_run_goes_on_when_its_terminal_is_closed_and_it_ignores_that():
    terminal, shown = os.openpty()
    process = run(PROGRAM.replace("ended.wait()", "time.sleep(1)"), "running", "0",
                  ignored=["SIGHUP"], stdout=shown)  # fmt: skip
    os.close(shown)
    printed = b""
    while not printed.endswith(b"\n"):
        printed += os.read(terminal, 100)
    os.close(terminal)
    assert process.wait() == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_signal_that_was_ignored_before_stays_ignored(name):
    with run(PROGRAM, "running", "0", ignored=[name]) as process:
        process.stdout.readline()
        process.send_signal(signal.Signals[name])
        time.sleep(0.1)
        other = "SIGTERM" if name != "SIGTERM" else "SIGINT"
        process.send_signal(signal.Signals[other])
        printed = process.stdout.read()
    assert printed.startswith(f"jobs: {other}\n")
    assert process.returncode == 128 + signal.Signals[other]


def test_jobs_are_stopped_and_the_reason_is_printed_when_the_scheduler_fails():
    with run(FAILING) as process:
        printed = process.stdout.read()
    assert process.returncode == 0, printed
    assert printed.count("jobs: the end of the run\ncancelled\n") == 2
    assert printed.count("False") == 2
    assert "error: b: No space left" in printed
    assert "reported: missing" in printed
    assert "Traceback" not in printed
