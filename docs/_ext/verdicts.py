"""Pages of the claims and findings: as they are configured, and as they came out."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from gallery import anchor, paper_title
from rest import heading, indented, table, words

from neuralrace.claims.judge import Row
from neuralrace.claims.spec import Claim, ClaimFile, Finding, Setup, Status, read_claims
from neuralrace.claims.table import read_tables

BADGES = {
    "reproduced": "success",
    "holds": "success",
    "discrepant": "danger",
    "contradicted": "danger",
    "differs here": "warning",
}
"""Colours of statuses and verdicts; grey for the others."""
INTRODUCTION = """\
What papers say, in their own words, and what came out here: each :term:`claim` quotes a sentence,
says how it is measured and what must fail it, and has a :term:`status`. A :term:`finding` is what
no paper says and was found here. *Discrepant* is said only at the source's own set-up and measure,
or by an argument that needs none; *differs here* where something of ours differs, which is no
accusation. :doc:`The rules <rules>` say more.
"""
WITHOUT = """\
.. note::

   This site was built without results: statuses are those that the configuration knows to come out.
   For measured values, intervals and verdicts, run ``make claims`` and then ``make docs``; for a
   single claim, ``neuralrace claims ID``.
"""
WITH = """\
.. note::

   Measured values and verdicts are those of ``results/claims.json`` and ``results/findings.json``
   when this site was built.
"""
SIGNS = {"<=": "≤ ", ">=": "≥ ", None: ""}


def pages(repository: Path, results: Path | None) -> dict[str, str]:
    """The pages by where they stand in the site.

    Args:
        repository: its root.
        results: holds `claims.json` and `findings.json`; None where nothing was judged.

    Raises:
        UserError: a mistake in a claim, or tables that are none.
    """
    claims = read_claims(sorted(repository.glob("config/*/claims.yaml")))
    by_paper = {file.parent.name: written for file, written in claims.items()}
    titles = {paper: paper_title(repository, paper) for paper in by_paper}
    claim_rows, finding_rows = read_tables(results) if results else ((), ())
    rows: dict[str, Row] = {row.id: row for row in (*claim_rows, *finding_rows)}
    made = {
        f"claims/{paper}.rst": "\n".join(_page(paper, titles[paper], written, rows))
        for paper, written in by_paper.items()
    }
    return made | {"claims/index.rst": "\n".join(_index(by_paper, titles, bool(results)))}


def _index(
    papers: Mapping[str, ClaimFile], titles: Mapping[str, str], judged: bool
) -> Iterator[str]:
    yield heading("Claims", "=")
    yield INTRODUCTION
    yield WITH if judged else WITHOUT
    statuses = get_args(Status)
    rows = [["Paper", *statuses, "findings"]]
    for paper, written in papers.items():
        counts = Counter(claim.expect for claim in written.claims)
        name = f":doc:`{titles[paper]} <{paper}>`"
        rows += [[name, *(str(counts[status]) for status in statuses), str(len(written.findings))]]
    sums = [str(sum(int(row[column]) for row in rows[1:])) for column in range(1, len(rows[0]))]
    yield table([*rows, ["**Together**", *sums]], "34 11 11 11 11 11 11")
    for status in ("discrepant", "differs here", "undecided"):
        found = [claim for w in papers.values() for claim in w.claims if claim.expect == status]
        if found:
            yield heading(f"{status.capitalize()}: {len(found)}", "-")
            yield "\n".join(f"- :ref:`claim-{c.id}`: {words(c.statement)}" for c in found) + "\n"
    listed = "".join(f"   {paper}\n" for paper in papers)
    yield f".. toctree::\n   :hidden:\n\n   The rules <rules>\n{listed}"


def _page(paper: str, title: str, written: ClaimFile, rows: Mapping[str, Row]) -> Iterator[str]:
    yield heading(title, "=", f"claims-{paper}")
    yield (
        f"*{words(written.source.title)}* ({words(written.source.authors)}). "
        f":ref:`Figures <gallery-{paper}>`, :doc:`derivations and errata </theory/{paper}>`. "
        f"Written in ``config/{paper}/claims.yaml``.\n"
    )
    yield _summary(["Claim", "Where", "Status"], written.claims)
    yield heading("Claims", "-")
    for claim in written.claims:
        yield from _entry(paper, claim, rows.get(claim.id))
    if written.findings:
        yield heading("Findings", "-")
        yield "What no source says and was found here.\n"
        for finding in written.findings:
            yield from _entry(paper, finding, rows.get(finding.id))
    yield heading("Set-ups of the source", "-")
    for name, setup in written.setups.items():
        yield from _setup(paper, name, setup)


def _summary(head: list[str], claims: tuple[Claim, ...]) -> str:
    listed = [[f":ref:`claim-{c.id}`", words(c.locator), _badge(c.expect)] for c in claims]
    return table([head, *listed], "50 30 20")


def _badge(status: str) -> str:
    return f":bdg-{BADGES.get(status, 'muted-line')}:`{status}`"


def _entry(paper: str, statement: Claim | Finding, row: Row | None) -> Iterator[str]:
    """A section: status, the source's words, what is judged, and what came out."""
    yield heading(statement.id, "~", f"claim-{statement.id}")
    if isinstance(statement, Claim):
        yield f"{_badge(statement.expect)} {words(statement.locator)}\n"
        yield f".. rst-class:: site-quote\n\n   “{words(statement.quote)}”\n"
    else:
        yield ":bdg-info:`finding`\n"
    yield words(statement.statement) + "\n"
    yield "\n".join(f":{key}: {value}" for key, value in _told(paper, statement, row)) + "\n"
    if judged := "\n".join(f":{key}: {value}" for key, value in _judged(statement, row)):
        yield f".. dropdown:: How it is judged\n\n{indented(judged)}\n"


def _told(paper: str, statement: Claim | Finding, row: Row | None) -> Iterator[tuple[str, str]]:
    """What has to be known to read a status."""
    if row and row.verdict:
        yield "Measured", f"{_measured(row)} {_badge(row.verdict)}"
    if isinstance(statement, Claim):
        if differs := (getattr(row, "differs", ()) or statement.differs):
            yield "What differs here", "; ".join(map(words, differs))
        for key, value in (
            ("Why", statement.reason),
            ("Argument", statement.argument),
            ("Fair, by a second reader", statement.fair),
        ):
            if value:
                yield key, words(value)
        if statement.corrected_by:
            yield "Instead", f":ref:`claim-{statement.corrected_by}`"
        yield "Set-up", f":ref:`{words(statement.setup)} <setup-{paper}-{statement.setup}>`"
    if statement.depends:
        yield "Depends on", words(statement.depends)
    if statement.figure:
        yield "Figure", f":ref:`{words(statement.figure)} <{anchor(statement.figure)}>`"


def _judged(statement: Claim | Finding, row: Row | None) -> Iterator[tuple[str, str]]:
    if statement.expected:
        sign = SIGNS[statement.relation]
        more = "increases by more than " if statement.kind == "ordering" else sign
        number = statement.expected
        yield f"Expected ({statement.kind})", f"{more}{number.value:.4g}: {words(number.source)}"
    if statement.tolerance:
        yield "Tolerance", f"{statement.tolerance.value:.3g}: {words(statement.tolerance.why)}"
    if statement.alternatives:
        yield "Must fail", "; ".join(words(each.name) for each in statement.alternatives)
    if read := {f"``{part.metric}`` of {_cells(part.cells)}" for part in statement.measures()}:
        yield "Read", "; ".join(sorted(read))
    if row and row.evidence:
        yield "Evidence", _cells(row.evidence)


def _cells(names: tuple[str, ...]) -> str:
    return ", ".join(f"``{name}``" for name in names)


def _measured(row: Row) -> str:
    """The number with its interval, in the words of the table."""
    if row.measured is None or row.interval is None:
        return f"undefined in {row.undefined_seeds} of {row.seeds} seeds"
    low, high = row.interval
    interval = f" [{low:.4g}, {high:.4g}] ({words(row.interval_is or '')})" if low < high else ""
    return f"**{row.measured:.4g}**{interval}, {row.seeds} seeds"


def _setup(paper: str, name: str, setup: Setup) -> Iterator[str]:
    yield heading(name, "~", f"setup-{paper}-{name}")
    printed = (f":{words(key)}: {words(value)}" for key, value in setup.printed.items())
    yield "\n".join([f":Where: {words(setup.locator)}", *printed]) + "\n"
