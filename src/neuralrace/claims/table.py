"""The table of judged claims, for programs (JSON, CSV) and for people (Markdown)."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from pydantic import TypeAdapter

from neuralrace.claims.judge import CONFIDENCE, SURPRISES, Row
from neuralrace.errors import UserError
from neuralrace.records.files import write_text

_ROWS = TypeAdapter(list[Row])


def write_table(rows: Sequence[Row], folder: Path) -> None:
    """Writes `claims.json`, `claims.csv` and `claims.md`, each whole or not at all.

    Surprises are written like everything else, so that a person can read what came out;
    `refuse_surprises` is a step of its own.

    Raises:
        UserError: the folder cannot be written to.
    """
    texts = {
        "claims.json": _ROWS.dump_json(list(rows), indent=2).decode() + "\n",
        "claims.csv": _csv(rows),
        "claims.md": "\n".join(_markdown(rows)) + "\n",
    }
    for name, text in texts.items():
        write_text(text, folder / name)


def read_table(path: Path) -> list[Row]:
    """The rows of a `claims.json`.

    Raises:
        UserError: it is missing or no table of claims.
    """
    try:
        return _ROWS.validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path}: is no table of claims ({error}). Judge the claims again."
        ) from error


def refuse_surprises(rows: Sequence[Row]) -> None:
    """Passes only where every claim came out as it is known to.

    Raises:
        UserError: the surprises, each with what was expected, what was measured, and what to do.
    """
    surprises = [row for row in rows if row.status in SURPRISES]
    if surprises:
        told = "\n".join(_surprise(row) for row in surprises)
        raise UserError(
            f"{len(surprises)} of {len(rows)} claims did not come out as known:\n{told}"
        )


def _surprise(row: Row) -> str:
    remedy = {
        "undefined": "find out why in the files below; a run may have diverged or not finished "
        "learning",
        "undecided": "the seeds do not decide it: raise `seeds` in the configuration, or mend the "
        "expected value or tolerance if they are mistaken",
        "contradicted": "find what changed; if the paper is wrong here, say expect: discrepant "
        "with a reason",
        "holds": "find what changed; if the paper is right after all, say expect: reproduced "
        "without a reason",
    }[row.verdict or "undefined"]
    return (
        f"- {row.paper}: {row.id} ({row.locator}): {row.status}, {row.verdict}: "
        f"expected {_expected(row)}, measured {_measured(row)}\n"
        f"  To do: {remedy}.\n"
        f"  Evidence: {', '.join(row.evidence)}"
    )


def _csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    names = [name for name in Row.model_fields if name != "interval"]
    writer = csv.DictWriter(text, [*names, "low", "high"], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        low, high = row.interval or (None, None)
        cells = row.model_dump(exclude={"interval"})
        writer.writerow(cells | {"low": low, "high": high, "evidence": " ".join(row.evidence)})
    return text.getvalue()


def _markdown(rows: Sequence[Row]) -> Iterator[str]:
    yield "# Claims"
    yield ""
    yield _counts(rows)
    yield ""
    yield (
        f"Intervals are {CONFIDENCE:.0%} confidence intervals of the mean over seeds (Student t). "
        "For a bound, measured is the worst seed and the interval the range over seeds. An "
        "ordering shows the weakest of its increases. Sources, reasons for tolerances and the "
        "files behind each number are in `claims.json`."
    )
    surprises = [row for row in rows if row.status in SURPRISES]
    if surprises:
        yield from ("", "## Not as known", "")
        yield from (_surprise(row) for row in surprises)
    for paper, group in groupby(rows, key=lambda row: row.paper):
        listed = list(group)
        yield from ("", f"## {paper}", "", _counts(listed), "")
        yield "| claim | where | statement | kind | expected | measured | seeds | status |"
        yield "|---|---|---|---|---|---|---|---|"
        for row in listed:
            name = f'<a id="{row.id}"></a>{row.id}' + (f" (`{row.figure}`)" if row.figure else "")
            seeds = "" if row.seeds is None else str(row.seeds)
            cells = (
                name,
                row.locator,
                row.statement,
                row.kind,
                _expected(row),
                _measured(row),
                seeds,
                row.status,
            )
            yield f"| {' | '.join(_cell(cell) for cell in cells)} |"
        explained = [row for row in listed if row.reason]
        if explained:
            yield ""
        for row in explained:
            instead = f" Instead: [{row.corrected_by}](#{row.corrected_by})."
            reason = " ".join((row.reason or "").split()).removesuffix(".")
            yield f"- **{row.id}** ({row.status}): {reason}.{instead if row.corrected_by else ''}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _counts(rows: Sequence[Row]) -> str:
    counts = Counter(row.status for row in rows)
    return f"{len(rows)} claims: " + ", ".join(f"{n} {status}" for status, n in counts.items())


def _expected(row: Row) -> str:
    if row.expected is None:
        return ""
    if row.kind == "ordering":
        least = row.expected - (row.tolerance or 0)
        return f"increases > {least:.4g}"
    slack = f" ± {row.tolerance:.3g}" if row.tolerance else ""
    if row.relation:
        slack = f" (slack {row.tolerance:.3g})" if row.tolerance else ""
        sign = {"<=": "≤", ">=": "≥"}[row.relation]
        return f"{sign} {row.expected:.4g}{slack}"
    return f"{row.expected:.4g}{slack}"


def _measured(row: Row) -> str:
    if row.measured is None or row.interval is None:
        return f"undefined in {row.undefined_seeds} of {row.seeds} seeds" if row.verdict else ""
    low, high = row.interval
    return f"{row.measured:.4g}" + (f" [{low:.4g}, {high:.4g}]" if low < high else "")
