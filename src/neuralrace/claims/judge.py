"""Judgement of claims and findings, and comparison with their known status."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from pydantic import Field

from neuralrace.claims.ranges import Range, ranges_of
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
    Premises,
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
    VariantTable,
    VariantVerdict,
    Varied,
    at_variant,
    judged_as,
    varied_statements,
)
from neuralrace.claims.verdict import outcome_of, samples_of
from neuralrace.config.cell import Cell
from neuralrace.config.variants import VariantSet
from neuralrace.extensions.model import ConfigModel
from neuralrace.results.cells import Results, open_results


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
    """Differences from the known outcome: another status, or an alternative that does not fail."""
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
    ranges: tuple[Range, ...] = ()
    """The verdicts at other values of settings, where they were tried."""
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
    authors: str
    """Its authors."""
    summary: str | None = None
    """What was found of the paper."""
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
                finding_rows.append(_finding_row(finding, content, paper, results, tables))
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
                differs=_differs_in_words(claim, content),
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
    variant_results = cache(lambda variant: open_results(folder, cells, variant.name))
    judged: dict[str, list[VariantVerdict]] = {}
    of: dict[str, Statement] = {}
    for statement, variant, varied in varied_statements(claims, cells, group):
        results = variant_results(variant)
        places = [results[cell].folder.relative_to(folder) for cell in varied]
        failures = [failed[str(place)] for place in places if str(place) in failed]
        outcome = {} if failures else judge(at_variant(statement, variant), results)
        cell = next(iter(varied.values()))
        verdict = VariantVerdict(
            setting=variant.setting,
            factor=variant.factor,
            seeds=(cell.first_seed, cell.first_seed + cell.seeds - 1),
            verdict=outcome.get("verdict", "undefined"),
            measured=outcome.get("measured"),
            interval=outcome.get("interval"),
            told=failures[0] if failures else None,
        )
        judged.setdefault(statement.id, []).append(verdict)
        of[statement.id] = statement
    return {
        name: Varied(
            judged_as=judged_as(of[name], cells, lambda cell: cells[cell].sha256()),
            verdicts=tuple(verdicts),
        )
        for name, verdicts in judged.items()
    }


def _claim_row(
    claim: Claim,
    content: ClaimFile,
    paper: str,
    results: Results,
    tables: Mapping[VariantSet, VariantTable],
) -> ClaimRow:
    computed = differences(claim, content.setups[claim.setup], results)
    differs = (*computed, *_differs_in_words(claim, content))
    columns = _judged(claim, content, paper, results, tables) | _written_claim(claim, content)
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
    if any(each.turns for each in columns["ranges"]):
        return "depends on"
    if verdict == "contradicted":
        return "not reproduced" if differs else "wrong"
    if claim.identity:
        return "identity"
    return "analogue" if claim.analogue else "reproduced"


def _finding_row(
    finding: Finding,
    content: ClaimFile,
    paper: str,
    results: Results,
    tables: Mapping[VariantSet, VariantTable],
) -> FindingRow:
    columns = _judged(finding, content, paper, results, tables)
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
    statement: Claim | Finding,
    content: ClaimFile,
    paper: str,
    results: Results,
    tables: Mapping[VariantSet, VariantTable],
) -> dict[str, Any]:
    """The columns of a `Row`."""
    columns = _written(statement, paper)
    if statement.judged:
        columns |= judge(statement, results)
        columns["alternatives"] = tuple(
            judge_alternative(alternative, statement, results)
            for alternative in statement.alternatives
        )
        factors = content.ranges | statement.ranges
        checksum = judged_as(statement, results, partial(_specification, results))
        found = {group: table.of(statement, checksum, factors) for group, table in tables.items()}
        columns["blind"] = next(iter(found.get("blind", ())), None)
        premises: Premises = {}
        if isinstance(statement, Claim):
            premises = content.setups[statement.setup].premises | statement.premises
        columns["ranges"] = ranges_of(
            statement, columns, results, found.get("ranges", ()), premises
        )
    return columns


def _specification(results: Results, cell: str) -> str:
    return results[cell].attributes("metrics")["spec_sha256"]


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


def _differs_in_words(claim: Claim, content: ClaimFile) -> tuple[str, ...]:
    """Differences that the specifications do not show: of the set-up, then of the claim alone."""
    return (*content.setups[claim.setup].differs, *claim.differs)


def _written_claim(claim: Claim, content: ClaimFile) -> dict[str, Any]:
    """The columns that a `ClaimRow` has besides, as far as they are copied."""
    copied = (
        *("locator", "quote", "grade", "identity", "analogue"),
        *("argument", "fair", "follows_from", "corrected_by"),
    )
    rivals = claim.alternatives
    return {name: getattr(claim, name) for name in copied} | {
        "title": content.quoted.title,
        "authors": content.quoted.authors,
        "summary": content.summary,
        "sentence": content.sentence(claim),
        "weak": bool(rivals) and all(rival.value is not None for rival in rivals),
        "source_setup": content.setups[claim.setup],
    }


def _surprise(columns: Mapping[str, Any], unknown: str | None) -> str | None:
    """An unknown outcome, and alternatives that do not fail, in words."""
    passing = [each.name for each in columns.get("alternatives", ()) if not each.fails]
    powerless = f"has no power against: {', '.join(passing)}" if passing else None
    return "; ".join(filter(None, (unknown, powerless))) or None


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
    samples = samples_of(statement.levels, results)
    globs: dict[str, list[str]] = {}
    for measure in statement.measures():
        globs.setdefault(measure.metric, []).extend(measure.cells)
    metrics = {name: tuple(matching_cells(each, list(results))) for name, each in globs.items()}
    cells = sorted({cell for names in metrics.values() for cell in names})
    return {
        **outcome_of(statement, statement.levels, samples),
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
        levels, samples = (), np.array([[alternative.value]])
    else:
        levels = alternative.levels(statement)
        samples = samples_of(levels, results, shuffled=alternative.shuffled)
    outcome = outcome_of(statement, levels, samples)
    return JudgedAlternative(
        name=alternative.name,
        measured=outcome.get("measured"),
        interval=outcome.get("interval"),
        verdict=outcome["verdict"],
        fails=outcome["verdict"] == "contradicted",
        source=alternative.source,
    )
