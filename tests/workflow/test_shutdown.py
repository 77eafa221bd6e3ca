"""Graceful shutdown: a signal ends the work at once, or is deferred by it."""

import signal
from threading import Lock

import pytest

from neuralrace.workflow.shutdown import Shutdown, Stopped, handle_snakemake_signals

NUMBERS = (signal.SIGTERM, signal.SIGINT)


def test_a_signal_stops_the_work():
    message = "stopped by SIGTERM; the same command"
    with Shutdown().handled(), pytest.raises(Stopped, match=message):
        signal.raise_signal(signal.SIGTERM)


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


@pytest.fixture
def restored():
    """Restores the signal handlers after the test."""
    before = {number: signal.getsignal(number) for number in NUMBERS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_handler_may_wait_for_a_lock_of_the_interrupted_thread(restored):
    lock, numbers, answered = Lock(), [], Lock()
    answered.acquire()

    def handler(number, frame):
        if lock.acquire(timeout=300):  # in the interrupted thread it would time out
            numbers.append(number)
        answered.release()

    signal.signal(signal.SIGTERM, handler)
    handle_snakemake_signals(lambda: None)
    with lock:
        signal.raise_signal(signal.SIGTERM)
        assert numbers == []
    assert answered.acquire(timeout=300)
    assert numbers == [signal.SIGTERM]


def test_an_interrupt_reaches_jobs_before_snakemake(restored):
    calls = []
    signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    handle_snakemake_signals(lambda: calls.append("jobs"))
    signal.raise_signal(signal.SIGINT)
    assert calls == ["jobs", signal.SIGINT]


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN])
def test_handlers_that_are_no_functions_are_kept(restored, handler):
    for number in NUMBERS:
        signal.signal(number, handler)
    handle_snakemake_signals(lambda: None)
    assert [signal.getsignal(number) for number in NUMBERS] == [handler, handler]
