"""Tables of judged claims and findings: JSON and CSV for programs, pages for people."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from pydantic import TypeAdapter

from neuralrace.claims.judge import ClaimRow, FindingRow, Row
from neuralrace.claims.pages import (
    findings_page,
    index_page,
    nearest_rival,
    paper_page,
    surprise_told,
)
from neuralrace.claims.picture import picture
from neuralrace.claims.ranges import Range
from neuralrace.claims.variants import VariantTable
from neuralrace.claims.verdict import allowed
from neuralrace.errors import UserError, counted, shorten
from neuralrace.results.atomic import write_text
from neuralrace.results.cells import folder_path
from neuralrace.results.checksums import check_file, unreadable

R = TypeVar("R", bound=Row)

_CLAIMS = TypeAdapter(list[ClaimRow])
_FINDINGS = TypeAdapter(list[FindingRow])

PAGES = "claims"
"""Folder of the pages of papers, beside the tables."""
CLAIM_COLUMNS = (
    *("paper", "id", "sentence", "locator", "quote", "statement", "status", "grade", "weak"),
    *("verdict", "measured", "low", "high", "seeds", "kind", "relation", "expected", "tolerance"),
    *("rival", "rival_measured", "setup", "differs", "depends", "fresh_verdict", "fresh_measured"),
    *("ranges", "figure", "metrics", "corrected_by", "follows_from", "version"),
)
FINDING_COLUMNS = (
    *("paper", "id", "statement", "status", "verdict", "measured", "low", "high", "seeds", "kind"),
    *("relation", "expected", "tolerance", "rival", "rival_measured", "depends", "fresh_verdict"),
    *("fresh_measured", "ranges", "figure", "metrics", "version"),
)
"""Columns of the CSV tables, to cite and to join; the JSON tables have everything."""


def write_tables(
    claims: Sequence[ClaimRow],
    findings: Sequence[FindingRow],
    folder: Path,
    papers: Sequence[str] = (),
) -> None:
    """Writes the tables of claims and findings, and their pages; each write is atomic.

    These are `claims` and `findings` as `.json`, `.csv` and `.md`, a picture of all verdicts, and a
    page for each paper in a folder. Surprising rows are written too, so that they can be read;
    `refuse_surprises` refuses them.

    Args:
        claims: of all papers.
        findings: of all papers.
        folder: the results folder.
        papers: papers that get a page even if nothing is claimed of them.

    Raises:
        UserError: the folder cannot be written to.
    """
    rows_of: dict[str, list[ClaimRow]] = {paper: [] for paper in papers} | by_paper(claims)
    links = {paper: f"[{paper}]({PAGES}/{paper}.md)" for paper in rows_of}
    texts = {
        "claims.json": _CLAIMS.dump_json(list(claims), indent=2).decode() + "\n",
        "claims.csv": _csv(claims, CLAIM_COLUMNS),
        "claims.svg": picture(claims, f"{PAGES}/{{paper}}.md#{{claim}}".format),
        "claims.md": _page(index_page(claims, links, "claims.svg")),
        "findings.json": findings_json(findings),
        "findings.csv": _csv(findings, FINDING_COLUMNS),
        "findings.md": _page(findings_page(findings)),
    }
    for paper, rows in rows_of.items():
        lines = paper_page(rows) if rows else [f"# {paper}", "", "No claims are written."]
        texts[f"{PAGES}/{paper}.md"] = _page(lines)
    for name, text in texts.items():
        write_text(text, folder / name)


def findings_json(findings: Sequence[FindingRow]) -> str:
    """Findings as JSON."""
    return _FINDINGS.dump_json(list(findings), indent=2).decode() + "\n"


def read_findings(path: Path) -> list[FindingRow]:
    """The rows of a file of findings.

    Raises:
        UserError: it is missing, damaged or another table.
    """
    return _read(path, _FINDINGS.validate_json)


def by_paper(rows: Iterable[ClaimRow]) -> dict[str, list[ClaimRow]]:
    """The claims of each paper."""
    return {paper: list(group) for paper, group in groupby(rows, key=lambda row: row.paper)}


def _page(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def read_tables(folder: Path) -> tuple[list[ClaimRow], list[FindingRow]]:
    """The rows of `claims.json` and of `findings.json`.

    Raises:
        UserError: a file is missing, damaged or another table.
    """
    return (
        _read(folder / "claims.json", _CLAIMS.validate_json),
        read_findings(folder / "findings.json"),
    )


def claims_table(folder: str | Path = "results") -> pd.DataFrame:
    """The judged claims, with a row for each metric and cell that decides a claim.

    Columns: claim, claimed_by (its paper), kind, statement, status, verdict, expected, tolerance,
    measured, seeds; low and high, the ends of its interval; least and most, the ends of the range
    that the claim allows. By the columns metric, paper, experiment and cell the table joins that
    of `neuralrace.to_frame`; they are missing from a claim that is not assessed.

    Args:
        folder: holds `claims.json`.

    Raises:
        UserError: there is no such table, or `folder` is no path.

    Example:
        >>> import neuralrace as nr
        >>> claims = nr.claims_table("results")
        >>> shared = ["paper", "experiment", "cell", "metric"]
        >>> numbers = claims.merge(nr.to_frame("results"), on=shared)
        >>> sorted(set(numbers["metric"])) == sorted(set(claims["metric"].dropna()))
        True
    """
    copied = (
        "kind",
        "statement",
        "status",
        "verdict",
        "expected",
        "tolerance",
        "measured",
        "seeds",
    )
    joined = ("metric", "paper", "experiment", "cell")
    rows = []
    for claim in _read(folder_path(folder) / "claims.json", _CLAIMS.validate_json):
        low, high = claim.interval or (None, None)
        columns = {"claim": claim.id, "claimed_by": claim.paper}
        columns |= {key: getattr(claim, key) for key in copied} | {"low": low, "high": high}
        if claim.expected is not None and claim.tolerance is not None:
            limits = allowed(claim.kind, claim.relation, claim.expected, claim.tolerance)
            columns |= dict(zip(("least", "most"), limits, strict=True))
        read = [(name, *cell.split("/")) for name, cells in claim.metrics.items() for cell in cells]
        rows += [columns | dict(zip(joined, each, strict=True)) for each in read or [(None,) * 4]]
    return pd.DataFrame(rows)


def _read(path: Path, parse: Callable[[bytes], list[R]]) -> list[R]:
    remedy = "judge the claims: snakemake --cores all claims"
    try:
        path.stat()
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror})", file=path, remedy=remedy) from error
    intact = check_file(path, path.with_name("claims.sha256"))
    try:
        return parse(path.read_bytes())
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:
        reason = shorten(str(error).partition("\n")[0], 80)
        what = "is of another version" if intact else "is damaged"
        raise UserError(
            f"{what}, or no table of judged claims ({reason})", file=path, remedy=remedy
        ) from error


def write_variants(table: VariantTable, path: Path) -> None:
    """Writes the outcome of a set as JSON; the write is atomic.

    Raises:
        UserError: the folder cannot be written to.
    """
    first = json.dumps(table.made_by)
    lines = (
        f"{json.dumps(name)}: {varied.model_dump_json(exclude_none=True)}"
        for name, varied in table.statements.items()
    )
    # a line for each statement, so that two tables can be compared line by line
    statements = ",\n".join(lines)
    write_text(f'{{"made_by": {first},\n"statements": {{\n{statements}\n}}}}\n', path)


def read_variants(path: Path) -> VariantTable:
    """The outcome of a set; empty where there is no such file.

    Raises:
        UserError: the file is damaged or holds something else.
    """
    if not path.exists():
        return VariantTable()
    check_file(path)
    try:
        return VariantTable.model_validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(
            f"holds no outcome of a set ({error})",
            file=path,
            remedy=f"run make {path.stem} again",
        ) from error


def refuse_surprises(rows: Sequence[Row]) -> None:
    """Refuses rows with a surprise.

    Raises:
        UserError: each surprise, with the expected and the measured value, and what to do.
    """
    surprises = [surprise_told(row) for row in rows if row.surprise]
    if surprises:
        lines = "\n".join(surprises)
        raise UserError(
            f"{len(surprises)} of {counted(len(rows), 'statement')} without the known outcome:\n"
            f"{lines}"
        )


def _csv(rows: Sequence[Row], columns: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        low, high = row.interval or (None, None)
        rival = nearest_rival(row)
        added: dict[str, Any] = {
            "low": low,
            "high": high,
            "rival": rival and rival.name,
            "rival_measured": rival and rival.measured,
            "metrics": " ".join(row.metrics),
            "version": version("neuralrace"),
        }
        if row.blind:
            added["fresh_verdict"] = row.blind.verdict
            added["fresh_measured"] = row.blind.measured
        added["ranges"] = "; ".join(map(_range_text, row.ranges))
        if isinstance(row, ClaimRow):
            printed = row.source_setup.printed.items()
            added["setup"] = "; ".join(f"{key}: {value}" for key, value in printed)
            added["differs"] = "; ".join(row.differs)
        writer.writerow(row.model_dump() | added)
    return text.getvalue()


def _range_text(tried: Range) -> str:
    points = (f"{point.value} {point.verdict}" for point in tried.points)
    return f"{tried.setting}: {', '.join(points)}"
