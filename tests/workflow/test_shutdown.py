"""Requests to end are heard once, and when it suits."""

import signal
from threading import Lock

import pytest

from neuralrace.workflow.stopping import Requests, Stopped, handle_snakemake_signals


def ask(name="SIGTERM"):
    signal.raise_signal(signal.Signals[name])


def test_a_request_ends_what_is_done():
    requests = Requests()
    with requests.heard(), pytest.raises(Stopped, match="stopped by SIGTERM; the same command"):
        ask()


def test_work_that_holds_it_back_is_told_and_may_be_completed():
    requests, done = Requests(), []
    with requests.heard():
        with requests.held():
            ask("SIGINT")
            done.append(requests.asked)
        ask()
        done.append("after")
    assert done == ["SIGINT", "after"]


def test_nothing_happens_where_nobody_asks():
    requests = Requests()
    with requests.heard(), requests.held():
        pass
    assert requests.asked == ""


def test_an_error_in_between_is_told_first():
    requests = Requests()

    def work():
        with requests.held():
            ask()
            raise ValueError("of its own")

    with requests.heard(), pytest.raises(ValueError, match="of its own"):
        work()


def test_one_of_many_requests_is_answered():
    requests = Requests()
    with requests.heard():
        with pytest.raises(Stopped, match="SIGTERM"):
            ask()
        ask()
        ask("SIGINT")


def test_handlers_are_those_of_before():
    before = signal.getsignal(signal.SIGTERM)
    with Requests().heard():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_no_error_that_is_gone_on_after():
    assert not issubclass(Stopped, Exception)


@pytest.fixture
def restored():
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_handler_waits_for_a_lock_of_the_thread_that_it_interrupts(restored):
    lock, told, answered = Lock(), [], Lock()
    answered.acquire()

    def handler(number, frame):
        if lock.acquire(timeout=300):  # without a thread of its own it comes to the end of these
            told.append(number)
        answered.release()

    signal.signal(signal.SIGTERM, handler)
    handle_snakemake_signals(lambda: None)
    with lock:
        ask()
        assert told == []
    assert answered.acquire(timeout=300)
    assert told == [signal.SIGTERM]


def test_an_interrupt_reaches_jobs_before_snakemake(restored):
    told = []
    signal.signal(signal.SIGINT, lambda number, frame: told.append(number))
    handle_snakemake_signals(lambda: told.append("jobs"))
    ask("SIGINT")
    assert told == ["jobs", signal.SIGINT]


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN])
def test_what_is_no_function_stays(restored, handler):
    for name in ("SIGTERM", "SIGINT"):
        signal.signal(signal.Signals[name], handler)
    handle_snakemake_signals(lambda: None)
    for name in ("SIGTERM", "SIGINT"):
        assert signal.getsignal(signal.Signals[name]) == handler
