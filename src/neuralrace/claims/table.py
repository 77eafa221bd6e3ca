"""Tables of judged claims and findings: JSON and CSV for programs, Markdown for people."""

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

from neuralrace.claims.judge import (
    CONFIDENCE,
    ClaimRow,
    FindingRow,
    JudgedAlternative,
    Row,
    allowed,
)
from neuralrace.claims.robustness import WORDS, RobustnessTable, VariantVerdicts
from neuralrace.errors import UserError, shorten
from neuralrace.results.atomic import write_text
from neuralrace.results.checksums import check_checksum

R = TypeVar("R", bound=Row)

_CLAIMS = TypeAdapter(list[ClaimRow])
_FINDINGS = TypeAdapter(list[FindingRow])
_ROBUSTNESS = TypeAdapter(dict[str, VariantVerdicts])

OUTCOME = ("expected", "measured", "nearest alternative", "with fresh seeds", "status")
CLAIM_COLUMNS = ("claim", "place in the paper", "quote", "statement", *OUTCOME)
FINDING_COLUMNS = ("finding", "statement", *OUTCOME)

EXPLANATION = (
    f"Intervals in brackets are {CONFIDENCE:.0%} confidence intervals over seeds: of the mean "
    "(Student t), or of the median (bootstrap) where tails are heavy. Where a claim is about each "
    "seed, the measured value is that of the worst seed, and the interval the range. An ordering "
    "shows its smallest increase. The nearest alternative is a rival that must fail the claim; its "
    "measured value follows its name."
)


def write_tables(claims: Sequence[ClaimRow], findings: Sequence[FindingRow], folder: Path) -> None:
    """Writes `claims` and `findings` as `.json`, `.csv` and `.md`; each write is atomic.

    Surprising rows are written too, so that they can be read; `refuse_surprises` refuses them.

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
        UserError: a file is missing, damaged or another table.
    """
    return (
        _read(folder / "claims.json", _CLAIMS.validate_json),
        _read(folder / "findings.json", _FINDINGS.validate_json),
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
    joined = ("metric", "paper", "experiment", "cell")
    rows = []
    for claim in _read(Path(folder) / "claims.json", _CLAIMS.validate_json):
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
        content = path.read_bytes()
        check_checksum(path, hashlib.sha256(content).hexdigest(), path.with_name("claims.sha256"))
        return parse(content)
    except UserError:  # the checksum; it is a ValueError too
        raise
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror})", file=path, remedy=remedy) from error
    except ValueError as error:
        reason = shorten(str(error).partition("\n")[0], 80)
        raise UserError(
            f"is damaged, or no table of judged claims ({reason})", file=path, remedy=remedy
        ) from error


def write_robustness(table: RobustnessTable, path: Path) -> None:
    """Writes the verdicts of the robustness runs as JSON; the write is atomic.

    Raises:
        UserError: the folder cannot be written to.
    """
    write_text(_ROBUSTNESS.dump_json(dict(table), indent=2).decode() + "\n", path)


def read_robustness(path: Path) -> dict[str, VariantVerdicts]:
    """The verdicts of the robustness runs; empty where there is no such file.

    Raises:
        UserError: the file is damaged or holds something else.
    """
    if not path.exists():
        return {}
    try:
        content = path.read_bytes()
        check_checksum(path, hashlib.sha256(content).hexdigest())
        return _ROBUSTNESS.validate_json(content)
    except UserError:  # the checksum; it is a ValueError too
        raise
    except (OSError, ValueError) as error:
        raise UserError(
            f"holds no verdicts of robustness runs ({error})",
            file=path,
            remedy="run make robustness again",
        ) from error


def refuse_surprises(rows: Sequence[Row]) -> None:
    """Refuses rows with a surprise.

    Raises:
        UserError: each surprise, with the expected and the measured value, and what to do.
    """
    surprises = [_surprise(row) for row in rows if row.surprise]
    if surprises:
        lines = "\n".join(surprises)
        raise UserError(
            f"{len(surprises)} of {len(rows)} statements differ from their known outcome:\n{lines}"
        )


def _surprise(row: Row) -> str:
    surprise = row.surprise or ""
    remedy = {
        "undefined": "find out why in the files below; a run may have diverged or not finished "
        "learning",
        "undecided": "the seeds do not decide it: raise `seeds` in the configuration, or correct "
        "the expected value or tolerance if they are mistaken",
        "contradicted": "find what changed; before the paper is called wrong, suspect set-up, "
        "measure, sample size and reading",
        "holds": "find what changed; if the statement holds after all, write expect: reproduced",
    }[row.verdict or "undefined"]
    # the tables have no column for the known status, so its words decide
    unknown = surprise.startswith("known ")
    if any(not alternative.fails for alternative in row.alternatives):
        sharper = "where it has no power, find a sharper measure or another alternative"
        remedy = f"{sharper}; else {remedy}" if unknown else sharper
    elif not unknown:  # the robustness runs
        remedy = "reword it so that it holds there too, or name under depends what it rests on"
    place = f" ({row.locator})" if isinstance(row, ClaimRow) else ""
    return (
        f"- {row.paper}: {row.id}{place}: {surprise}: {row.verdict}: "
        f"expected {_expected(row)}, measured {_measured(row)}\n"
        f"  To do: {remedy}.\n"
        f"  Evidence: {', '.join(row.evidence)}"
    )


def _csv(rows: Sequence[Row], kind: type[Row]) -> str:
    text = io.StringIO()
    nested = {"interval", "source_setup", "alternatives", "robustness"}
    names = [name for name in kind.model_fields if name not in nested]
    added = ("low", "high", "nearest_alternative", "robustness")
    writer = csv.DictWriter(text, [*names, *added], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        low, high = row.interval or (None, None)
        cells = row.model_dump(exclude=nested)
        cells |= {key: " ".join(getattr(row, key)) for key in ("evidence", "metrics")}
        if isinstance(row, ClaimRow):
            cells["differs"] = "; ".join(row.differs)
        values = (low, high, _nearest(row), _robustness(row))
        writer.writerow(cells | dict(zip(added, values, strict=True)))
    return text.getvalue()


def _claims_page(rows: Sequence[ClaimRow]) -> Iterator[str]:
    yield from _head("Claims", "Statements of the papers, judged from the metrics files.", rows)
    yield from (
        "",
        "*Discrepant* means that the statement is wrong: by a run at the paper's own set-up and "
        "measure, or by an argument that holds in any set-up. *Differs here* means that the "
        "statement was not reproduced in a set-up that differs from the paper's; it does not say "
        "that the paper is wrong. Set-ups, sources and the files behind each number are in "
        "`claims.json`.",
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
                _name(row), row.locator, f"“{row.quote}”", row.statement, *_outcome(row), status
            )
        explained = [row for row in listed if row.reason or row.differs or row.depends]
        if explained:
            yield ""
        for row in explained:
            yield f"- **{row.id}** ({row.status}): " + " ".join(_explained(row))


def _findings_page(rows: Sequence[FindingRow]) -> Iterator[str]:
    yield from _head("Findings", "Results of ours that no paper states.", rows)
    yield from _surprises(rows)
    for paper, group in groupby(rows, key=lambda row: row.paper):
        yield from ("", f"## {paper}", "")
        yield _line(*FINDING_COLUMNS)
        yield f"|{'---|' * len(FINDING_COLUMNS)}"
        for row in group:
            depends = f" Depends on {row.depends}." if row.depends else ""
            yield _line(_name(row), row.statement + depends, *_outcome(row), row.status)


def _head(title: str, sentence: str, rows: Sequence[Row]) -> Iterator[str]:
    yield from (f"# {title}", "", sentence, "", _counts(rows), "", EXPLANATION)
    tried = [row.robustness for row in rows if row.robustness and row.robustness.stochastic]
    if tried:
        survive = sum(each.survives for each in tried)
        fresh = sum(WORDS["fresh"] not in each.lost for each in tried)
        yield ""
        yield (
            f"Robustness: of {len(tried)} verdicts that depend on seeds, {fresh} "
            f"({fresh / len(tried):.0%}) are the same with fresh seeds, and {survive} "
            f"({survive / len(tried):.0%}) also with each of our own settings doubled. The column "
            "*with fresh seeds* names the changes that alter the verdict of the others."
        )


def _surprises(rows: Sequence[Row]) -> Iterator[str]:
    surprises = [row for row in rows if row.surprise]
    if surprises:
        yield from ("", "## Different from the known outcome", "")
        yield from (_surprise(row) for row in surprises)


def _explained(row: ClaimRow) -> Iterator[str]:
    """Explanations of a status, sentence by sentence."""
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


def _counts(rows: Sequence[Row]) -> str:
    counts = Counter(row.status for row in rows if isinstance(row, ClaimRow | FindingRow))
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


def _outcome(row: Row) -> tuple[str, ...]:
    """The columns `OUTCOME`, without the status."""
    return _expected(row), _measured(row), _nearest(row), _robustness(row)


def _robustness(row: Row) -> str:
    """The value with fresh seeds, and the variants with another verdict."""
    if row.robustness is None:
        return ""
    value = _number(row.robustness.measured, row.robustness.interval) or row.robustness.verdict
    lost = ", ".join(row.robustness.lost)
    return f"{value}; verdict changes with {lost}" if lost else value


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


def _nearest(row: Row) -> str:
    """The alternative whose measured value is nearest to the expected one."""
    if not row.alternatives:
        return ""
    goal = row.expected or 0.0
    nearest = min(
        row.alternatives,
        key=lambda each: float("inf") if each.measured is None else abs(each.measured - goal),
    )
    return f"{nearest.name}: {_measured(nearest)}"
