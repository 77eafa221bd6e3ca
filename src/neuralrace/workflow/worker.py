"""A worker: a process that runs one job after the other, for as long as its Snakemake lives.

    python -m neuralrace.workflow.worker THREADS GPU

It imports what jobs need once, and keeps compiled programs. Jobs come as lines of JSON at its
standard input, and each is answered by such a line; messages for people go to standard error. When
the input ends, as it does however Snakemake ends, so does the worker: a training writes a
checkpoint first.
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


def main(threads: int, gpu: bool, requests: TextIO, replies: TextIO) -> None:
    """Runs jobs until there are no more.

    Args:
        threads: to compute with.
        gpu: whether to compute on a GPU.
        requests: jobs, a line each: `job`, `name`, `log` and `arguments`.
        replies: takes a line for each: `failed`, `result` and `megabytes`.
    """
    from neuralrace.results.provenance import note_source_files

    note_source_files()  # before anything is imported that computes, or sets up what does
    from neuralrace.training.environment import set_up_environment

    left_out = set_up_environment(threads, gpu)
    if left_out:
        print(left_out, file=sys.stderr)
    lines: SimpleQueue[str] = SimpleQueue()
    Thread(target=_listen, args=(requests, lines), daemon=True).start()
    # between two jobs there is nothing to keep
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while line := lines.get():
        with suppress(BrokenPipeError):  # nobody listens any more
            print(json.dumps(_answer(json.loads(line))), file=replies, flush=True)
        gc.collect()
        gc.freeze()  # what stays is looked through no more: it would take a tenth longer


def _listen(requests: TextIO, lines: "SimpleQueue[str]") -> None:
    """Hands on what comes; asks this process to end when nothing more can come."""
    for line in requests:
        lines.put(line)
    lines.put("")
    os.kill(os.getpid(), signal.SIGTERM)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """Runs a job, and says what came of it."""
    from neuralrace.workflow.job import job
    from neuralrace.workflow.stopping import Stopped

    failed, result = True, None
    # what went wrong is told by the job, in the terminal and in its log
    with suppress(Exception, Stopped), job(request["name"], request["log"], alone=True) as this:
        run = import_module(f"neuralrace.workflow.{request['job']}").run
        result = run(this, **request["arguments"])
        failed = False
    return {"failed": failed, "result": result, "megabytes": _megabytes()}


def _megabytes() -> int:
    """Memory that this process holds now."""
    import psutil

    return psutil.Process().memory_info().rss // 10**6


if __name__ == "__main__":
    # who started this process has blocked it; see `workers.Worker`
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # what libraries print is no reply
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    main(int(sys.argv[1]), sys.argv[2] == "gpu", sys.stdin, answers)
