"""Warm workers: processes that live as long as Snakemake, and run the jobs of its rules.

To start Python and import JAX takes three core-seconds, and to compile a program half of one; most
jobs take less. So a job is handed to a process that has done both before.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from threading import Lock
from typing import IO, Any, cast

from neuralrace.errors import UserError

Kind = tuple[int, bool]
"""Threads that a worker computes with, and whether on a GPU, which is its own until it ends."""
LASTING_MB = 1000
"""Memory that a worker may hold between two jobs, as compiled programs and what leaks add up.

With what a job is estimated to take beside a process that has just begun, it is less than the twice
of the estimate that a cluster is asked for.
"""


class Worker:
    """A process that runs jobs; see `neuralrace.workflow.worker`."""

    def __init__(self, kind: Kind):
        threads, gpu = kind
        device = "gpu" if gpu else "cpu"
        self.kind = kind
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "neuralrace.workflow.worker", str(threads), device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self.requests = cast(IO[str], self.process.stdin)
        self.replies = cast(IO[str], self.process.stdout)

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """What it answers to a job.

        Raises:
            UserError: it ended meanwhile.
        """
        line = ""
        with suppress(OSError):  # it ended before it could read the job
            print(json.dumps(request), file=self.requests, flush=True)
            line = self.replies.readline()
        if not line:
            raise UserError(f"{request['name']}: {_ended(self.process.wait())}")
        return json.loads(line)

    def end(self) -> None:
        """Ends it, if it has not ended."""
        with suppress(OSError):  # of what it did not read
            self.requests.close()
        self.process.wait()
        self.replies.close()


class Workers:
    """The workers of a Snakemake process: as many as there are jobs at once."""

    def __init__(self) -> None:
        """None is started before there is a job."""
        self._idle: list[Worker] = []
        self._busy = 0
        self._lock = Lock()

    def run(
        self, job: str, name: str, log: str, arguments: Any, threads: int = 1, gpu: bool = False
    ) -> Any:
        """Runs a job in a worker, and waits for its end.

        Args:
            job: module of `neuralrace.workflow` whose function `run` it calls.
            name: what messages call it.
            log: where they go, beside the terminal.
            arguments: of the function, by name; plain values.
            threads: to compute with, where it is not on a GPU.
            gpu: whether to compute on a GPU.

        Returns:
            What the function returns, a plain value.

        Raises:
            UserError: the job failed, or its worker ended; others go on.
        """
        # one worker for all jobs of a GPU: it keeps it, and another kind would wait for it forever
        worker = self._take((1 if gpu else threads, gpu))
        request = {"job": job, "name": name, "log": log, "arguments": arguments}
        reply: dict[str, Any] = {}
        try:
            reply = worker.run(request)
        finally:
            self._give_back(worker, reply.get("megabytes"))
        if reply["failed"]:
            raise UserError(f"{name} failed; its message stands above and in {log}")
        return reply["result"]

    def _take(self, kind: Kind) -> Worker:
        with self._lock:
            self._busy += 1
            alike = [worker for worker in self._idle if worker.kind == kind]
            if alike:
                self._idle.remove(alike[0])
                return alike[0]
            # memory is for those at work; who has a GPU keeps it
            others = [worker for worker in self._idle if not worker.kind[1]]
            surplus = others[: max(self._busy + len(others) - (os.cpu_count() or 1), 0)]
            self._idle = [worker for worker in self._idle if worker not in surplus]
        for worker in surplus:
            worker.end()
        return Worker(kind)

    def _give_back(self, worker: Worker, megabytes: int | None) -> None:
        """Keeps a worker for the next job, unless it has ended or holds too much memory."""
        lasting = megabytes is not None and megabytes < LASTING_MB
        with self._lock:
            self._busy -= 1
            if lasting:
                self._idle.append(worker)
        if not lasting:
            worker.end()


def _ended(status: int) -> str:
    """What to tell of a worker that ended in the middle of a job."""
    if status != -signal.SIGKILL:
        return f"its process ended with exit status {status}; the same command goes on"
    return (
        "its process was killed (SIGKILL), as Linux does where memory runs out; the same command "
        "goes on, with fewer jobs at once if you lower --cores"
    )
