"""Interrupting a run: what Snakemake's process does at SIGINT, SIGTERM and SIGHUP.

Snakemake would raise KeyboardInterrupt wherever its main thread is, a second time inside the
handling of the first, and report each job that ends as a failure. Here a signal raises nothing: a
thread stops the jobs, which write checkpoints, and lets the scheduler finish. A signal that was
ignored when the process started stays ignored, here and in the workers: this is how a shell
protects commands behind `&` from Ctrl-C.
"""

import logging
import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any

from neuralrace.workflow.pool import WorkerPool
from neuralrace.workflow.shutdown import SIGNALS, handleable

REPEATED = 2.0
"""Signals within this many seconds of the first are taken for the same request."""


class Interrupts:
    """The signals to a process that plans and runs the workflow.

    Attributes:
        requested: name of the first signal, such as `SIGINT`; empty before.
        cancelling: whether jobs are being stopped because the scheduler failed.
    """

    def __init__(self, command: Sequence[str]):
        """Handles signals from now on: until `attach`, they end the process at once.

        Args:
            command: what continues the run, for the message.
        """
        self.requested = ""
        self.cancelling = False
        self._command = command
        self._workers = WorkerPool()
        self._end: Callable[[], None] = self._exit_before_jobs
        self._raises = False
        self._since = 0.0
        # the handler may interrupt the main thread while it holds any lock: it only writes a byte
        self._received, self._sent = os.pipe()
        os.set_blocking(self._sent, False)
        self._numbers = handleable()
        self._install()
        logging.raiseExceptions = False  # of Snakemake's log on a full disk
        Thread(target=self._watch, daemon=True).start()

    def attach(self, workflow: Any, workers: WorkerPool) -> None:
        """Stops this workflow of Snakemake at a signal, or if its scheduler fails.

        Args:
            workflow: Snakemake's workflow, whose scheduler is about to start.
            workers: run its jobs.
        """
        scheduler = workflow.scheduler
        self._workers = workers
        self._raises = not workflow.local_exec
        self._end = scheduler.exit_gracefully
        self._install()  # the scheduler has set a handler of its own
        self._supervise(scheduler)

    def exit_if_requested(self, kept: str) -> None:
        """Ends the process with the usual exit status, 130 for SIGINT, if a signal has come.

        Args:
            kept: what is kept, for the message.
        """
        if self.requested:
            for number in self._numbers:  # Python would restore the default before its end
                signal.signal(number, signal.SIG_IGN)
            self._print(kept)
            sys.exit(_status(self.requested))

    def _supervise(self, scheduler: Any) -> None:
        """Stops the jobs of a scheduler that ends before they do, and reports why it ends.

        Snakemake itself would wait for them, and then neither call `onerror` nor explain an
        `OSError`.
        """
        from snakemake.exceptions import WorkflowError, print_exception
        from snakemake.logging import logger

        executor, schedule = scheduler._executor, scheduler.schedule
        cancel = executor.cancel
        logger.addFilter(self._shown)

        def stop_and_cancel() -> None:
            self.cancelling = True
            self._stop_jobs()
            if hasattr(executor, "wait_thread"):
                # it would wait for the next look at the queue, up to minutes
                executor.shutdown = lambda: shutil.rmtree(executor.tmpdir, ignore_errors=True)
            cancel()
            self.cancelling = False

        def schedule_or_report() -> bool:
            try:
                return schedule()
            except WorkflowError as error:
                print_exception(error, scheduler.workflow.linemaps)
            except OSError as error:
                path = error.filename2 or error.filename or ".snakemake"
                problem = f"{path}: cannot be read or written ({error.strerror})"
                print(f"error: {problem}", file=sys.stderr)
            return False

        executor.cancel, scheduler.schedule = stop_and_cancel, schedule_or_report

    def _stop_jobs(self) -> None:
        self._workers.stop(self.requested or "the end of the run")

    def _install(self) -> None:
        for number in SIGNALS:
            handler = self._note if number in self._numbers else signal.SIG_IGN
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        if not self.requested:
            self.requested, self._since = signal.Signals(number).name, time.monotonic()
        with suppress(OSError):  # the pipe is full: there was a storm of signals
            os.write(self._sent, bytes([number]))
        if self._raises:  # an executor of a cluster cancels its jobs at KeyboardInterrupt alone
            self._raises = False
            raise KeyboardInterrupt

    def _watch(self) -> None:
        os.read(self._received, 1)
        self._stop_jobs()
        self._end()
        while os.read(self._received, 1):
            if time.monotonic() - self._since > REPEATED:
                self._workers.kill()

    def _exit_before_jobs(self) -> None:
        self._print("before any job; nothing was changed")
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(_status(self.requested))

    def _print(self, kept: str) -> None:
        line = f"stopped by {self.requested}: {kept}. To continue: {shlex.join(self._command)}"
        with suppress(OSError, ValueError):  # the terminal was closed
            print(line, file=sys.stderr, flush=True)

    def _shown(self, _: logging.LogRecord) -> bool:
        """Whether Snakemake prints lines: none about jobs that are being stopped."""
        return not (self.requested or self.cancelling)


@cache
def interrupts() -> Interrupts:
    """The handling of signals of this process, from the first call on."""
    return Interrupts(_this_command())


def _this_command() -> list[str]:
    """The command line of this process, as a person would type it."""
    program, *arguments = sys.argv
    if module := sys.modules["__main__"].__spec__:
        return ["python", "-m", module.name.removesuffix(".__main__"), *arguments]
    name = Path(program).name
    return [name if shutil.which(name) == program else os.path.relpath(program), *arguments]


def kept_results(workflow: Any, results: Path) -> str:
    """What is kept of a run that was stopped, in words."""
    done, checkpoints = workflow.scheduler.finished_jobs, results / "checkpoints"
    text = f"{done} of {len(workflow.dag)} jobs are finished and kept"
    if count := sum(1 for _ in checkpoints.rglob("*.npz")):
        text += f", and {count} {'checkpoint' if count == 1 else 'checkpoints'} of training"
    return text


def _status(name: str) -> int:
    return 128 + signal.Signals[name]
