"""Interrupting a run: what Snakemake's process does at SIGINT, SIGTERM and SIGHUP.

Snakemake would raise KeyboardInterrupt wherever its main thread is, a second time inside the
handling of the first, and report each job that ends as a failure. Here a signal raises nothing: a
thread stops the jobs, which write checkpoints, and lets the scheduler finish. A signal that was
ignored when the process started stays ignored, here and in the workers: this is how a shell
protects commands behind `&` from Ctrl-C. A pipe that nobody reads any more counts as a signal too.
"""

import logging
import os
import select
import shlex
import shutil
import signal
import stat
import sys
import time
from _thread import interrupt_main
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any

from neuralrace.errors import counted
from neuralrace.workflow.pool import WorkerPool
from neuralrace.workflow.shutdown import SIGNALS, handleable

REPEATED = 2.0
"""Signals within this many seconds of the first are taken for the same request."""
LOST = 10.0
"""Seconds after the end of all jobs in which the scheduler must end: a message that could not be
written may have kept the end of a job from it."""


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
        self._workflow: Any = None
        self._results = Path()
        self._remote = self._raised = False
        self._since = 0.0
        # the handler may interrupt the main thread while it holds any lock: it only writes a byte
        self._received, self._sent = os.pipe()
        os.set_blocking(self._sent, False)
        self._numbers = handleable()
        self._install()
        logging.raiseExceptions = False  # of Snakemake's log on a full disk
        Thread(target=self._watch, daemon=True).start()

    def attach(self, workflow: Any, workers: WorkerPool, results: Path) -> None:
        """Stops this workflow of Snakemake at a signal, or if its scheduler fails.

        Args:
            workflow: Snakemake's workflow, whose scheduler is about to start.
            workers: run its jobs.
            results: the results folder.
        """
        self._workers, self._results = workers, results
        self._remote, self._workflow = not workflow.local_exec, workflow
        self._install()  # the scheduler has set a handler of its own
        self._supervise(workflow.scheduler)

    def exit_if_requested(self) -> None:
        """Ends the process with the usual exit status, 130 for SIGINT, if a signal has come."""
        if self.requested:
            for number in self._numbers:  # Python would restore the default before its end
                signal.signal(number, signal.SIG_IGN)
            sys.exit(self._farewell())

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
        if self._remote and not self._raised:
            self._raised = True  # at this alone, an executor of a cluster cancels its jobs
            raise KeyboardInterrupt

    def _watch(self) -> None:
        """Waits for signals and for output that nobody reads, and ends the run."""
        waiting = select.poll()
        waiting.register(self._received, select.POLLIN)
        pipes = {output: _is_pipe(output) for output in (1, 2) if _is_open(output)}
        for output in pipes:
            waiting.register(output, 0)  # an error is always an event
        ended = 0.0
        while True:
            for file, _ in waiting.poll(1000 if self.requested else None):
                if file == self._received:
                    os.read(file, 1)
                else:
                    waiting.unregister(file)
                    with open(os.devnull, "wb") as nowhere:  # writing raises no error then
                        os.dup2(nowhere.fileno(), file)
                    if not pipes[file]:  # a terminal that is closed sends SIGHUP as well
                        continue
                    self.requested = self.requested or signal.SIGPIPE.name
                if not ended:
                    self._stop_jobs()
                    self._end()
                elif time.monotonic() - self._since > REPEATED:
                    self._workers.kill()
                ended = time.monotonic()
            if self._workers.busy or self._remote:
                ended = time.monotonic()
            elif time.monotonic() - ended > LOST:
                self._exit_now()

    def _end(self) -> None:
        self._since = self._since or time.monotonic()
        if self._workflow is None:
            self._exit_now()
        if self._remote and not self._raised:
            interrupt_main(signal.SIGTERM)
        self._workflow.scheduler.exit_gracefully()

    def _exit_now(self) -> None:
        status = self._farewell()
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(status)

    def _farewell(self) -> int:
        """Prints what is kept; returns the exit status."""
        kept = self._kept() if self._workflow else "before any job; nothing was changed"
        line = f"stopped by {self.requested}: {kept}. To continue: {shlex.join(self._command)}"
        with suppress(OSError, ValueError):  # nobody reads it any more
            print(line, file=sys.stderr, flush=True)
        return 128 + signal.Signals[self.requested]

    def _kept(self) -> str:
        done, jobs = self._workflow.scheduler.finished_jobs, len(self._workflow.dag)
        text = f"{done} of {jobs} jobs are finished and kept"
        checkpoints = sum(1 for _ in (self._results / "checkpoints").rglob("*.npz"))
        return f"{text}, and {counted(checkpoints, 'checkpoint')}" if checkpoints else text

    def _shown(self, _: logging.LogRecord) -> bool:
        """Whether Snakemake prints lines: none about jobs that are being stopped."""
        return not (self.requested or self.cancelling)


@cache
def interrupts() -> Interrupts:
    """The handling of signals of this process, from the first call on."""
    return Interrupts(_this_command())


def _is_open(file: int) -> bool:
    with suppress(OSError):
        return bool(os.fstat(file))
    return False


def _is_pipe(file: int) -> bool:
    return stat.S_ISFIFO(os.fstat(file).st_mode)


def _this_command() -> list[str]:
    """The command line of this process, as a person would type it."""
    program, *arguments = sys.argv
    if module := sys.modules["__main__"].__spec__:
        return ["python", "-m", module.name.removesuffix(".__main__"), *arguments]
    name = Path(program).name
    return [name if shutil.which(name) == program else os.path.relpath(program), *arguments]
