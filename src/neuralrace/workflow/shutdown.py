"""Graceful shutdown of a job.

A request comes as SIGTERM from a cluster's scheduler, as SIGINT from a person, as SIGHUP from a
closed terminal, or from Snakemake through the input of a worker. It ends the work at once, unless
the work defers it: a training first writes a checkpoint.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def handleable() -> tuple[signal.Signals, ...]:
    """The signals of `SIGNALS` that this process does not ignore."""
    return tuple(number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN)


class Stopped(BaseException):
    """This process was asked to end; the message names who asked and what is kept.

    It is no `Exception`, so that code which goes on after errors does not go on after this.
    """


def _stop(message: str) -> None:
    raise Stopped(message)


class Shutdown:
    """The request to end this process, if there is one.

    Attributes:
        requested: name of the first request, such as `SIGTERM`; empty before. Later ones are
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
        """Handles signals in the main thread, which must call this; restores former handlers.

        Signals that were ignored stay ignored.
        """
        before = {
            number: signal.signal(number, lambda number, _: self.request(_name(number)))
            for number in handleable()
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Only sets `requested` at a request: the work checks it, or finishes first."""
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False

    def request(self, name: str) -> None:
        """Asks the work to end.

        Args:
            name: who asks, such as a signal.
        """
        if self.requested:
            return
        self.requested = name
        if not self._deferred:
            self._end(f"stopped by {name}; the same command computes what is missing")


def _name(number: int) -> str:
    return signal.Signals(number).name
