"""Verdicts: the measured interval of a statement, against the range that it allows."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy import special

from neuralrace.claims.measure import paired, per_seed
from neuralrace.claims.spec import Kind, Measure, OverSeeds, Relation, Statement
from neuralrace.extensions.registry import METRICS
from neuralrace.results.cells import Results

CONFIDENCE = 0.95
RESAMPLES = 9999


def allowed(
    kind: Kind, relation: Relation | None, expected: float, tolerance: float
) -> tuple[float, float]:
    """The closed range of measured values that a claim allows."""
    if kind == "ordering":
        least = expected - tolerance
        return float(np.nextafter(least, np.inf)), np.inf  # equal neighbours are not ordered
    low = -np.inf if relation == "<=" else expected - tolerance
    high = np.inf if relation == ">=" else expected + tolerance
    return low, high


def confidence_interval(
    sample: Float[np.ndarray, " seed"], statistic: OverSeeds
) -> tuple[float, float]:
    """Interval over seeds at level `CONFIDENCE`; the value itself for a single seed.

    Student's t for a mean, the percentile bootstrap for a median, the range for the worst seed.
    """
    if statistic == "worst" or len(sample) == 1:
        return float(sample.min()), float(sample.max())
    if statistic == "median":
        if np.ptp(sample) == 0:
            return float(sample[0]), float(sample[0])
        from scipy import stats  # importing it takes as long as judging all else

        drawn = stats.bootstrap(
            (sample,),
            np.median,
            n_resamples=RESAMPLES,
            confidence_level=CONFIDENCE,
            method="percentile",
            rng=np.random.default_rng(0),
        )
        return float(drawn.confidence_interval.low), float(drawn.confidence_interval.high)
    n, mean = len(sample), float(np.mean(sample))
    quantile = special.stdtrit(n - 1, (1 + CONFIDENCE) / 2)
    half = float(quantile * np.std(sample, ddof=1) / np.sqrt(n))
    return mean - half, mean + half


INTERVALS: dict[OverSeeds, str] = {
    "mean": f"{CONFIDENCE:.0%} confidence interval of the mean over seeds (Student t)",
    "median": f"{CONFIDENCE:.0%} confidence interval of the median over seeds (bootstrap)",
    "worst": "range over seeds",
}


def samples_of(
    levels: Sequence[Measure], results: Results, shuffled: bool = False
) -> Float[np.ndarray, "step seed"]:
    """Measured values by seed; for a sequence, the increases between neighbours."""
    values = [per_seed(level, results, shuffled) for level in levels]
    if len(values) > 1:
        values = [
            (after.roll(seed=-1) if shuffled and "seed" in after.dims else after) - before
            for before, after in pairwise(paired(values))
        ]
    return np.stack([np.atleast_1d(value.values) for value in xr.broadcast(*values)])


def are_shares(levels: Sequence[Measure]) -> bool:
    """Whether a measured value is a share, from 0 to 1, and no difference, ratio or slope."""
    if len(levels) != 1:
        return False
    (measure,) = levels
    if measure.minus or measure.over or measure.fit or measure.crossing:
        return False
    return any(measure.metric in entry.declaration.shares.split() for entry in METRICS.values())


def outcome_of(
    statement: Statement, levels: Sequence[Measure], samples: Float[np.ndarray, "step seed"]
) -> dict[str, Any]:
    """Verdict, measured value and interval.

    Student's interval of a share may reach beyond 0 or 1. The true mean does not, so that the part
    from 0 to 1 covers it as often.

    Args:
        statement: says what is expected.
        levels: what was measured; none for a number.
        samples: the measured values.
    """
    if statement.expected is None or statement.tolerance is None:
        raise ValueError(f"{statement.id}: a statement that is not assessed cannot be judged")
    if not np.isfinite(samples).all():
        return {"verdict": "undefined"}
    statistic = statement.statistic
    low, high = allowed(
        statement.kind, statement.relation, statement.expected.value, statement.tolerance.value
    )
    interval, sample = min(
        ((confidence_interval(step, statistic), step) for step in samples),
        key=lambda each: each[0],
    )
    if statistic == "worst":  # a single seed outside the allowed range contradicts the claim
        measured = max(interval, key=lambda end: max(low - end, end - high))
        decisive = measured, measured
    else:
        measured = float(np.median(sample) if statistic == "median" else np.mean(sample))
        if are_shares(levels):
            interval = max(interval[0], 0.0), min(interval[1], 1.0)
        decisive = interval
    if low <= decisive[0] and decisive[1] <= high:
        verdict = "holds"
    elif decisive[1] < low or high < decisive[0]:
        verdict = "contradicted"
    else:
        verdict = "undecided"
    return {
        "verdict": verdict,
        "measured": measured,
        "interval": interval,
        "interval_is": INTERVALS[statistic] if len(sample) > 1 else "the value of a single run",
    }
