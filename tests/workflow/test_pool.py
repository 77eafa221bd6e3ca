"""Warm workers: one process for many jobs; one that ends fails one job, and is replaced."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from neuralrace.errors import UserError
from neuralrace.workflow import workers as pool
from neuralrace.workflow.workers import Worker, Workers

NOISY = """
import runpy, sys, types

def run(job, answer):
    print("what a library prints")
    job.report("half way")
    return answer

sys.modules["neuralrace.workflow.noisy"] = types.SimpleNamespace(run=run)
sys.argv = ["worker", "1", "cpu"]
runpy.run_module("neuralrace.workflow.worker", run_name="__main__")
"""
"""A worker that knows one more kind of job."""
SLOW = """
import sys, time, types

def run(job):
    job.report("begun")
    time.sleep(3600)

sys.modules["neuralrace.workflow.slow"] = types.SimpleNamespace(run=run)
"""
"""Site customisation by which a worker knows a job that takes an hour."""
JOB = '{"job": "noisy", "name": "n", "log": "%s", "arguments": {"answer": %d}}\n'


@pytest.fixture
def workers(monkeypatch, tmp_path):
    """A pool whose processes are gone afterwards."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "jax"))
    made = Workers()
    yield made
    for worker in made._idle:
        worker.end()


@pytest.fixture
def speed(workers, tmp_path):
    """Runs the shortest of all jobs, with so many threads."""

    def run(threads=1):
        return workers.run("speed", "speed", str(tmp_path / "speed.log"), {}, threads)

    return run


def processes() -> set[int]:
    """The workers that this process has."""
    return {each.pid for each in psutil.Process().children() if each.is_running()}


def catches_interrupts(process: subprocess.Popen) -> bool:
    """Whether Python has set up its handler of SIGINT in a process."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return bool(int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16) >> (signal.SIGINT - 1) & 1)


@pytest.fixture
def interruptible():
    """Processes that are started here can be interrupted, as those of pytest-xdist cannot."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_worker_that_is_interrupted_while_it_starts_prints_no_traceback(interruptible, capfd):
    worker, begun = Worker((1, False)), time.monotonic()
    while not catches_interrupts(worker.process) and time.monotonic() - begun < 5:
        time.sleep(0.001)
    worker.process.send_signal(signal.SIGINT)
    worker.process.wait()
    worker.end()
    assert worker.process.returncode == -signal.SIGINT
    assert capfd.readouterr().err == ""


def test_one_process_runs_one_job_after_the_other(speed):
    before = processes()
    assert speed() > 0
    (worker,) = processes() - before
    assert speed() > 0
    assert processes() - before == {worker}
    speed(threads=2)
    assert len(processes() - before) == 2, "who computes with more threads is another"


def test_jobs_at_once_have_a_worker_each(speed):
    before = processes()
    with ThreadPoolExecutor(2) as threads:
        assert min(threads.map(speed, [1, 1])) > 0
    assert len(processes() - before) == 2


def test_a_job_that_fails_tells_why_and_its_worker_goes_on(workers, speed, tmp_path):
    speed()
    before = processes()
    log = str(tmp_path / "accept.log")
    arguments = {"name": "claims", "inputs": [str(tmp_path / "claims.json")], "outputs": []}
    with pytest.raises(UserError, match=f"^claims failed; its message stands above and in {log}$"):
        workers.run("accept", "claims", log, arguments)
    assert "error: " in (tmp_path / "accept.log").read_text()
    with pytest.raises(UserError, match="claims failed"):
        workers.run("accept", "claims", log, {})
    assert "TypeError: run()" in (tmp_path / "accept.log").read_text()
    speed()
    assert processes() == before


@pytest.mark.parametrize(
    ("number", "told"), [(signal.SIGKILL, "killed"), (signal.SIGSEGV, "exit status -11")]
)
def test_a_worker_that_is_killed_fails_its_job_and_is_replaced(workers, speed, number, told):
    before = processes()

    def kill():
        deadline = time.monotonic() + 300
        while not (found := processes() - before) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(found.pop(), number)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(UserError, match=f"speed: its process .*{told}"):
        speed()
    killer.join()
    assert speed() > 0


def test_a_worker_that_was_killed_between_two_jobs_fails_none(workers, speed):
    before = processes()
    speed()
    (worker,) = processes() - before
    os.kill(worker, signal.SIGKILL)
    os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)  # all of its threads have ended
    assert speed() > 0


def test_a_process_that_cannot_be_started_fails_its_job_alone(workers, speed, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(pool.sys, "executable", "/nowhere/python")
        with pytest.raises(UserError, match=r"no process.*--cores"):
            speed()
    assert workers._busy == 0
    assert speed() > 0


def test_workers_that_are_stopped_end_in_the_middle_of_a_job(workers, monkeypatch, tmp_path):
    """Nobody sends the worker a signal, and its job would go on for an hour."""
    (tmp_path / "sitecustomize.py").write_text(SLOW)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    log = tmp_path / "slow.log"
    with ThreadPoolExecutor(1) as threads:
        job = threads.submit(workers.run, "slow", "slow", str(log), {})
        deadline = time.monotonic() + 60
        while not log.exists() or "begun" not in log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        workers.stop()
        with pytest.raises(UserError, match="slow failed"):
            job.result()
    assert "stopped by SIGTERM; the same command makes what is missing" in log.read_text()
    with pytest.raises(UserError, match="not begun, as this run ends"):
        workers.run("speed", "speed", str(log), {})


def test_a_worker_that_holds_too_much_memory_is_replaced(speed, monkeypatch):
    before = processes()
    monkeypatch.setattr(pool, "LASTING_MB", 1)
    assert speed() > 0
    assert processes() == before
    assert speed() > 0


def test_what_a_library_prints_is_no_answer(tmp_path):
    log = tmp_path / "noisy.log"
    with subprocess.Popen(
        [sys.executable, "-c", NOISY], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as worker:  # fmt: skip
        for number in (1, 2):
            print(JOB % (log, number), end="", file=worker.stdin, flush=True)
            assert json.loads(worker.stdout.readline())["result"] == number
        worker.stdin.close()
        assert worker.stdout.read() == ""
        assert worker.stderr.read().count("what a library prints") == 2
    assert log.read_text().endswith("n: half way\n")


def test_a_worker_ends_with_who_started_it(tmp_path):
    code = (
        "from neuralrace.workflow.workers import Workers\n"
        "workers = Workers()\n"
        f"workers.run('speed', 'speed', {str(tmp_path / 'speed.log')!r}, {{}})\n"
        "print(workers._idle[0].process.pid, flush=True)\n"
        "input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        worker = psutil.Process(int(parent.stdout.readline()))
        parent.kill()  # with no chance to say good-bye
    worker.wait(10)
