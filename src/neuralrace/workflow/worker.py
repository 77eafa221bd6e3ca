"""Worker process: runs jobs one after the other until its Snakemake ends.

    python -m neuralrace.workflow.worker THREADS GPU

It imports the library once and keeps compiled programs. It reads jobs as lines of JSON from
standard input, and writes one line of JSON in reply to each; messages go to standard error. When
its input ends, as it does however Snakemake ends, the worker shuts down; a training first writes a
checkpoint.

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


def main(threads: int, gpu: bool, requests: TextIO, replies: TextIO) -> None:
    """Runs jobs until there are no more.

    Args:
        threads: number of threads to compute with.
        gpu: whether to compute on a GPU.
        requests: jobs, one per line: `job`, `name`, `log`, `inputs`, `outputs` and `arguments`.
        replies: receives a line for each job: `failed`, `result` and `megabytes`.
    """
    from neuralrace.results.provenance import note_source_files

    note_source_files()  # before importing any module that computes
    from neuralrace.training.environment import set_up_environment

    left_out = set_up_environment(threads, gpu)
    if left_out:
        print(left_out, file=sys.stderr)
    lines: SimpleQueue[str] = SimpleQueue()
    Thread(target=_listen, args=(requests, lines), daemon=True).start()
    # between two jobs, there is no work to keep
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while line := lines.get():
        with suppress(BrokenPipeError):  # Snakemake has ended
            print(json.dumps(_answer(json.loads(line))), file=replies, flush=True)
        gc.collect()
        gc.freeze()  # later collections skip lasting objects; they would take a tenth longer


def _listen(requests: TextIO, lines: "SimpleQueue[str]") -> None:
    """Passes on each line; shuts this process down when the input ends."""
    for line in requests:
        lines.put(line)
    lines.put("")
    os.kill(os.getpid(), signal.SIGTERM)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """Runs a job; returns the reply."""
    from neuralrace.workflow.job import job
    from neuralrace.workflow.shutdown import Stopped

    failed, result = True, None
    files = request["inputs"], request["outputs"]
    # the job itself reports errors, in the terminal and in its log
    with (
        suppress(Exception, Stopped),
        job(request["name"], request["log"], *files, exits=True) as this,
    ):
        run = import_module(f"neuralrace.workflow.{request['job']}").run
        result = run(this, **request["arguments"])
        failed = False
    return {"failed": failed, "result": result, "megabytes": _megabytes()}


def _megabytes() -> int:
    """Resident memory of this process."""
    import psutil

    return psutil.Process().memory_info().rss // 10**6


if __name__ == "__main__":
    # the parent process has blocked SIGINT; see `pool.Worker`
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # libraries may print to standard output: send that to standard error, and keep it for replies
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    main(int(sys.argv[1]), sys.argv[2] == "gpu", sys.stdin, answers)
