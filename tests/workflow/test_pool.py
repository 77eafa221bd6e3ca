"""Worker pool: one process for many jobs; a worker that ends fails one job and is replaced."""

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

from inherited import ignoring
from neuralrace.errors import UserError
from neuralrace.workflow import pool
from neuralrace.workflow.pool import Worker, WorkerPool

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
"""A worker with one more stage, `noisy`."""
SLEEPING = """
import sys, time, types

def run(job, seconds):
    job.report("begun")
    time.sleep(seconds)
    return seconds

sys.modules["neuralrace.workflow.sleep"] = types.SimpleNamespace(run=run)
"""
"""Site customisation that gives a worker one more stage, `sleep`, which imports no JAX."""
REQUEST = {"job": "noisy", "name": "n", "inputs": [], "outputs": []}


@pytest.fixture
def workers():
    """A worker pool, which is emptied after the test."""
    workers = WorkerPool()
    yield workers
    for worker in workers._idle:
        worker.end()


@pytest.fixture
def sleep(workers, tmp_path, monkeypatch):
    """Runs a job that takes some seconds, with a number of threads; returns the seconds."""
    (tmp_path / "sitecustomize.py").write_text(SLEEPING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)

    def run(threads=1, seconds=0.01):
        log = str(tmp_path / "sleep.log")
        return workers.run("sleep", "n", log, {"seconds": seconds}, threads=threads)

    return run


def processes() -> set[int]:
    """The worker processes of this process."""
    return {each.pid for each in psutil.Process().children() if each.is_running()}


def catches_interrupts(process: subprocess.Popen) -> bool:
    """Whether Python has installed its handler of SIGINT in a process."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return bool(int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16) >> (signal.SIGINT - 1) & 1)


def test_a_worker_that_is_interrupted_while_it_starts_prints_no_traceback(capfd):
    with ignoring():
        worker, begun = Worker(1, False), time.monotonic()
    while not catches_interrupts(worker.process) and time.monotonic() - begun < 5:
        time.sleep(0.001)
    worker.process.send_signal(signal.SIGINT)
    worker.process.wait()
    worker.end()
    assert worker.process.returncode == -signal.SIGINT
    assert capfd.readouterr().err == ""


def test_one_process_runs_one_job_after_the_other(sleep):
    before = processes()
    assert sleep() > 0
    (worker,) = processes() - before
    assert sleep() > 0
    assert processes() - before == {worker}
    sleep(threads=2)
    assert len(processes() - before) == 2, "another number of threads needs another worker"


def test_an_idle_worker_is_kept_while_there_are_processors(sleep, monkeypatch):
    before = processes()
    monkeypatch.setattr(pool, "usable_cores", lambda: 3)
    sleep()
    kept = processes() - before
    sleep(threads=2)
    assert kept < processes() - before
    monkeypatch.setattr(pool, "usable_cores", lambda: 1)
    sleep(threads=3)
    assert len(processes() - before) == 1


def test_jobs_at_once_have_a_worker_each(sleep):
    before = processes()
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(sleep, [1, 1], [1.0, 1.0])) == [1.0, 1.0]
    assert len(processes() - before) == 2


def test_a_failed_job_logs_its_error_and_its_worker_lives_on(workers, sleep, tmp_path):
    sleep()
    before = processes()
    assert before
    log = str(tmp_path / "accept.log")
    inputs = [str(tmp_path / "claims.json")]
    with pytest.raises(UserError, match=f"^claims failed; its message is above and in {log}$"):
        workers.run("accept", "claims", log, {}, inputs)
    assert "error: " in (tmp_path / "accept.log").read_text()
    with pytest.raises(UserError, match="claims failed"):
        workers.run("accept", "claims", log, {"unknown": 1}, inputs)
    assert "TypeError: run()" in (tmp_path / "accept.log").read_text()
    sleep()
    assert processes() == before


@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGKILL, "killed"), (signal.SIGSEGV, "exit status -11")]
)
def test_a_killed_worker_fails_its_job_and_is_replaced(workers, sleep, number, words):
    before = processes()

    def kill():
        deadline = time.monotonic() + 300
        while not (workers := processes() - before) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(workers.pop(), number)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(UserError, match=f"n: its process .*{words}"):
        sleep()
    killer.join()
    assert sleep() > 0


def test_a_worker_killed_between_two_jobs_fails_no_job(workers, sleep):
    before = processes()
    sleep()
    (worker,) = processes() - before
    os.kill(worker, signal.SIGKILL)
    os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)  # all of its threads have ended
    assert sleep() > 0


def test_a_process_that_cannot_be_started_fails_its_job_alone(workers, sleep, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(pool.sys, "executable", "/nowhere/python")
        with pytest.raises(UserError, match=r"no process.*--cores"):
            sleep()
    assert workers._reserved == 0
    assert sleep() > 0


def test_stop_ends_workers_in_the_middle_of_a_job(workers, sleep, tmp_path):
    log = tmp_path / "sleep.log"
    with ThreadPoolExecutor(1) as threads:
        job = threads.submit(sleep, seconds=3600)
        deadline = time.monotonic() + 60
        while not log.exists() or "begun" not in log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        workers.stop("SIGINT")
        with pytest.raises(UserError, match="n: stopped"):
            job.result()
    assert "stopped by SIGINT; the same command computes what is missing" in log.read_text()
    with pytest.raises(UserError, match="not started, as this run ends"):
        sleep()


def test_a_worker_that_holds_too_much_memory_is_replaced(sleep, monkeypatch):
    before = processes()
    monkeypatch.setattr(pool, "IDLE_MB", 1)
    assert sleep() > 0
    assert processes() == before
    assert sleep() > 0


def test_a_worker_names_the_variables_that_it_leaves_out(sleep, monkeypatch, capfd):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    sleep()
    assert "XLA_FLAGS: left out of the environment" in capfd.readouterr().err


def test_output_of_libraries_is_no_reply(tmp_path):
    log = tmp_path / "noisy.log"
    with subprocess.Popen(
        [sys.executable, "-c", NOISY], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as worker:  # fmt: skip
        for number in (1, 2):
            request = REQUEST | {"log": str(log), "arguments": {"answer": number}}
            print(json.dumps(request), file=worker.stdin, flush=True)
            assert json.loads(worker.stdout.readline())["result"] == number
        worker.stdin.close()
        assert worker.stdout.read() == ""
        assert worker.stderr.read().count("what a library prints") == 2
    assert log.read_text().endswith("n: half way\n")


def test_a_worker_ends_with_its_parent(tmp_path):
    code = (
        "from neuralrace.workflow.pool import WorkerPool\n"
        "workers = WorkerPool()\n"
        f"workers.run('speed', 'speed', {str(tmp_path / 'speed.log')!r}, {{}})\n"
        "print(workers._idle[0].process.pid, flush=True)\n"
        "input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        worker = psutil.Process(int(parent.stdout.readline()))
        parent.kill()  # it cannot close its pipes itself
    worker.wait(10)
