"""Log, messages and cost of a job, for each way to end."""

import json
import subprocess
import sys
import time

import pytest

from inherited import ignoring
from neuralrace.errors import UserError
from neuralrace.workflow.job import STOPPED, job

BODIES = {
    "success": "this.report('half way')",
    "user error": "this.report('half way'); raise UserError('is 0', key='steps')",
    "bug": "this.report('half way'); 1 / 0",
    "SIGTERM": "this.report('half way'); os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
    "SIGINT": "this.report('half way'); os.kill(os.getpid(), signal.SIGINT); time.sleep(60)",
}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """Output and log of a process, for each way to end."""
    outcomes = {}
    for name, body in BODIES.items():
        log = tmp_path_factory.mktemp("logs") / "job.log"
        log.write_text("an earlier attempt\n")
        code = (
            "import os, signal, sys, time\n"
            "from neuralrace.errors import UserError\n"
            "from neuralrace.workflow.job import job\n"
            "try:\n"
            "    with job('train a/b/c', sys.argv[1]) as this:\n"
            f"        {body}\n"
            "    print('went on')\n"
            "except BaseException as error:\n"
            "    print(type(error).__name__)\n"
        )
        with ignoring():
            done = subprocess.run(
                [sys.executable, "-c", code, str(log)], capture_output=True, text=True, check=True
            )
        outcomes[name] = done, log.read_text()
    return outcomes


def test_progress_goes_to_terminal_and_log(jobs):
    done, log = jobs["success"]
    assert done.stdout == "went on\n"
    assert log == done.stderr
    (line,) = log.splitlines()
    assert line.endswith(" train a/b/c: half way")


def test_user_error_is_a_message(jobs):
    done, log = jobs["user error"]
    assert done.stdout == "UserError\n"
    assert log == done.stderr
    assert log.splitlines()[1:] == [f"{log.splitlines()[1][:8]} train a/b/c: error: steps: is 0"]
    assert "Traceback" not in done.stderr


def test_a_bug_has_its_traceback_in_terminal_and_log(jobs):
    done, log = jobs["bug"]
    assert done.stdout == "ZeroDivisionError\n"
    for text in (done.stderr, log):
        assert "train a/b/c: unexpected error" in text
        assert "Traceback (most recent call last)" in text
        assert "ZeroDivisionError: division by zero" in text


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_that_a_job_was_stopped_stands_in_its_log_only(jobs, name):
    done, log = jobs[name]
    assert done.stdout == "Stopped\n"
    first, stopped = log.splitlines()
    assert done.stderr == f"{first}\n"
    message = f"train a/b/c: stopped by {name}; the same command computes what is missing"
    assert stopped == f"{stopped[:8]} {message}"


def test_the_cost_is_written_beside_the_log(tmp_path):
    with job("train a/b/c", str(tmp_path / "job.log")) as this, this.stage("train", "a/b/c"):
        begin = time.process_time()
        while time.process_time() < begin + 0.1:
            pass
    cost = json.loads((tmp_path / "job.json").read_text())
    assert cost["seconds"] > 0
    assert cost["peak_mb"] > 0
    assert [entry["stage"] for entry in cost["stages"]] == ["train", "start"]
    spent, rest = (entry["core_seconds"] for entry in cost["stages"])
    assert spent >= 0.1
    assert rest >= 0


def test_the_cost_of_a_failed_job_does_not_count_for_the_next_one(tmp_path):
    def failing():
        with job("a", str(tmp_path / "a.log")):
            begin = time.process_time()
            while time.process_time() < begin + 0.3:
                pass
            raise UserError("a mistake")

    with pytest.raises(UserError):
        failing()
    with job("b", str(tmp_path / "b.log")):
        pass
    (rest,) = json.loads((tmp_path / "b.json").read_text())["stages"]
    assert rest["stage"] == "start"
    assert rest["core_seconds"] < 0.2


CAUGHT = """
import os, signal, sys, time
from neuralrace.workflow.job import job
with job("measure a/b/c", sys.argv[1], exits=True):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(300)
    finally:  # like a library that waits for a lock here
        time.sleep(300)
"""


def test_a_worker_exits_even_where_an_exception_would_be_lost(tmp_path):
    command = [sys.executable, "-c", CAUGHT, str(tmp_path / "job.log")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=250)
    assert done.returncode == STOPPED
    (line,) = (tmp_path / "job.log").read_text().splitlines()
    assert line.endswith("a/b/c: stopped by SIGTERM; the same command computes what is missing")
