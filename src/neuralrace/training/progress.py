"""Progress lines of a training."""

import time
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

INTERVAL = 2.0
"""Seconds between two lines."""


class Progress:
    """Reports how far a training is and how long it will still take.

    Args:
        done: steps made before, by a training that is continued.
        steps: steps in all.
        report: called with each line.
    """

    def __init__(self, done: int, steps: int, report: Callable[[str], None]):
        self.first, self.steps, self.report = done, steps, report
        self.began = self.called = self.reported = time.monotonic()

    def update(self, done: int, losses: Float[np.ndarray, " run"], made: int) -> int:
        """Reports a line if the last one is old or training has ended.

        Args:
            done: steps made by now.
            losses: last recorded loss of all runs; NaN for diverged runs.
            made: steps made since the last call.

        Returns:
            Steps to make until the next call: as many as take about `INTERVAL`, so that lines are
            regular and signals are answered soon.
        """
        now = time.monotonic()
        elapsed, self.called = now - self.called, now
        if now - self.reported > INTERVAL or done == self.steps:
            self.reported = now
            left = (now - self.began) * (self.steps - done) / (done - self.first)
            healthy = losses[np.isfinite(losses)]
            loss = f"median loss {np.median(healthy):.3g}" if healthy.size else "all diverged"
            self.report(f"step {done}/{self.steps}, {loss}, {left:.0f} s left")
        return max(int(INTERVAL * made / max(elapsed, 1e-3)), 1)
