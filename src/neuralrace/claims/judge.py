"""What comes out of a claim, and whether that was known."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy import stats

from neuralrace.base import Strict
from neuralrace.claims.measure import Results, paired, per_seed
from neuralrace.claims.spec import Claim, Kind, Relation, naming, read_claims

CONFIDENCE = 0.95

Verdict = Literal["holds", "contradicted", "undecided", "undefined"]
Status = Literal["reproduced", "discrepant", "not assessed", "failed", "unexpectedly holds"]

SURPRISES: tuple[Status, ...] = ("failed", "unexpectedly holds")


class Row(Strict):
    """A judged claim, as it stands in the table."""

    id: str
    paper: str
    locator: str
    kind: Kind
    statement: str
    status: Status
    """What came out, against what was known to."""
    verdict: Verdict | None = None
    """What came out: the interval lies inside what the claim allows, outside, across its edge, or
    is undefined."""
    relation: Relation | None = None
    expected: float | None = None
    tolerance: float | None = None
    measured: float | None = None
    """Mean over seeds; for a bound, the worst seed."""
    interval: tuple[float, float] | None = None
    """Low and high end."""
    interval_is: str | None = None
    """What the interval is."""
    seeds: int | None = None
    undefined_seeds: int | None = None
    """Seeds without a finite value; one is enough to leave a claim undefined."""
    evidence: tuple[str, ...] = ()
    """The metrics files that were read."""
    figure: str | None = None
    reason: str | None = None
    corrected_by: str | None = None
    source: str | None = None
    """Where the expected value comes from."""
    why: str | None = None
    """What the tolerance allows for."""


def judge_papers(
    claim_files: Sequence[Path], results_root: Path, cell_ids: Sequence[str]
) -> list[Row]:
    """Every claim of the papers, judged from metrics files.

    Args:
        claim_files: `config/claims/<paper>.yaml`.
        results_root: folder that holds `<cell id>/metrics.nc`.
        cell_ids: all cells that there are, `paper/experiment/label`.

    Raises:
        UserError: a mistake in a claim, or a metrics file that is missing or damaged.
    """
    results = Results(results_root, cell_ids)
    rows = []
    for file, claims in read_claims(claim_files).items():
        for claim in claims:
            with naming(file, claim):
                rows.append(judge(claim, file.stem, results))
    return rows


def judge(claim: Claim, paper: str, results: Results) -> Row:
    """One claim, judged over seeds.

    Equality, slope, qualitative and ordering are judged on the confidence interval of the mean over
    seeds, a bound on its worst seed. An ordering is as good as the pair of neighbours whose
    interval reaches lowest: all pairs hold where that one does.

    Raises:
        UserError: a measure that cannot be taken.
    """
    row = Row(
        id=claim.id,
        paper=paper,
        locator=claim.locator,
        kind=claim.kind,
        statement=claim.statement,
        status="not assessed",
        relation=claim.relation,
        expected=claim.expected.value if claim.expected else None,
        tolerance=claim.tolerance.value if claim.tolerance else None,
        figure=claim.figure,
        reason=claim.reason,
        corrected_by=claim.corrected_by,
        source=claim.expected.source if claim.expected else None,
        why=claim.tolerance.why if claim.tolerance else None,
    )
    if claim.expected is None or claim.tolerance is None:
        return row
    samples = _samples(claim, results)
    limits = allowed(claim.kind, claim.relation, claim.expected.value, claim.tolerance.value)
    outcome = _outcome(claim, samples, limits)
    status = {
        ("reproduced", "holds"): "reproduced",
        ("discrepant", "contradicted"): "discrepant",
        ("discrepant", "holds"): "unexpectedly holds",
    }.get((claim.expect, outcome["verdict"]), "failed")
    read = {cell for measure in claim.measures() for cell in results.matching(measure.cells)}
    return row.model_copy(
        update={
            **outcome,
            "status": status,
            "seeds": samples.shape[1],
            "undefined_seeds": int((~np.isfinite(samples)).any(axis=0).sum()),
            "evidence": tuple(results.path(cell).as_posix() for cell in sorted(read)),
        }
    )


def allowed(
    kind: Kind, relation: Relation | None, expected: float, tolerance: float
) -> tuple[float, float]:
    """The closed range that a claim allows its measure; a larger tolerance widens it."""
    if kind == "ordering":
        least = expected - tolerance
        return float(np.nextafter(least, np.inf)), np.inf  # what stays level is not ordered
    low = -np.inf if relation == "<=" else expected - tolerance
    high = np.inf if relation == ">=" else expected + tolerance
    return low, high


def confidence_interval(sample: Float[np.ndarray, " seed"]) -> tuple[float, float]:
    """Student's t interval of the mean at `CONFIDENCE`; the value itself for a single seed."""
    n, mean = len(sample), float(np.mean(sample))
    if n == 1:
        return mean, mean
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)
    half = float(quantile * np.std(sample, ddof=1) / np.sqrt(n))
    return mean - half, mean + half


def _samples(claim: Claim, results: Results) -> Float[np.ndarray, "step seed"]:
    """Measured values by seed; for an ordering, the increases between neighbours."""
    if claim.measure:
        steps = [per_seed(claim.measure, results)]
    else:
        levels = paired([per_seed(level, results) for level in claim.sequence or ()])
        steps = [after - before for before, after in pairwise(levels)]
    return np.stack([np.atleast_1d(step.values) for step in xr.broadcast(*steps)])


def _outcome(
    claim: Claim, samples: Float[np.ndarray, "step seed"], limits: tuple[float, float]
) -> dict[str, Any]:
    """Verdict, measured value and interval."""
    if not np.isfinite(samples).all():
        return {"verdict": "undefined"}
    if claim.kind == "bound":
        interval = float(samples.min()), float(samples.max())
        measured = interval[0] if claim.relation == ">=" else interval[1]
        decisive = measured, measured  # one seed beyond a bound contradicts it
        meaning = "range over seeds"
    else:
        interval, measured = min(
            (confidence_interval(step), float(step.mean())) for step in samples
        )
        decisive = interval
        meaning = f"{CONFIDENCE:.0%} confidence interval of the mean over seeds (Student t)"
    low, high = limits
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
        "interval_is": meaning if samples.shape[1] > 1 else "the value of a single run",
    }
