"""Verdicts as JSON: what was measured of each statement, without what its claim file says.

The verdicts of a release are `config/verdicts.json`; the site shows them where there are no
results. `make verdicts` writes them:

    python -m neuralrace.claims.stored results config/verdicts.json COMMIT
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, reduce
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from neuralrace.claims.judge import ClaimRow, FindingRow, Row, known_claims
from neuralrace.claims.spec import Claims, read_claims
from neuralrace.claims.table import read_tables
from neuralrace.claims.variants import judged_as
from neuralrace.config.load import merge_configs, paper_files, read_file, read_plan
from neuralrace.errors import UserError
from neuralrace.results.atomic import write_text
from neuralrace.results.cells import open_results

R = TypeVar("R", bound=Row)

DIGITS = 6
"""Significant digits of stored numbers; pages show three."""
MEASURED = {
    *("status", "surprise", "verdict", "measured", "interval", "interval_is", "seeds"),
    *("undefined_seeds", "alternatives", "blind", "ranges", "metrics"),
}
"""The columns of a row that are stored; of `differs`, what was computed is stored as well."""


class StoredVerdicts(NamedTuple):
    """Stored verdicts, as far as they are about the statements and cells that there are now."""

    commit: str
    """Of the code that made them."""
    versions: str
    """Of the packages that made them."""
    claims: list[ClaimRow]
    """All claims; without numbers where there is no verdict on what is claimed now."""
    findings: list[FindingRow]
    """The same of findings."""
    stale: list[str]
    """Identifiers of statements that are judged, and have no such verdict."""


def store(results: Path, path: Path, commit: str) -> None:
    """Writes the verdicts on the papers' statements, one in a line.

    Args:
        results: folder with the judged claims of all papers.
        path: of the JSON file.
        commit: of the code that made them.

    Raises:
        UserError: there are no judged claims, or the file cannot be written.
    """
    claims = read_claims(paper_files("claims.yaml"))
    known = {row.id: row for rows in known_claims(claims) for row in rows}
    current = checksums(claims)
    entries, cells = {}, set[str]()
    for row in (row for rows in read_tables(results) for row in rows):
        if row.id not in current:
            continue
        content = row.model_dump(mode="json", include=MEASURED, exclude_defaults=True)
        if isinstance(row, ClaimRow):
            written = getattr(known[row.id], "differs", ())
            content["differs"] = [each for each in row.differs if each not in written]
        entries[row.id] = {"judged_as": current[row.id], **_rounded(content)}
        cells.update(cell for names in row.metrics.values() for cell in names)
    first = open_results(results, sorted(cells))[min(cells)]
    made_by = {"commit": commit, "versions": first.attributes("metrics")["versions"]}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in entries.items())
    write_text(f'{{"made_by": {json.dumps(made_by)},\n"statements": {{\n{lines}\n}}}}\n', path)


def stored_verdicts(path: Path, claims: Claims) -> StoredVerdicts:
    """Reads stored verdicts, and puts them beside what the claim files say.

    Args:
        path: of the JSON file.
        claims: of all papers.

    Raises:
        UserError: there is no such file, or it holds no verdicts.
    """
    current = checksums(claims)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        made_by, entries = content["made_by"], content["statements"]
        found = {
            name: entry
            for name, entry in entries.items()
            if current.get(name) == entry["judged_as"]
        }
        claim_rows, finding_rows = known_claims(claims)
        return StoredVerdicts(
            made_by["commit"],
            made_by["versions"],
            _joined(claim_rows, found),
            _joined(finding_rows, found),
            [name for name in current if name not in found],
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        remedy = "`make verdicts` writes it"
        raise UserError(f"holds no verdicts ({error})", file=path, remedy=remedy) from error


def checksums(claims: Claims) -> dict[str, str]:
    """What decides the verdict on each judged statement of the papers; see `judged_as`."""
    files = {str(path): read_file(path) for path in paper_files()}
    cells = read_plan(reduce(merge_configs, files.values()), files).cells
    specification = cache(lambda cell: cells[cell].sha256())
    return {
        statement.id: judged_as(statement, cells, specification)
        for content in claims.values()
        for statement in content.statements
        if statement.judged
    }


def _joined(rows: Iterable[R], found: Mapping[str, Mapping[str, Any]]) -> list[R]:
    """The rows with what was measured of them."""
    joined = []
    for row in rows:
        measured = {k: v for k, v in found.get(row.id, {}).items() if k != "judged_as"}
        written = row.model_dump(mode="json")
        if "differs" in measured:
            measured["differs"] = [*measured["differs"], *written["differs"]]
        joined.append(type(row).model_validate_json(json.dumps(written | measured)))
    return joined


def _rounded(value: Any) -> Any:
    """Content of JSON with rounded numbers."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_rounded(each) for each in value]
    return value


if __name__ == "__main__":
    folder, target, version = sys.argv[1:]
    store(Path(folder), Path(target), version)
