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
from neuralrace.workflow.job import STOPPED

Kind = tuple[int, bool]
"""Threads that a worker computes with, and whether on a GPU, which is its own until it ends."""
LASTING_MB = 1000
"""Megabytes that a worker may hold between two jobs; one that holds more is replaced.

Compiled programs add up, and libraries leak. A cluster is asked for twice what a job is estimated
to take in a fresh process, and this bound leaves a worn one below that.
"""


class Worker:
    """A process that runs jobs; see `neuralrace.workflow.worker`."""

    def __init__(self, kind: Kind):
        """Starts it.

        Raises:
            UserError: there is no memory for it, or there are too many processes.
        """
        threads, gpu = kind
        device = "gpu" if gpu else "cpu"
        self.kind = kind
        # Ctrl-C reaches the worker too; while Python starts there, it would print a traceback
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "neuralrace.workflow.worker", str(threads), device],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
            )
        except OSError as error:
            raise UserError(
                f"no process can be started ({error.strerror}); the same command goes on, with "
                "fewer jobs at once if you lower --cores"
            ) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self.requests = cast(IO[str], self.process.stdin)
        self.replies = cast(IO[str], self.process.stdout)

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """What it answers to a job.

        Raises:
            UserError: it ended meanwhile.
        """
        line = ""
        with suppress(OSError, ValueError):  # it ended, or was ended, before it could read the job
            print(json.dumps(request), file=self.requests, flush=True)
            line = self.replies.readline()
        if not line and (status := self.process.wait()) != STOPPED:
            raise UserError(f"{request['name']}: {_ended(status)}")
        if not line:
            return {"failed": True}
        return json.loads(line)

    def ask_to_end(self) -> None:
        """Closes its input: it ends as if Snakemake had, a training with a checkpoint."""
        with suppress(OSError):  # of what it did not read
            self.requests.close()

    def end(self) -> None:
        """Ends it, if it has not ended."""
        self.ask_to_end()
        self.process.wait()
        self.replies.close()


class Workers:
    """The workers of a Snakemake process: as many as there are jobs at once."""

    def __init__(self) -> None:
        """None is started before there is a job."""
        self._idle: list[Worker] = []
        self._busy = 0
        self._at_work: list[Worker] = []
        self._stopped = False
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
            UserError: the job failed, or its worker ended, and others go on; or `stop` was called.
        """
        # a worker keeps its GPU, and one of another kind would wait for that forever
        kind = (1 if gpu else threads, gpu)
        request = {"job": job, "name": name, "log": log, "arguments": arguments}
        worker, reply = None, dict[str, Any]()
        with self._lock:
            self._busy += 1
        try:
            worker = self._take(kind)
            self._at_work.append(worker)
            if self._stopped:  # asked for last: `stop` sees the worker, or this sees what it said
                raise UserError(f"{name}: not begun, as this run ends; the same command goes on")
            reply = worker.run(request)
        finally:
            self._give_back(worker, reply.get("megabytes"))
        if reply["failed"]:
            raise UserError(f"{name} failed; its message stands above and in {log}")
        return reply["result"]

    def stop(self) -> None:
        """Asks all workers at work to end, and takes no more jobs; it waits for nothing."""
        self._stopped = True
        for worker in tuple(self._at_work):
            worker.ask_to_end()

    def _take(self, kind: Kind) -> Worker:
        """An idle worker of a kind, or a new one in place of idle ones of other kinds."""
        with self._lock:
            surplus = [worker for worker in self._idle if worker.process.poll() is not None]
            alive = [worker for worker in self._idle if worker not in surplus]
            alike = [worker for worker in alive if worker.kind == kind][:1]
            if not alike:
                # no more workers than processors, as memory is for those at work; a GPU is kept
                others = [worker for worker in alive if not worker.kind[1]]
                surplus += others[: max(self._busy + len(others) - (os.cpu_count() or 1), 0)]
            self._idle = [worker for worker in alive if worker not in (*surplus, *alike)]
        for worker in surplus:
            worker.end()
        return alike[0] if alike else Worker(kind)

    def _give_back(self, worker: Worker | None, megabytes: int | None) -> None:
        """Keeps a worker for the next job, unless it has ended or holds too much memory."""
        with self._lock:
            self._busy -= 1
            self._at_work = [each for each in self._at_work if each is not worker]
            # the libraries of a GPU alone take more than others may hold
            if worker and megabytes is not None and (worker.kind[1] or megabytes < LASTING_MB):
                self._idle.append(worker)
                return
        if worker:
            worker.end()


def _ended(status: int) -> str:
    """What to tell of a worker that ended in the middle of a job."""
    if status != -signal.SIGKILL:
        return f"its process ended with exit status {status}; the same command goes on"
    return (
        "its process was killed (SIGKILL), as Linux does where memory runs out; the same command "
        "goes on, with fewer jobs at once if you lower --cores"
    )
