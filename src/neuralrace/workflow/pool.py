"""Worker pool: warm processes that run jobs, for as long as their Snakemake lives.

Starting Python and importing JAX takes three core-seconds, and compiling a program half a
core-second. Most jobs take less, so each job runs in a process that has done both before.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import IO, Any, cast

from neuralrace.errors import UserError
from neuralrace.training.processors import usable_cores
from neuralrace.workflow.job import STOPPED

IDLE_MB = 1000
"""Most megabytes that an idle worker may hold; one that holds more is replaced.

Compiled programs add up, and libraries leak. A cluster is asked for twice the estimated memory of
a job in a fresh process; this limit keeps a used worker below that.
"""


class Worker:
    """A process that runs jobs; see `neuralrace.workflow.worker`.

    Attributes:
        threads: number of threads that it computes with.
        gpu: whether it computes on a GPU, which it keeps until it ends.
    """

    def __init__(self, threads: int, gpu: bool):
        """Starts the process.

        Raises:
            UserError: no process can be started, for lack of memory or process numbers.
        """
        self.threads, self.gpu = threads, gpu
        device = "gpu" if gpu else "cpu"
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
                f"no process can be started ({error.strerror})",
                remedy="run the same command again, with a lower --cores for fewer jobs at once",
            ) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self.requests = cast(IO[str], self.process.stdin)
        self.replies = cast(IO[str], self.process.stdout)

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Runs a job; returns the reply.

        Raises:
            UserError: the process ended before it replied.
        """
        line = ""
        with suppress(OSError, ValueError):  # the process ended before it could read the request
            print(json.dumps(request), file=self.requests, flush=True)
            line = self.replies.readline()
        if line:
            return json.loads(line)
        status = self.process.wait()
        if status == STOPPED:
            raise UserError(f"{request['name']}: stopped", remedy="run the same command again")
        if status == -signal.SIGKILL:
            raise UserError(
                f"{request['name']}: its process was killed (SIGKILL), as Linux does when memory "
                "runs out",
                remedy="run the same command again, with a lower --cores for fewer jobs at once",
            )
        raise UserError(
            f"{request['name']}: its process ended with exit status {status}",
            remedy="run the same command again",
        )

    def request_shutdown(self, name: str) -> None:
        """Asks its job to end, and closes its input; a training writes a checkpoint.

        Args:
            name: who asks, such as a signal.
        """
        with suppress(OSError, ValueError):  # the process has ended, or was asked before
            print(json.dumps({"stop": name}), file=self.requests, flush=True)
        with suppress(OSError):  # the process ended with a request unread
            self.requests.close()

    def end(self) -> None:
        """Shuts the idle process down and waits for its end."""
        self.request_shutdown("the end of its work")
        self.process.wait()
        self.replies.close()


class WorkerPool:
    """The workers of a Snakemake process: one for each job that runs at the same time."""

    def __init__(self) -> None:
        """Starts no worker before the first job."""
        self._idle: list[Worker] = []
        self._reserved = 0  # jobs that have a worker or are about to
        self._working: list[Worker] = []
        self._stopped = False
        self._lock = Lock()

    def run(
        self,
        job: str,
        name: str,
        log: str,
        arguments: Any,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        threads: int = 1,
        gpu: bool = False,
    ) -> Any:
        """Runs a job in a worker, and waits for its end.

        Args:
            job: stage, the module of `neuralrace.workflow` whose function `run` is called.
            name: of the cell, figure, experiment or table; messages begin with it.
            log: path of the log.
            arguments: of the function, by name; values that JSON can hold.
            inputs: paths of the files to read.
            outputs: paths of the files to write.
            threads: number of threads to compute with; 1 on a GPU.
            gpu: whether to compute on a GPU.

        Returns:
            The return value of the function, a value that JSON can hold.

        Raises:
            UserError: the job failed, its worker ended, or `stop` was called.
        """
        request = {"job": job, "name": name, "log": log, "arguments": arguments}
        request |= {"inputs": list(inputs), "outputs": list(outputs)}
        worker, reply = None, dict[str, Any]()
        with self._lock:
            self._reserved += 1
        try:
            # a worker keeps its GPU; one with other threads would wait for that GPU for ever
            worker = self._acquire(1 if gpu else threads, gpu)
            self._working.append(worker)
            # checked after the append: either `stop` finds the worker, or this finds `_stopped`
            if self._stopped:
                raise UserError(
                    f"{name}: not started, as this run ends", remedy="run the same command again"
                )
            reply = worker.run(request)
        finally:
            self._release(worker, reply.get("megabytes"))
        if reply["stopped"]:
            raise UserError(f"{name}: {reply['stopped']}")
        if reply["failed"]:
            raise UserError(f"{name} failed; its message is above and in {log}")
        return reply["result"]

    @property
    def busy(self) -> bool:
        """Whether a job runs or is about to."""
        return self._reserved > 0

    def stop(self, name: str) -> None:
        """Shuts down all working workers and accepts no more jobs; does not wait.

        Args:
            name: who asks, such as a signal.
        """
        self._stopped = True
        for worker in tuple(self._working):
            worker.request_shutdown(name)

    def kill(self) -> None:
        """Kills all working workers: a training loses its steps since the last checkpoint."""
        for worker in tuple(self._working):
            worker.process.kill()

    def _acquire(self, threads: int, gpu: bool) -> Worker:
        """An idle worker with these threads and device, or a new one."""
        with self._lock:
            surplus = [worker for worker in self._idle if worker.process.poll() is not None]
            alive = [worker for worker in self._idle if worker not in surplus]
            suitable = [w for w in alive if (w.threads, w.gpu) == (threads, gpu)][:1]
            if not suitable:
                # end idle workers so that there are at most as many workers as processors: memory
                # is for those that work. GPU workers stay.
                others = [worker for worker in alive if not worker.gpu]
                surplus += others[: max(self._reserved + len(others) - usable_cores(), 0)]
            self._idle = [worker for worker in alive if worker not in (*surplus, *suitable)]
        for worker in surplus:
            worker.end()
        return suitable[0] if suitable else Worker(threads, gpu)

    def _release(self, worker: Worker | None, megabytes: int | None) -> None:
        """Keeps a worker for the next job, unless it has ended or holds too much memory."""
        with self._lock:
            self._reserved -= 1
            self._working = [other for other in self._working if other is not worker]
            # the libraries of a GPU alone take more memory than the limit
            if worker and megabytes is not None and (worker.gpu or megabytes < IDLE_MB):
                self._idle.append(worker)
                return
        if worker:
            worker.end()
