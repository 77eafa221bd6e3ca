"""Judgement of claims and findings, and comparison with their known status."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import xarray as xr
from jaxtyping import Float
from pydantic import Field
from scipy import stats

from neuralrace.claims.measure import paired, per_seed
from neuralrace.claims.setup import differences
from neuralrace.claims.spec import (
    Alternative,
    Claim,
    ClaimFile,
    Claims,
    Finding,
    FindingStatus,
    Grade,
    Kind,
    Measure,
    OverSeeds,
    Relation,
    Setup,
    Statement,
    Status,
    Verdict,
    errors_located,
    matching_cells,
    read_claims,
)
from neuralrace.claims.variants import (
    WORDS,
    VariantTable,
    VariantVerdict,
    Varied,
    judged_as,
    varied_statements,
)
from neuralrace.config.cell import Cell
from neuralrace.config.variants import VARIANT_SETS, VariantSet
from neuralrace.extensions.model import ConfigModel
from neuralrace.results.cells import Results, open_results

CONFIDENCE = 0.95
RESAMPLES = 9999


class JudgedAlternative(ConfigModel):
    """An alternative, judged as if it were the claim: it must be contradicted."""

    name: str
    measured: float | None = None
    """As for the claim itself."""
    interval: tuple[float, float] | None = None
    """Low and high end."""
    verdict: Verdict
    fails: bool
    """Whether it is contradicted."""
    source: str | None = None
    """Source of the number of a rival theory."""


class Row(ConfigModel):
    """A row of the tables: a judged statement. Claims and findings share these columns."""

    id: str
    paper: str
    kind: Kind
    statement: str
    surprise: str | None = None
    """Differences from the known outcome: another status, an alternative that does not fail, or a
    verdict that changes with our own settings."""
    verdict: Verdict | None = None
    """Whether the interval lies inside the allowed range, outside or across its edge, or is
    undefined."""
    relation: Relation | None = None
    expected: float | None = None
    tolerance: float | None = None
    measured: float | None = None
    """Mean or median over seeds, or the worst seed."""
    interval: tuple[float, float] | None = None
    """Low and high end."""
    interval_is: str | None = None
    """The kind of interval, in words."""
    seeds: int | None = None
    undefined_seeds: int | None = None
    """Seeds without a finite value; one is enough to leave a claim undefined."""
    alternatives: tuple[JudgedAlternative, ...] = ()
    """Rivals that must fail."""
    depends: str | None = None
    """A choice of ours on which the verdict is known to depend."""
    reason: str | None = None
    """Why the statement does not hold, or is not known to."""
    blind: VariantVerdict | None = None
    """The verdict with fresh seeds, where the set `blind` has it."""
    ranges: tuple[VariantVerdict, ...] = ()
    """The verdicts with our own settings doubled, where the set `ranges` has them."""
    evidence: tuple[str, ...] = ()
    """The metrics files that were read."""
    metrics: dict[str, tuple[str, ...]] = Field(default={})
    """Metrics that were read, each with its cells, `paper/experiment/label`."""
    figure: str | None = None
    source: str | None = None
    """Source of the expected value."""
    why: str | None = None
    """The reason for the tolerance."""


class ClaimRow(Row):
    """A judged claim."""

    title: str
    """Title of the paper."""
    sentence: int
    """Number of its quote among the distinct quotes of the paper, from 1. Claims of one sentence
    have one status together; see `neuralrace.claims.sentences`."""
    locator: str
    quote: str
    status: Status
    grade: Grade | None = None
    """How much falls with a statement that is wrong."""
    weak: bool = False
    """Whether each of its alternatives is a number, and none a rival that was measured."""
    source_setup: Setup
    """The paper's set-up, as far as it is printed."""
    differs: tuple[str, ...] = ()
    """Differences from that set-up: computed from the specifications, then in words."""
    identity: str | None = None
    analogue: str | None = None
    argument: str | None = None
    fair: str | None = None
    follows_from: str | None = None
    corrected_by: str | None = None


class FindingRow(Row):
    """A judged finding."""

    status: FindingStatus


R = TypeVar("R", bound=Row)


def judge_papers(
    claim_files: Sequence[Path], results_root: Path, cell_ids: Sequence[str]
) -> tuple[list[ClaimRow], list[FindingRow]]:
    """Reads claim files, `config/<paper>/claims.yaml`, and judges them; see `judge_claims`."""
    return judge_claims(read_claims(claim_files), results_root, cell_ids)


def judge_claims(
    claims: Claims,
    results_root: Path,
    cell_ids: Sequence[str],
    tables: Mapping[VariantSet, VariantTable] = MappingProxyType({}),
    expected: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[list[ClaimRow], list[FindingRow]]:
    """Judges every claim and finding from metrics files.

    Args:
        claims: of all papers; see `neuralrace.claims.spec.read_claims`.
        results_root: folder that holds `<cell id>/metrics.nc`.
        cell_ids: all configured cells, `paper/experiment/label`.
        tables: verdicts on variants of the cells, where there are any.
        expected: by cell, checksum of the specification that each of its files must have.

    Raises:
        UserError: a mistake in a claim, or a metrics file that is missing, damaged or of another
            specification.
    """
    results = open_results(results_root, cell_ids, expected=expected)
    claim_rows, finding_rows = [], []
    for file, content in claims.items():
        paper = file.parent.name
        for claim in content.claims:
            with errors_located(file, claim):
                claim_rows.append(_claim_row(claim, content, paper, results, tables))
        for finding in content.findings:
            with errors_located(file, finding):
                finding_rows.append(_finding_row(finding, paper, results, tables))
    return claim_rows, finding_rows


def known_claims(claims: Claims) -> tuple[list[ClaimRow], list[FindingRow]]:
    """Claims and findings as they are known to come out, without numbers: nothing is read."""
    claim_rows, finding_rows = [], []
    for file, content in claims.items():
        paper = file.parent.name
        claim_rows += [
            ClaimRow(
                **_written(claim, paper) | _written_claim(claim, content),
                status=claim.expect,
                differs=claim.differs,
            )
            for claim in content.claims
        ]
        finding_rows += [
            FindingRow(**_written(finding, paper), status=finding.expect)
            for finding in content.findings
        ]
    return claim_rows, finding_rows


def judge_variants(
    claims: Claims,
    cells: Mapping[str, Cell],
    root: Path,
    group: VariantSet,
    failed: Mapping[str, str],
) -> dict[str, Varied]:
    """Judges every claim and finding on the variants of a set that apply to it.

    Args:
        claims: of all papers.
        cells: all configured cells, without changes, by `paper/experiment/label`.
        root: the results folder, with the metrics of the variants in `variants/<group>`.
        group: the set of variants.
        failed: runs that failed, `paper/experiment/variant/label`, with their error message.

    Raises:
        UserError: a metrics file that is missing or damaged.
    """
    folder = root / "variants" / group
    results = {variant: open_results(folder, cells, variant) for variant in VARIANT_SETS[group]}
    own = open_results(root, cells)
    judged: dict[str, list[VariantVerdict]] = {}
    of: dict[str, Statement] = {}
    for statement, variant, varied in varied_statements(claims, cells, group):
        places = [results[variant][cell].folder.relative_to(folder) for cell in varied]
        failures = [failed[str(place)] for place in places if str(place) in failed]
        outcome = {} if failures else judge(statement, results[variant])
        cell = next(iter(varied.values()))
        verdict = VariantVerdict(
            variant=variant,
            seeds=(cell.first_seed, cell.first_seed + cell.seeds - 1),
            verdict=outcome.get("verdict", "undefined"),
            measured=outcome.get("measured"),
            interval=outcome.get("interval"),
            told=failures[0] if failures else None,
        )
        judged.setdefault(statement.id, []).append(verdict)
        of[statement.id] = statement
    return {
        name: Varied(judged_as=judged_as(of[name], own), verdicts=tuple(verdicts))
        for name, verdicts in judged.items()
    }


def _claim_row(
    claim: Claim,
    content: ClaimFile,
    paper: str,
    results: Results,
    tables: Mapping[VariantSet, VariantTable],
) -> ClaimRow:
    differs = (*differences(claim, content.setups[claim.setup], results), *claim.differs)
    columns = _judged(claim, paper, results, tables) | _written_claim(claim, content)
    status = _status(claim, columns, differs)
    unknown = None if status == claim.expect else f"known as {claim.expect}, came out {status}"
    surprise = _surprise(columns, unknown)
    return ClaimRow(**columns, status=status, differs=differs, surprise=surprise)


def _status(claim: Claim, columns: Mapping[str, Any], differs: Sequence[str]) -> Status:
    """The status that follows from a verdict, if one was reached."""
    verdict = columns.get("verdict")
    if verdict is None:
        return "wrong" if claim.argument else "not assessed"
    if verdict == "contradicted" and claim.argument:
        return "wrong"
    if verdict not in ("holds", "contradicted") or not _confirmed(columns):
        return "undecided"
    if {"holds", "contradicted"} <= {verdict, *(each.verdict for each in columns["ranges"])}:
        return "depends on"
    if verdict == "contradicted":
        return "not reproduced" if differs else "wrong"
    if claim.identity:
        return "identity"
    return "analogue" if claim.analogue else "reproduced"


def _finding_row(
    finding: Finding, paper: str, results: Results, tables: Mapping[VariantSet, VariantTable]
) -> FindingRow:
    columns = _judged(finding, paper, results, tables)
    statuses: dict[Verdict, FindingStatus]
    statuses = {"holds": "holds", "contradicted": "does not hold"}
    status = statuses.get(columns["verdict"], "undecided") if _confirmed(columns) else "undecided"
    unknown = None if status == finding.expect else f"known as {finding.expect}, came out {status}"
    return FindingRow(**columns, status=status, surprise=_surprise(columns, unknown))


def _confirmed(columns: Mapping[str, Any]) -> bool:
    """Whether fresh seeds give the same verdict, as far as they were tried."""
    blind = columns.get("blind")
    return blind is None or blind.verdict == columns["verdict"]


def _judged(
    statement: Statement, paper: str, results: Results, tables: Mapping[VariantSet, VariantTable]
) -> dict[str, Any]:
    """The columns of a `Row`."""
    columns = _written(statement, paper)
    if statement.judged:
        columns |= judge(statement, results)
        columns["alternatives"] = tuple(
            judge_alternative(alternative, statement, results)
            for alternative in statement.alternatives
        )
        found = {group: table.of(statement, results) for group, table in tables.items()}
        columns["blind"] = next(iter(found.get("blind", ())), None)
        columns["ranges"] = found.get("ranges", ())
    return columns


def _written(statement: Statement, paper: str) -> dict[str, Any]:
    """The columns of a `Row` that are copied from a claim file."""
    copied = ("id", "kind", "statement", "relation", "figure", "depends", "reason")
    return {name: getattr(statement, name) for name in copied} | {
        "paper": paper,
        "expected": statement.expected.value if statement.expected else None,
        "tolerance": statement.tolerance.value if statement.tolerance else None,
        "source": statement.expected.source if statement.expected else None,
        "why": statement.tolerance.why if statement.tolerance else None,
    }


def _written_claim(claim: Claim, content: ClaimFile) -> dict[str, Any]:
    """The columns that a `ClaimRow` has besides, as far as they are copied."""
    copied = (
        *("locator", "quote", "grade", "identity", "analogue"),
        *("argument", "fair", "follows_from", "corrected_by"),
    )
    rivals = claim.alternatives
    return {name: getattr(claim, name) for name in copied} | {
        "title": content.source.title,
        "sentence": content.sentence(claim),
        "weak": bool(rivals) and all(rival.value is not None for rival in rivals),
        "source_setup": content.setups[claim.setup],
    }


def _surprise(columns: Mapping[str, Any], unknown: str | None) -> str | None:
    """An unknown outcome, and alternatives that do not fail, in words."""
    passing = [each.name for each in columns.get("alternatives", ()) if not each.fails]
    powerless = f"has no power against: {', '.join(passing)}" if passing else None
    lost = lost_with(columns.get("ranges", ()), columns.get("verdict"))
    changed = None
    if lost and not columns["depends"]:
        changed = f"the verdict changes with {', '.join(lost)}; say on what it depends"
    return "; ".join(filter(None, (unknown, powerless, changed))) or None


def lost_with(variants: Sequence[VariantVerdict], verdict: Verdict | None) -> list[str]:
    """The variants with another verdict, in words."""
    return [WORDS[each.variant] for each in variants if each.verdict != verdict]


def judge(statement: Statement, results: Results) -> dict[str, Any]:
    """Judges a claim or finding over seeds, without its alternatives.

    Equality, slope, qualitative and ordering are judged by the confidence interval of the mean or
    median over seeds, or by the worst seed where `over_seeds` is `worst`. A bound is always judged
    by the worst seed. An ordering is judged by its pair of neighbours whose interval reaches
    lowest: where that pair holds, all do.

    Returns:
        Columns of a `Row`: verdict, measured value, interval, seeds, evidence and metrics.

    Raises:
        UserError: a measure that cannot be evaluated.
    """
    samples = _samples(statement.levels, results)
    globs: dict[str, list[str]] = {}
    for measure in statement.measures():
        globs.setdefault(measure.metric, []).extend(measure.cells)
    metrics = {name: tuple(matching_cells(each, list(results))) for name, each in globs.items()}
    cells = sorted({cell for names in metrics.values() for cell in names})
    return {
        **_outcome(statement, samples),
        "seeds": samples.shape[1],
        "undefined_seeds": int((~np.isfinite(samples)).any(axis=0).sum()),
        "evidence": tuple(results[cell].path("metrics").as_posix() for cell in cells),
        "metrics": metrics,
    }


def judge_alternative(
    alternative: Alternative, statement: Statement, results: Results
) -> JudgedAlternative:
    """Judges an alternative by the expected value and tolerance of its statement.

    Raises:
        UserError: a measure that cannot be evaluated.
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
