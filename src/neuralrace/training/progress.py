"""Lines of progress for people, every few seconds."""

import time
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

# Seconds between two lines.
INTERVAL = 2.0


class Progress:
    """How far a training is and how long it will still take.

    Args:
        done: steps that were made before.
        steps: all steps.
        report: takes a line.
    """

    def __init__(self, done: int, steps: int, report: Callable[[str], None]):
        self.first, self.steps, self.report = done, steps, report
        self.began = self.called = self.reported = time.monotonic()

    def update(self, done: int, losses: Float[np.ndarray, " run"], made: int) -> int:
        """Reports a line, where the last one is long ago or training has ended.

        Args:
            done: steps made by now.
            losses: last known of all runs; NaN where a run has diverged.
            made: steps made since the last time.

        Returns:
            How many to make until the next time, for lines and answers to signals to come in time.
        """
        now = time.monotonic()
        took, self.called = now - self.called, now
        if now - self.reported > INTERVAL or done == self.steps:
            self.reported = now
            left = (now - self.began) * (self.steps - done) / (done - self.first)
            healthy = losses[np.isfinite(losses)]
            loss = f"median loss {np.median(healthy):.3g}" if healthy.size else "all diverged"
            self.report(f"step {done}/{self.steps}, {loss}, {left:.0f} s left")
        return max(int(INTERVAL * made / max(took, 1e-3)), 1)
