"""What comes out of a claim or finding, and whether that was known."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import numpy as np
import xarray as xr
from jaxtyping import Float
from pydantic import Field
from scipy import stats

from neuralrace.claims.blind import Blind, BlindVerdict, Trial, Trials, blind_verdict, trials_of
from neuralrace.claims.measure import paired, per_seed
from neuralrace.claims.setup import differences
from neuralrace.claims.spec import (
    Alternative,
    Claim,
    Claims,
    Finding,
    Kind,
    Measure,
    OverSeeds,
    Relation,
    Setup,
    Statement,
    Status,
    Verdict,
    matching_cells,
    naming,
    read_claims,
)
from neuralrace.config.cell import Cell
from neuralrace.config.robustness import DOUBLED
from neuralrace.extensions.model import ConfigModel
from neuralrace.results.cells import Results, open_results

FindingStatus = Literal["holds", "does not hold", "undecided"]

CONFIDENCE = 0.95
RESAMPLES = 9999


class JudgedAlternative(ConfigModel):
    """An alternative, held against the claim that it must fail."""

    name: str
    measured: float | None = None
    """As for the claim itself."""
    interval: tuple[float, float] | None = None
    """Low and high end."""
    verdict: Verdict
    """What the claim would say of it."""
    fails: bool
    """Whether the claim refuses it: it is contradicted."""
    source: str | None = None
    """Where the number of a rival theory comes from."""


class Row(ConfigModel):
    """A judged statement, as it stands in the table; claims and findings share these."""

    id: str
    paper: str
    kind: Kind
    statement: str
    surprise: str | None = None
    """What is not as it is known to be: the outcome, or an alternative that does not fail."""
    verdict: Verdict | None = None
    """What came out: the interval lies inside what the claim allows, outside, across its edge, or
    is undefined."""
    relation: Relation | None = None
    expected: float | None = None
    tolerance: float | None = None
    measured: float | None = None
    """Mean or median over seeds, or the worst seed."""
    interval: tuple[float, float] | None = None
    """Low and high end."""
    interval_is: str | None = None
    """What the interval is."""
    seeds: int | None = None
    undefined_seeds: int | None = None
    """Seeds without a finite value; one is enough to leave a claim undefined."""
    alternatives: tuple[JudgedAlternative, ...] = ()
    """What must fail, and does."""
    depends: str | None = None
    """On what of ours the verdict is known to depend."""
    blind: BlindVerdict | None = None
    """What came out on seeds that nobody looked at; absent before `make blind`."""
    evidence: tuple[str, ...] = ()
    """The metrics files that were read."""
    metrics: dict[str, tuple[str, ...]] = Field(default={})
    """Metrics that were read, each with its cells, `paper/experiment/label`."""
    figure: str | None = None
    source: str | None = None
    """Where the expected value comes from."""
    why: str | None = None
    """What the tolerance allows for."""


class ClaimRow(Row):
    """A judged claim."""

    locator: str
    quote: str
    status: Status
    """What was decided."""
    source_setup: Setup
    """The paper's set-up, as far as it is printed."""
    differs: tuple[str, ...] = ()
    """What is otherwise here: computed from the specifications, and in words."""
    reason: str | None = None
    argument: str | None = None
    fair: str | None = None
    corrected_by: str | None = None


class FindingRow(Row):
    """A judged finding."""

    status: FindingStatus
    """What was decided."""


R = TypeVar("R", bound=Row)


def judge_papers(
    claim_files: Sequence[Path],
    results_root: Path,
    cell_ids: Sequence[str],
    blind: Blind = MappingProxyType({}),
    expected: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[list[ClaimRow], list[FindingRow]]:
    """Every claim of the papers and every finding, judged from metrics files.

    Args:
        claim_files: `config/<paper>/claims.yaml`.
        results_root: folder that holds `<cell id>/metrics.nc`.
        cell_ids: all cells that there are, `paper/experiment/label`.
        blind: what came out on fresh seeds, where that was looked at.
        expected: by cell, digest of the specification that each of its files must have.

    Raises:
        UserError: a mistake in a claim, or a metrics file that is missing, damaged or of another
            specification.
    """
    results = open_results(results_root, cell_ids, expected=expected)
    claims, findings = [], []
    for file, written in read_claims(claim_files).items():
        for claim in written.claims:
            with naming(file, claim):
                setup = written.setups[claim.setup]
                differs = (*differences(claim, setup, results), *claim.differs)
                row = _claim_row(claim, setup, differs, file.parent.name, results)
                claims.append(_after(row, claim, blind))
        for finding in written.findings:
            with naming(file, finding):
                row = _finding_row(finding, file.parent.name, results)
                findings.append(_after(row, finding, blind))
    return claims, findings


def judge_blind(
    claims: Claims, cells: Mapping[str, Cell], root: Path, failed: Mapping[str, str]
) -> dict[str, Trials]:
    """Judges every claim and finding on all variants of its cells that concern it.

    Args:
        claims: of all papers.
        cells: all cells that there are, as they are configured.
        root: folder of the variants' metrics.
        failed: what could not be run, `paper/experiment/variant/label`, and why.

    Raises:
        UserError: a metrics file that is missing or damaged.
    """
    results = {variant: open_results(root, cells, variant) for variant in DOUBLED}
    judged: dict[str, list[Trial]] = {}
    about: dict[str, tuple[str, tuple[int, int]]] = {}
    for statement, variant, varied_cells in trials_of(claims, cells):
        folders = [results[variant][cell].folder for cell in varied_cells]
        places = [folder.relative_to(root).as_posix() for folder in folders]
        broken = [failed[place] for place in places if place in failed]
        if broken:
            trial = Trial(variant=variant, verdict="undefined", told=broken[0])
        else:
            outcome = judge(statement, results[variant])
            trial = Trial(
                variant=variant,
                verdict=outcome["verdict"],
                measured=outcome.get("measured"),
                interval=outcome.get("interval"),
            )
        judged.setdefault(statement.id, []).append(trial)
        first = next(iter(varied_cells.values()))
        about[statement.id] = statement.judged_as(), (first.first_seed, first.seeds)
    return {
        name: Trials(judged_as=about[name][0], seeds=about[name][1], trials=tuple(trials))
        for name, trials in judged.items()
    }


def _after(row: R, statement: Statement, blind: Blind) -> R:
    """The row with what came out blindly; a verdict that does not survive is a surprise."""
    trials = blind.get(row.id)
    if trials is None or row.verdict is None or trials.judged_as != statement.judged_as():
        return row
    verdict = blind_verdict(trials, row.verdict, row.measured)
    lost = None
    if not verdict.survives and not row.depends:
        lost = f"does not survive {', '.join(verdict.lost)}; say on what it depends"
    told = "; ".join(filter(None, (row.surprise, lost))) or None
    return row.model_copy(update={"blind": verdict, "surprise": told})


def _claim_row(
    claim: Claim, setup: Setup, differs: tuple[str, ...], paper: str, results: Results
) -> ClaimRow:
    told = _told(claim, paper, results)
    wrong: Status = "differs here" if differs and not claim.argument else "discrepant"
    statuses: dict[Verdict | None, Status]
    statuses = {None: "not assessed", "holds": "reproduced", "contradicted": wrong}
    status = statuses.get(told.get("verdict"), "undecided")
    unknown = None if status == claim.expect else f"known as {claim.expect}, came out {status}"
    copied = ("locator", "quote", "reason", "argument", "fair", "corrected_by")
    return ClaimRow(
        **told,
        status=status,
        surprise=_surprise(told, unknown),
        source_setup=setup,
        differs=differs,
        **{name: getattr(claim, name) for name in copied},
    )


def _finding_row(finding: Finding, paper: str, results: Results) -> FindingRow:
    told = _told(finding, paper, results)
    statuses: dict[Verdict, FindingStatus]
    statuses = {"holds": "holds", "contradicted": "does not hold"}
    status = statuses.get(told["verdict"], "undecided")
    unknown = None if status == "holds" else f"known to hold, came out {status}"
    return FindingRow(**told, status=status, surprise=_surprise(told, unknown))


def _told(statement: Statement, paper: str, results: Results) -> dict[str, Any]:
    """What claims and findings share, in a row."""
    own = ("id", "kind", "statement", "relation", "figure", "depends")
    told: dict[str, Any] = {name: getattr(statement, name) for name in own} | {
        "paper": paper,
        "expected": statement.expected.value if statement.expected else None,
        "tolerance": statement.tolerance.value if statement.tolerance else None,
        "source": statement.expected.source if statement.expected else None,
        "why": statement.tolerance.why if statement.tolerance else None,
    }
    if statement.judged:
        told |= judge(statement, results)
        told["alternatives"] = tuple(
            judge_alternative(alternative, statement, results)
            for alternative in statement.alternatives
        )
    return told


def _surprise(told: Mapping[str, Any], unknown: str | None) -> str | None:
    """What is not as it is known to be: the outcome, or an alternative that does not fail."""
    passing = [each.name for each in told.get("alternatives", ()) if not each.fails]
    powerless = f"has no power against: {', '.join(passing)}" if passing else None
    return "; ".join(filter(None, (unknown, powerless))) or None


def judge(statement: Statement, results: Results) -> dict[str, Any]:
    """What comes out of a claim or finding over seeds, leaving its alternatives aside.

    Equality, slope, qualitative and ordering are judged on the confidence interval of the mean or
    median over seeds, or on the worst seed where they say so, as a bound always is. An ordering is
    as good as the pair of neighbours whose interval reaches lowest: all pairs hold where that one
    does.

    Returns:
        Keys of a `Row`: verdict, measured value, interval, seeds, evidence and metrics.

    Raises:
        UserError: a measure that cannot be taken.
    """
    samples = _samples(statement.levels, results)
    globs: dict[str, list[str]] = {}
    for measure in statement.measures():
        globs.setdefault(measure.metric, []).extend(measure.cells)
    metrics = {name: tuple(matching_cells(each, list(results))) for name, each in globs.items()}
    read = sorted({cell for cells in metrics.values() for cell in cells})
    return {
        **_outcome(statement, samples),
        "seeds": samples.shape[1],
        "undefined_seeds": int((~np.isfinite(samples)).any(axis=0).sum()),
        "evidence": tuple(results[cell].path("metrics").as_posix() for cell in read),
        "metrics": metrics,
    }


def judge_alternative(
    alternative: Alternative, statement: Statement, results: Results
) -> JudgedAlternative:
    """What a claim or finding would say of something that it must refuse.

    Raises:
        UserError: a measure that cannot be taken.
    """
    if alternative.value is not None:
        samples = np.array([[alternative.value]])
    else:
        levels = alternative.measures(statement)
        samples = _samples(levels, results, shuffled=alternative.shuffled)
    outcome = _outcome(statement, samples)
    return JudgedAlternative(
        name=alternative.name,
        measured=outcome.get("measured"),
        interval=outcome.get("interval"),
        verdict=outcome["verdict"],
        fails=outcome["verdict"] == "contradicted",
        source=alternative.source,
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


def confidence_interval(
    sample: Float[np.ndarray, " seed"], statistic: OverSeeds
) -> tuple[float, float]:
    """Interval over seeds at `CONFIDENCE`; the value itself for a single seed.

    Student's t for a mean, the percentile bootstrap for a median, the range for the worst seed.
    """
    if statistic == "worst" or len(sample) == 1:
        return float(sample.min()), float(sample.max())
    if statistic == "median":
        if np.ptp(sample) == 0:
            return float(sample[0]), float(sample[0])
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
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)
    half = float(quantile * np.std(sample, ddof=1) / np.sqrt(n))
    return mean - half, mean + half


INTERVALS: dict[OverSeeds, str] = {
    "mean": f"{CONFIDENCE:.0%} confidence interval of the mean over seeds (Student t)",
    "median": f"{CONFIDENCE:.0%} confidence interval of the median over seeds (bootstrap)",
    "worst": "range over seeds",
}


def _samples(
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


def _outcome(statement: Statement, samples: Float[np.ndarray, "step seed"]) -> dict[str, Any]:
    """Verdict, measured value and interval."""
    if statement.expected is None or statement.tolerance is None:
        raise ValueError(f"{statement.id}: has nothing to be judged by")
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
    if statistic == "worst":  # one seed beyond what is allowed contradicts it
        measured = max(interval, key=lambda end: max(low - end, end - high))
        decisive = measured, measured
    else:
        measured = float(np.median(sample) if statistic == "median" else np.mean(sample))
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
