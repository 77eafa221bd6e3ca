"""Graceful shutdown: a signal ends the work at once, or is deferred by it."""

import signal
from threading import Thread

import pytest

from inherited import ignoring
from neuralrace.workflow.shutdown import Shutdown, Stopped

NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.fixture(autouse=True)
def none_ignored():
    """Lets signals through that workers of pytest-xdist ignore, such as SIGINT."""
    with ignoring():
        yield


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_stops_the_work(number):
    message = f"stopped by {number.name}; the same command"
    with Shutdown().handled(), pytest.raises(Stopped, match=message):
        signal.raise_signal(number)


def test_deferred_work_sees_the_signal_and_is_completed():
    shutdown, events = Shutdown(), []
    with shutdown.handled():
        with shutdown.deferred():
            signal.raise_signal(signal.SIGINT)
            events.append(shutdown.requested)
        signal.raise_signal(signal.SIGTERM)
        events.append("after")
    assert events == ["SIGINT", "after"]


def test_nothing_happens_without_a_signal():
    shutdown = Shutdown()
    with shutdown.handled(), shutdown.deferred():
        pass
    assert shutdown.requested == ""


def test_an_error_of_deferred_work_is_raised():
    shutdown = Shutdown()

    def work():
        with shutdown.deferred():
            signal.raise_signal(signal.SIGTERM)
            raise ValueError("an error of the work")

    with shutdown.handled(), pytest.raises(ValueError, match="an error of the work"):
        work()


def test_only_the_first_signal_counts():
    with Shutdown().handled():
        with pytest.raises(Stopped, match="SIGTERM"):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)


def test_former_handlers_are_restored():
    before = signal.getsignal(signal.SIGTERM)
    with Shutdown().handled():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_stopped_is_not_caught_as_an_exception():
    assert not issubclass(Stopped, Exception)


@pytest.mark.parametrize("ignored", NUMBERS)
def test_an_ignored_signal_stays_ignored(ignored):
    signal.signal(ignored, signal.SIG_IGN)
    with Shutdown().handled():
        signal.raise_signal(ignored)
    assert signal.getsignal(ignored) == signal.SIG_IGN


def test_a_thread_may_request_the_end_of_deferred_work():
    shutdown = Shutdown()
    with shutdown.deferred():
        thread = Thread(target=shutdown.request, args=["the end of Snakemake"])
        thread.start()
        thread.join()
    assert shutdown.requested == "the end of Snakemake"
