"""Graceful shutdown on SIGTERM and SIGINT.

SIGTERM comes from a cluster's scheduler, or to a worker whose Snakemake has ended. SIGINT comes
from a person. A request ends the work at once, unless the work defers it: a training first writes
a checkpoint.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """This process was asked to end; the message names the signal and what is kept.

    It is no `Exception`, so that code which goes on after errors does not go on after this.
    """


def _stop(message: str) -> None:
    raise Stopped(message)


class Shutdown:
    """The request to end this process, if there is one.

    Attributes:
        requested: name of the first signal, `SIGTERM` or `SIGINT`; empty before. Later signals are
            ignored: schedulers send several, and to every process of a job.
    """

    def __init__(self, end: Callable[[str], None] = _stop) -> None:
        """Installs no handlers yet; see `handled`.

        Args:
            end: ends the work, given a message; raises `Stopped` when absent.
        """
        self.requested = ""
        self._end = end
        self._deferred = False

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handles signals in the main thread, which must call this; restores former handlers."""
        before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Only sets `requested` at a signal: the work checks it, or finishes first."""
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.requested:
            return
        self.requested = signal.Signals(number).name
        if not self._deferred:
            self._end(f"stopped by {self.requested}; the same command computes what is missing")


def handle_snakemake_signals(stop_jobs: Callable[[], None]) -> None:
    """Wraps Snakemake's own signal handlers, which must be set already.

    Its handler of SIGTERM waits for a lock that the interrupted thread may hold, so it would wait
    for ever; here it runs in a new thread. At SIGINT Snakemake waits for running jobs. These are
    threads here, and a signal to Snakemake alone does not reach their workers.

    Args:
        stop_jobs: ends running jobs; called at SIGINT, before Snakemake's handler.
    """
    terminate = signal.getsignal(signal.SIGTERM)
    if callable(terminate):
        signal.signal(signal.SIGTERM, lambda *args: Thread(target=terminate, args=args).start())
    interrupt = signal.getsignal(signal.SIGINT)
    if callable(interrupt):

        def stop(number: int, frame: FrameType | None) -> None:
            stop_jobs()
            interrupt(number, frame)

        signal.signal(signal.SIGINT, stop)
