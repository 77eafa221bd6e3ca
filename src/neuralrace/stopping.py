"""Requests to end: SIGTERM of a scheduler, SIGINT of a person, and the end of who started the jobs.

A request ends the work at once, by an exception. Work that can keep what it has done holds requests
back until it has.
"""

import os
import platform
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LEADER = "NEURALRACE_LEADER"
"""Environment variable that names the process which jobs end with: its machine and number."""


class Stopped(BaseException):
    """Somebody asked this process to end; the message says who, and what is kept.

    No `Exception`: who goes on after errors is not to go on after this.
    """


class Requests:
    """Requests to end this process.

    Attributes:
        asked: name of the signal that asked first, `SIGTERM` or `SIGINT`; empty as long as none
            did. Schedulers send several, and to every process of a job: one is answered.
    """

    def __init__(self) -> None:
        """Nobody asked, and nothing listens."""
        self.asked = ""
        self._held = False

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Inside, a request raises `Stopped` in the main thread, which this is called from."""
        before = {number: signal.signal(number, self._ask) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside, a request is noted alone, and raises `Stopped` at the end of it."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self._stop()

    def _ask(self, number: int, _: FrameType | None) -> None:
        if self.asked:
            return
        self.asked = signal.Signals(number).name
        if not self._held:
            self._stop()

    def _stop(self) -> None:
        if self.asked:
            raise Stopped(f"stopped by {self.asked}; the same command makes what is missing")


def lead() -> None:
    """Makes this process the one that all jobs end with which it starts on this machine.

    A kill does not reach them: they would go on, and beside those of the next run.
    """
    os.environ[LEADER] = f"{platform.node()} {os.getpid()}"


def follow() -> None:
    """Asks this process to end, by SIGTERM, once that which leads it is no more.

    Nothing happens where none leads, or on another machine, or where the system cannot tell.
    """
    machine, _, leader = os.environ.get(LEADER, "").rpartition(" ")
    if machine != platform.node() or not hasattr(os, "pidfd_open"):
        return
    try:
        ended = os.pidfd_open(int(leader))
    except ProcessLookupError:
        os.kill(os.getpid(), signal.SIGTERM)
        return
    except OSError:  # a system that knows the call and forbids it
        return
    Thread(target=_wait, args=(ended,), daemon=True).start()


def _wait(ended: int) -> None:
    select.select([ended], [], [])
    os.kill(os.getpid(), signal.SIGTERM)
