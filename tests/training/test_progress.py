"""Progress lines: when they are due, and how long training will still take."""

import numpy as np
import pytest

from neuralrace.training import progress
from neuralrace.training.progress import Progress

LOSSES = np.array([1.0, 3.0, np.nan])


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets; it begins at a large number, as that of a machine does."""
    now = [1e6]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_is_due_after_the_interval_and_at_the_end(clock):
    lines = []
    watch = Progress(0, 100, lines.append)
    for seconds, done in ((1.0, 10), (1.5, 20), (1.0, 30), (0.1, 100)):
        clock[0] += seconds
        watch.update(done, LOSSES, 10)
    assert lines == [
        "step 20/100, median loss 2, 10 s left",
        "step 100/100, median loss 2, 0 s left",
    ]


def test_the_next_call_comes_after_about_an_interval(clock):
    watch = Progress(50, 1000, lambda line: None)
    clock[0] += 0.5
    assert watch.update(60, LOSSES, 10) == 10 * progress.INTERVAL / 0.5


def test_a_continued_training_is_timed_from_where_it_continued(clock):
    lines = []
    watch = Progress(900, 1000, lines.append)
    clock[0] += 10.0
    watch.update(950, np.array([np.nan]), 50)
    assert lines == ["step 950/1000, all diverged, 10 s left"]
