"""Graceful shutdown on SIGTERM and SIGINT.

SIGTERM comes from a scheduler, or to a worker whose Snakemake ended; SIGINT from a person.

A request ends the work at once. Work that can keep what it has done holds requests back until it
has; work that ends first is done.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """Somebody asked this process to end; the message says who, and what is kept.

    No `Exception`: who goes on after errors is not to go on after this.
    """


def _stop(message: str) -> None:
    raise Stopped(message)


class Requests:
    """Requests to end this process.

    Attributes:
        asked: name of the signal that asked first, `SIGTERM` or `SIGINT`; empty as long as none
            did. Schedulers send several, and to every process of a job: one is answered.
    """

    def __init__(self, end: Callable[[str], None] = _stop) -> None:
        """Nobody asked, and nothing listens.

        Args:
            end: ends the work, given a message; raises `Stopped` when absent.
        """
        self.asked = ""
        self._end = end
        self._held = False

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Inside, a request ends the work in the main thread, which this is called from."""
        before = {number: signal.signal(number, self._ask) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside, a request is noted alone: the work looks at `asked`, or ends first."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def _ask(self, number: int, _: FrameType | None) -> None:
        if self.asked:
            return
        self.asked = signal.Signals(number).name
        if not self._held:
            self._end(f"stopped by {self.asked}; the same command makes what is missing")


def handle_snakemake_signals(interrupted: Callable[[], None]) -> None:
    """Has signals to Snakemake answered at once; to be called once its own handlers are set.

    Its handler of SIGTERM waits for a lock, which the thread that it interrupts may hold: for ever.
    So it runs in a thread of its own. At SIGINT it waits for running jobs to end, which are threads
    here and hear of no signal that is sent to Snakemake alone.

    Args:
        interrupted: has running jobs end; is called at SIGINT, before what was set for it.
    """
    terminate = signal.getsignal(signal.SIGTERM)
    if callable(terminate):
        signal.signal(signal.SIGTERM, lambda *told: Thread(target=terminate, args=told).start())
    interrupt = signal.getsignal(signal.SIGINT)
    if callable(interrupt):

        def stop(number: int, frame: FrameType | None) -> None:
            interrupted()
            interrupt(number, frame)

        signal.signal(signal.SIGINT, stop)
