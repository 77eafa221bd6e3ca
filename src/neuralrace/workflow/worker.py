"""Worker process: runs jobs one after the other until its Snakemake ends.

    python -m neuralrace.workflow.worker THREADS GPU

It imports the library once and keeps compiled programs. It reads jobs as lines of JSON from
standard input, and writes one line of JSON in reply to each; messages go to standard error. When
its input ends, as it does however Snakemake ends, the worker shuts down; a training first writes a
checkpoint. It also does so at the signals that its Snakemake heeds; it ignores those that are
ignored there.

A specification crosses from Snakemake to a worker as canonical JSON, in the params of a rule, as
these can hold plain values only. It is parsed once, by the stage.
"""

import gc
import json
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from queue import SimpleQueue
from threading import Thread
from typing import Any, TextIO

from neuralrace.workflow.shutdown import Shutdown, Stopped, handleable


def main(threads: int, gpu: bool, requests: TextIO, replies: TextIO) -> None:
    """Runs jobs until there are no more.

    Args:
        threads: number of threads to compute with.
        gpu: whether to compute on a GPU.
        requests: jobs, one per line: `job`, `name`, `log`, `inputs`, `outputs` and `arguments`; or
            `stop`, who asks the job that runs to end.
        replies: receives a line for each job: `failed`, `stopped`, `result` and `megabytes`.
    """
    from neuralrace.results.provenance import note_source_files

    note_source_files()  # before importing any module that computes
    from neuralrace.training.environment import set_up_environment

    left_out = set_up_environment(threads, gpu)
    if left_out:
        print(left_out, file=sys.stderr)
    inbox = Inbox(requests)
    Thread(target=inbox.listen, daemon=True).start()
    for number in handleable():
        signal.signal(number, signal.SIG_DFL)  # between two jobs, there is no work to keep
    while request := inbox.lines.get():
        with suppress(BrokenPipeError):  # Snakemake has ended
            print(json.dumps(_answer(request, inbox)), file=replies, flush=True)
        gc.collect()
        gc.freeze()  # later collections skip lasting objects; they would take a tenth longer


class Inbox:
    """The requests of a worker, which a thread receives while jobs run.

    Attributes:
        lines: jobs, as they come; None at their end.
        shutdown: of the job that runs; None between two jobs.
    """

    def __init__(self, requests: TextIO):
        """Reads nothing yet.

        Args:
            requests: lines of JSON.
        """
        self.lines: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self.shutdown: Shutdown | None = None
        self._requests = requests

    def listen(self) -> None:
        """Passes on each job; asks the one that runs to end when the input ends."""
        name = "the end of Snakemake"
        for line in self._requests:
            request = json.loads(line)
            name = request.get("stop", name)
            if "stop" not in request:
                self.lines.put(request)
        self.lines.put(None)
        if self.shutdown:
            self.shutdown.request(name)
        else:
            os._exit(0)


def _answer(request: dict[str, Any], inbox: Inbox) -> dict[str, Any]:
    """Runs a job; returns the reply."""
    from neuralrace.workflow.job import job

    failed, result, stopped = True, None, ""
    files = request["inputs"], request["outputs"]
    # the job itself reports errors, in the terminal and in its log
    try:
        with job(request["name"], request["log"], *files, exits=True) as this:
            inbox.shutdown = this.shutdown
            run = import_module(f"neuralrace.workflow.{request['job']}").run
            result = run(this, **request["arguments"])
            failed = False
    except Stopped as error:
        stopped = str(error)
    except Exception:  # noqa: S110
        pass
    inbox.shutdown = None
    reply = {"failed": failed, "stopped": stopped, "result": result}
    return reply | {"megabytes": _megabytes()}


def _megabytes() -> int:
    """Resident memory of this process."""
    import psutil

    return psutil.Process().memory_info().rss // 10**6


if __name__ == "__main__":
    # the parent process has blocked SIGINT; see `pool.Worker`
    if signal.SIGINT in handleable():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # libraries may print to standard output: send that to standard error, and keep it for replies
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    main(int(sys.argv[1]), sys.argv[2] == "gpu", sys.stdin, answers)
