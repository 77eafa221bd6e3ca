"""Tables of claims, findings and blind trials, for programs (JSON, CSV) and people (Markdown)."""

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import pandas as pd
from pydantic import TypeAdapter

from neuralrace.claims.blind import WORDS, Blind, Trials
from neuralrace.claims.judge import (
    CONFIDENCE,
    ClaimRow,
    FindingRow,
    JudgedAlternative,
    Row,
    allowed,
)
from neuralrace.errors import UserError, shorten
from neuralrace.results.atomic import write_text
from neuralrace.results.checksums import check_checksum

R = TypeVar("R", bound=Row)

_CLAIMS = TypeAdapter(list[ClaimRow])
_FINDINGS = TypeAdapter(list[FindingRow])
_BLIND = TypeAdapter(dict[str, Trials])

OUTCOME = ("expected", "measured", "must fail", "blindly", "status")
CLAIM_COLUMNS = ("claim", "where", "words", "judged", *OUTCOME)
FINDING_COLUMNS = ("finding", "statement", *OUTCOME)

INTERVALS = (
    f"Intervals are {CONFIDENCE:.0%} intervals over seeds: of the mean (Student t), or of the "
    "median (bootstrap) where tails are heavy; where a claim is about each seed, measured is the "
    "worst seed and the interval the range. An ordering shows the weakest of its increases. Behind "
    "each number stands the nearest alternative that must fail, and what it measured."
)


def write_tables(claims: Sequence[ClaimRow], findings: Sequence[FindingRow], folder: Path) -> None:
    """Writes `claims` and `findings` as `.json`, `.csv` and `.md`, each whole or not at all.

    Surprises are written like everything else, so that a person can read what came out;
    `refuse_surprises` is a step of its own.

    Raises:
        UserError: the folder cannot be written to.
    """
    texts = {
        "claims.json": _CLAIMS.dump_json(list(claims), indent=2).decode() + "\n",
        "claims.csv": _csv(claims, ClaimRow),
        "claims.md": "\n".join(_claims_page(claims)) + "\n",
        "findings.json": _FINDINGS.dump_json(list(findings), indent=2).decode() + "\n",
        "findings.csv": _csv(findings, FindingRow),
        "findings.md": "\n".join(_findings_page(findings)) + "\n",
    }
    for name, text in texts.items():
        write_text(text, folder / name)


def read_tables(folder: Path) -> tuple[list[ClaimRow], list[FindingRow]]:
    """The rows of `claims.json` and of `findings.json`.

    Raises:
        UserError: one is missing, no such table, or not as it was written.
    """
    return (
        _read(folder / "claims.json", _CLAIMS.validate_json),
        _read(folder / "findings.json", _FINDINGS.validate_json),
    )


def claims_table(folder: str | Path = "results") -> pd.DataFrame:
    """The judged claims, with a row for each metric and cell that one rests on.

    Columns: claim, claimed_by (its paper), kind, statement, status, verdict, expected, tolerance,
    measured, seeds; low and high, the ends of its interval; least and most, between which it has to
    lie for the claim to hold; and metric, paper, experiment and cell, by which the table joins that
    of `neuralrace.to_frame`. These are missing from a claim that is not assessed.

    Args:
        folder: holds `claims.json`.

    Raises:
        UserError: there is no such table.

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
    rows = []
    for claim in _read(Path(folder) / "claims.json", _CLAIMS.validate_json):
        low, high = claim.interval or (None, None)
        told = {"claim": claim.id, "claimed_by": claim.paper}
        told |= {key: getattr(claim, key) for key in copied} | {"low": low, "high": high}
        if claim.expected is not None and claim.tolerance is not None:
            limits = allowed(claim.kind, claim.relation, claim.expected, claim.tolerance)
            told |= dict(zip(("least", "most"), limits, strict=True))
        read = [(name, *cell.split("/")) for name, cells in claim.metrics.items() for cell in cells]
        for place in read or [(None,) * 4]:
            rows.append(
                told | dict(zip(("metric", "paper", "experiment", "cell"), place, strict=True))
            )
    return pd.DataFrame(rows)


def _read(path: Path, parse: Callable[[bytes], list[R]]) -> list[R]:
    again = "judge the claims: snakemake --cores all claims"
    try:
        content = path.read_bytes()
        check_checksum(path, hashlib.sha256(content).hexdigest(), path.with_name("claims.sha256"))
        return parse(content)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); {again}") from error
    except ValueError as error:
        what = shorten(str(error).partition("\n")[0], 80)
        raise UserError(
            f"{path}: is damaged, or no table of judged claims ({what}); {again}"
        ) from error


def write_blind(blind: Blind, path: Path) -> None:
    """Writes trials, whole or not at all.

    Raises:
        UserError: the folder cannot be written to.
    """
    write_text(_BLIND.dump_json(dict(blind), indent=2).decode() + "\n", path)


def read_blind(path: Path) -> dict[str, Trials]:
    """Trials that were written; none where there is no such file.

    Raises:
        UserError: it is none of trials, or not as it was written.
    """
    if not path.exists():
        return {}
    try:
        content = path.read_bytes()
        check_checksum(path, hashlib.sha256(content).hexdigest())
        return _BLIND.validate_json(content)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: holds no trials ({error}). Run make blind again.") from error


def refuse_surprises(rows: Sequence[Row]) -> None:
    """Passes only where everything came out as it is known to, and all alternatives failed.

    Raises:
        UserError: the surprises, each with what was expected, what was measured, and what to do.
    """
    surprises = [row for row in rows if row.surprise]
    if surprises:
        told = "\n".join(_surprise(row) for row in surprises)
        raise UserError(
            f"{len(surprises)} of {len(rows)} statements did not come out as known:\n{told}"
        )


def _surprise(row: Row) -> str:
    remedy = {
        "undefined": "find out why in the files below; a run may have diverged or not finished "
        "learning",
        "undecided": "the seeds do not decide it: raise `seeds` in the configuration, or mend the "
        "expected value or tolerance if they are mistaken",
        "contradicted": "find what changed; before the paper is called wrong, suspect set-up, "
        "measure, sample size and reading",
        "holds": "find what changed; if the statement holds after all, say expect: reproduced",
    }[row.verdict or "undefined"]
    if any(not each.fails for each in row.alternatives):
        remedy = "where it has no power, find a sharper measure or another alternative" + (
            f"; else {remedy}" if "came out" in (row.surprise or "") else ""
        )
    if (row.surprise or "").startswith("does not survive"):
        remedy = "reword it so that it holds there too, or name under depends what it rests on"
    place = f" ({row.locator})" if isinstance(row, ClaimRow) else ""
    return (
        f"- {row.paper}: {row.id}{place}: {row.surprise}: {row.verdict}: "
        f"expected {_expected(row)}, measured {_measured(row)}\n"
        f"  To do: {remedy}.\n"
        f"  Evidence: {', '.join(row.evidence)}"
    )


def _csv(rows: Sequence[Row], kind: type[Row]) -> str:
    text = io.StringIO()
    nested = {"interval", "source_setup", "alternatives", "blind"}
    names = [name for name in kind.model_fields if name not in nested]
    added = ("low", "high", "nearest_alternative", "blindly")
    writer = csv.DictWriter(text, [*names, *added], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        low, high = row.interval or (None, None)
        cells = row.model_dump(exclude=nested)
        cells |= {key: " ".join(getattr(row, key)) for key in ("evidence", "metrics")}
        if isinstance(row, ClaimRow):
            cells["differs"] = "; ".join(row.differs)
        values = (low, high, _power(row), _blindly(row))
        writer.writerow(cells | dict(zip(added, values, strict=True)))
    return text.getvalue()


def _claims_page(rows: Sequence[ClaimRow]) -> Iterator[str]:
    yield from ("# Claims", "", _counts(rows), "", INTERVALS)
    yield from _survival(rows)
    yield from (
        "",
        "*Discrepant* is said only at the source's own set-up and measure, or by an argument that "
        "needs none; *differs here* where something of ours differs and the outcome is not the "
        "source's, which is no accusation. Set-ups, sources and the files behind each number are "
        "in `claims.json`.",
    )
    yield from _surprises(rows)
    for paper, group in groupby(rows, key=lambda row: row.paper):
        listed = list(group)
        yield from ("", f"## {paper}", "", _counts(listed), "")
        yield _line(*CLAIM_COLUMNS)
        yield f"|{'---|' * len(CLAIM_COLUMNS)}"
        for row in listed:
            status = row.status + (" (set-up differs)" if row.differs else "")
            yield _line(
                _name(row), row.locator, f"“{row.quote}”", row.statement,
                _expected(row), _measured(row), _power(row), _blindly(row), status,
            )  # fmt: skip
        explained = [row for row in listed if row.reason or row.differs or row.depends]
        if explained:
            yield ""
        for row in explained:
            yield f"- **{row.id}** ({row.status}): " + " ".join(_explained(row))


def _findings_page(rows: Sequence[FindingRow]) -> Iterator[str]:
    yield from ("# Findings", "", "What no source says and was found here.", "", _counts(rows))
    yield from ("", INTERVALS)
    yield from _survival(rows)
    yield from _surprises(rows)
    for paper, group in groupby(rows, key=lambda row: row.paper):
        yield from ("", f"## {paper}", "")
        yield _line(*FINDING_COLUMNS)
        yield f"|{'---|' * len(FINDING_COLUMNS)}"
        for row in group:
            depends = f" Depends on {row.depends}." if row.depends else ""
            yield _line(
                _name(row), row.statement + depends,
                _expected(row), _measured(row), _power(row), _blindly(row), row.status,
            )  # fmt: skip


def _surprises(rows: Sequence[Row]) -> Iterator[str]:
    surprises = [row for row in rows if row.surprise]
    if surprises:
        yield from ("", "## Not as known", "")
        yield from (_surprise(row) for row in surprises)


def _explained(row: ClaimRow) -> Iterator[str]:
    """What has to be known to read a status, sentence by sentence."""
    for words in (row.reason, row.argument, row.fair):
        if words:
            yield _sentence(words)
    if row.differs:
        yield _sentence(f"Differs: {'; '.join(row.differs)}")
    if row.depends:
        yield _sentence(f"Depends on {row.depends}")
    if row.corrected_by:
        yield f"Instead: [{row.corrected_by}](#{row.corrected_by})."


def _sentence(text: str) -> str:
    return " ".join(text.split()).removesuffix(".") + "."


def _name(row: Row) -> str:
    return f'<a id="{row.id}"></a>{row.id}' + (f" (`{row.figure}`)" if row.figure else "")


def _line(*cells: str) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"


def _survival(rows: Sequence[Row]) -> Iterator[str]:
    """How many verdicts hold on seeds that nobody looked at."""
    tried = [row.blind for row in rows if row.blind and row.blind.stochastic]
    if tried:
        survive = sum(blind.survives for blind in tried)
        fresh = sum(WORDS["fresh"] not in blind.lost for blind in tried)
        yield ""
        yield (
            f"Of {len(tried)} verdicts that depend on seeds, {fresh} ({fresh / len(tried):.0%}) "
            f"hold on fresh seeds and {survive} ({survive / len(tried):.0%}) also with what is "
            "ours doubled; the others are named in the column *blindly*."
        )


def _counts(rows: Sequence[ClaimRow] | Sequence[FindingRow]) -> str:
    counts = Counter(row.status for row in rows)
    kind = "findings" if rows and isinstance(rows[0], FindingRow) else "claims"
    return f"{len(rows)} {kind}: " + ", ".join(f"{n} {status}" for status, n in counts.items())


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


def _blindly(row: Row) -> str:
    """What fresh seeds measured, and what the verdict does not survive."""
    if row.blind is None:
        return ""
    lost = f"; lost with {', '.join(row.blind.lost)}" if row.blind.lost else ""
    return f"{_number(row.blind.measured, row.blind.interval) or row.blind.verdict}{lost}"


def _measured(row: Row | JudgedAlternative) -> str:
    if row.measured is None or row.interval is None:
        if isinstance(row, JudgedAlternative):
            return "undefined"
        return f"undefined in {row.undefined_seeds} of {row.seeds} seeds" if row.verdict else ""
    return _number(row.measured, row.interval)


def _number(measured: float | None, interval: tuple[float, float] | None) -> str:
    if measured is None or interval is None:
        return ""
    low, high = interval
    return f"{measured:.4g}" + (f" [{low:.4g}, {high:.4g}]" if low < high else "")


def _power(row: Row) -> str:
    """The alternative whose measured value is nearest to what is expected."""
    if not row.alternatives:
        return ""
    goal = row.expected or 0.0
    nearest = min(
        row.alternatives,
        key=lambda each: float("inf") if each.measured is None else abs(each.measured - goal),
    )
    return f"{nearest.name}: {_measured(nearest)}"
