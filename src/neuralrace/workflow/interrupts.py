"""Interrupting a run: what Snakemake's process does at SIGINT, SIGTERM and SIGHUP.

By default, Snakemake raises KeyboardInterrupt wherever its main thread is, a second time while the
first is being handled, and reports each job that ends as a failure. Here a thread stops the jobs,
which write checkpoints, and lets the scheduler finish. A signal that was ignored when the process
started stays ignored, here and in the workers: this is how shells protect commands behind `&` from
Ctrl-C. An output pipe whose reader has exited also stops the run.
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
from collections.abc import Callable, Sequence
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
"""Signals within this many seconds of the first one count as the same request; later ones kill."""
LOST = 10.0
"""Grace period, in seconds, for the scheduler to exit once no job is running. It may hang if a
failed write kept it from seeing that a job had finished."""


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
        self._first = self._last = 0.0  # times of signals
        # the main thread may hold a lock when the handler runs, so the handler only writes a byte
        self._received, self._sent = os.pipe()
        os.set_blocking(self._sent, False)
        self._numbers = handleable()
        self._install()
        logging.raiseExceptions = False  # no traceback if Snakemake's log is on a full disk
        Thread(target=self._watch, daemon=True).start()

    def attach(
        self,
        workflow: Any,
        workers: WorkerPool,
        results: Path,
        report: Callable[[Exception], None],
    ) -> None:
        """Stops this workflow of Snakemake at a signal, or if its scheduler fails.

        Args:
            workflow: Snakemake's workflow, whose scheduler is about to start.
            workers: run its jobs.
            results: the results folder.
            report: prints an error of the scheduler.
        """
        self._workers, self._results = workers, results
        self._remote, self._workflow = not workflow.local_exec, workflow
        self._install()  # the scheduler has set a handler of its own
        self._supervise(workflow.scheduler, report)

    def exit_if_requested(self) -> None:
        """Ends the process with the usual exit status, 130 for SIGINT, if a signal has come."""
        if self.requested:
            for number in self._numbers:  # Python would restore the default before its end
                signal.signal(number, signal.SIG_IGN)
            self._farewell()
            sys.exit(self._status)

    def _supervise(self, scheduler: Any, report: Callable[[Exception], None]) -> None:
        """Stops running jobs if the scheduler fails, and reports the cause.

        Snakemake itself would wait for the jobs, and would then neither call `onerror` nor explain
        an `OSError`.
        """
        executor, schedule = scheduler._executor, scheduler.schedule
        cancel = executor.cancel
        logging.getLogger("snakemake.logging").addFilter(self._shown)

        def stop_and_cancel() -> None:
            self.cancelling = True
            self._stop_jobs()
            if hasattr(executor, "wait_thread"):
                # it would wait for the next query of the queue, up to minutes
                executor.shutdown = lambda: shutil.rmtree(executor.tmpdir, ignore_errors=True)
            try:
                cancel()
            finally:
                self.cancelling = False

        def schedule_or_report() -> bool:
            try:
                return schedule()
            except OSError as error:
                path = error.filename2 or error.filename or "Snakemake failed"
                print(f"error: {path}: {error.strerror or error}", file=sys.stderr)
            except Exception as error:
                report(error)
            return False

        executor.cancel, scheduler.schedule = stop_and_cancel, schedule_or_report

    def _stop_jobs(self) -> None:
        self._workers.stop(self.requested or "the end of the run")

    def _install(self) -> None:
        for number in SIGNALS:
            handler = self._note if number in self._numbers else signal.SIG_IGN
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        self._last = time.monotonic()
        if not self.requested:
            self.requested, self._first = signal.Signals(number).name, self._last
        with suppress(OSError):  # the pipe is full: there was a storm of signals
            os.write(self._sent, bytes([number]))
        if self._remote and not self._raised:
            self._raised = True  # executors of clusters cancel their jobs only at this
            raise KeyboardInterrupt

    def _watch(self) -> None:
        """Waits for a signal, or for the end of a reader of the output, and ends the run."""
        waiting = select.poll()
        waiting.register(self._received, select.POLLIN)
        pipes = {output: _is_pipe(output) for output in (1, 2) if _is_open(output)}
        for output in pipes:
            waiting.register(output, 0)  # errors are always reported

        def asked(milliseconds: int | None = None) -> bool:
            events = waiting.poll(milliseconds)
            for file, _ in events:
                if file == self._received:
                    os.read(file, 1)
                    continue
                waiting.unregister(file)
                with open(os.devnull, "wb") as nowhere:  # so that writing raises no error
                    os.dup2(nowhere.fileno(), file)
            # a terminal that is closed sends SIGHUP, which may be ignored
            return any(file == self._received or pipes[file] for file, _ in events)

        while not asked():
            pass
        self.requested = self.requested or signal.SIGPIPE.name
        self._first = self._first or time.monotonic()
        self._stop_jobs()
        self._end()
        idle_since = time.monotonic()
        while self._remote or time.monotonic() - idle_since < LOST:
            if asked(1000) and self._last - self._first > REPEATED:
                self._workers.kill()
            if self._workers.busy:
                idle_since = time.monotonic()
        self._exit_now()

    def _end(self) -> None:
        if self._workflow is None:
            return self._exit_now()
        if self._remote and not self._raised:
            interrupt_main(self._numbers[0])  # there was no signal, but a reader has exited
        return self._workflow.scheduler.exit_gracefully()

    def _exit_now(self) -> None:
        try:
            self._farewell()
            sys.stdout.flush()
        finally:
            os._exit(self._status)

    @property
    def _status(self) -> int:
        return 128 + signal.Signals[self.requested]

    def _farewell(self) -> None:
        """Prints what is kept and how to continue."""
        kept = "no job had started" if self._workflow is None else self._kept()
        line = f"stopped by {self.requested}: {kept}. To resume, run: {shlex.join(self._command)}"
        with suppress(OSError, ValueError):  # the terminal or the reader is gone
            print(line, file=sys.stderr, flush=True)

    def _kept(self) -> str:
        done, jobs = self._workflow.scheduler.finished_jobs, len(self._workflow.dag)
        text = f"{done} of {jobs} jobs completed"
        with suppress(OSError):
            if checkpoints := sum(1 for _ in (self._results / "checkpoints").rglob("*.npz")):
                own = "its checkpoint" if checkpoints == 1 else "their checkpoints"
                unfinished = counted(checkpoints, "unfinished training run")
                text += f"; {unfinished} will resume from {own}"
        return text

    def _shown(self, _: logging.LogRecord) -> bool:
        """Whether Snakemake's lines are shown: none while jobs are being stopped."""
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
