"""Comparison of two results folders: metrics, outcomes of claims, and figures.

On another machine, or with another version of Python or JAX, the same configuration gives the same
numbers except for rounding. Rounding errors grow: a float32 network leaves a saddle a little
earlier or later.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from neuralrace.claims.table import read_tables
from neuralrace.errors import UserError, counted
from neuralrace.extensions.registry import FIGURES
from neuralrace.figures.image_comparison import picture_difference
from neuralrace.results.analysis import ROUNDING, relative_difference
from neuralrace.results.cells import CellResults, figures_folder, open_results

SHOWN = 3
"""Names that are listed of cells or claims that are not compared."""


class Difference(NamedTuple):
    """The largest difference of one metric in one cell."""

    cell: str
    metric: str
    relative: float
    """See `neuralrace.results.analysis.relative_difference`."""
    allowed: float
    """The difference that rounding explains at the precision of the cell."""

    @property
    def beyond(self) -> bool:
        """Whether the difference is more than rounding."""
        return self.relative > self.allowed


def comparable_cells(
    one: Path, other: Path
) -> tuple[list[tuple[CellResults, CellResults]], list[str]]:
    """Measured cells that both folders have with equal specifications.

    Returns:
        Both cells of each pair; and how many there are and how many are left out, in words.

    Raises:
        UserError: there are none, or a file is damaged.
    """
    first, second = (
        {name: cell for name, cell in open_results(folder).items() if "metrics" in cell.kinds}
        for folder in (one, other)
    )
    pairs = {name: (first[name], second[name]) for name in sorted(first.keys() & second.keys())}
    different = {
        name
        for name, pair in pairs.items()
        if len({cell.attributes("metrics")["spec_sha256"] for cell in pair}) > 1
    }
    compared = [pair for name, pair in pairs.items() if name not in different]
    left = _only_in(one, other, first, second) | {"with different specifications": different}
    lines = _coverage(f"compared {counted(len(compared), 'cell')}", left)
    if not compared:
        remedy = "name two results folders with equal cells"
        raise UserError("\n".join(["nothing to compare", *lines]), remedy=remedy)
    return compared, lines


def differences(pairs: Iterable[tuple[CellResults, CellResults]]) -> Iterator[Difference]:
    """The largest difference of each metric that both cells of a pair have.

    Raises:
        UserError: a file is damaged.
    """
    for pair in pairs:
        first, second = (cell.metrics for cell in pair)
        allowed = ROUNDING[json.loads(first.attrs["spec"])["precision"]]
        for name in first.data_vars:
            if name in second:
                relative = relative_difference(first[name], second[name])
                yield Difference(pair[0].name, str(name), relative, allowed)


def _only_in(
    one: Path, other: Path, first: Collection[str], second: Collection[str]
) -> dict[str, set[str]]:
    """Names that only one folder has."""
    own, others = set(first), set(second)
    return {f"only in {one}": own - others, f"only in {other}": others - own}


def _coverage(compared: str, left: Mapping[str, Collection[str]]) -> list[str]:
    """What is compared and how many names of each group are not, then some of these names."""
    groups = {group: sorted(names) for group, names in left.items() if names}
    lines = [", ".join(f"{len(names)} {group}" for group, names in groups.items())]
    for group, names in groups.items():
        more = ", ..." if len(names) > SHOWN else ""
        lines.append(f"- {group}: {', '.join(names[:SHOWN])}{more}")
    return ["; ".join(filter(None, (compared, lines[0]))), *lines[1:]]


def outcomes(one: Path, other: Path) -> Iterator[str]:
    """Claims and findings with another status, in words, and how many only one folder has.

    Raises:
        UserError: a folder has no judged claims.
    """
    pair = [
        {row.id: row.status for rows in read_tables(folder) for row in rows}
        for folder in (one, other)
    ]
    shared = sorted(pair[0].keys() & pair[1].keys())
    different = [name for name in shared if pair[0][name] != pair[1][name]]
    said = f"claims and findings with another outcome: {len(different)}"
    yield from _coverage(said, _only_in(one, other, *pair))
    yield from (f"- {name}: {pair[0][name]} / {pair[1][name]}" for name in different)


def pictures(one: Path, other: Path) -> dict[str, str | None]:
    """The difference of each figure that both folders have, in words; None if there is none.

    Args:
        one: a results folder with its figures in it or beside it, or a folder of figures.
        other: another one.

    Raises:
        UserError: a picture is damaged.
    """
    differences: dict[str, str | None] = {}
    pair = _gallery(one), _gallery(other)
    for name in FIGURES:
        paths = [folder / f"{name}.png" for folder in pair]
        if all(path.is_file() for path in paths):
            try:
                differences[name] = picture_difference(*paths)
            except OSError as error:
                raise UserError(f"{paths[0]} or {paths[1]} is no picture: {error}") from error
    return differences


def _gallery(folder: Path) -> Path:
    """A folder of figures itself, or the folder of the figures of results."""
    if any((folder / f"{name}.png").is_file() for name in FIGURES):
        return folder
    return figures_folder(folder)


def report(one: Path, other: Path) -> Iterator[str]:
    """The comparison in words, line by line: figures, claims, and the largest differences.

    Two folders of figures are compared by their figures only. Claims are compared where both
    folders have judged claims; an archive without those of all papers has none.

    Raises:
        UserError: the folders cannot be compared.
    """
    only_figures = (_gallery(one), _gallery(other)) == (one, other)
    judged = [folder for folder in (one, other) if (folder / "claims.json").exists()]
    compared = len(judged) == 2 and not only_figures
    judgements = list(outcomes(one, other)) if compared else []
    pairs, coverage = ([], []) if only_figures else comparable_cells(one, other)
    metrics = list(differences(pairs))
    figures = pictures(one, other)
    different = {name: difference for name, difference in figures.items() if difference}
    yield f"{counted(len(figures), 'figure')} in both; different: {len(different)}"
    yield from (f"- {name}: {difference}" for name, difference in different.items())
    if only_figures:
        return
    yield from judgements
    if len(judged) == 1:
        yield f"claims are not compared: they are judged in {judged[0]} only"
    yield from coverage
    yield (
        f"{counted(len(metrics), 'metric')} of {counted(len({d.cell for d in metrics}), 'cell')}: "
        f"{sum(d.relative == 0 for d in metrics)} equal to the bit, "
        f"{sum(d.beyond for d in metrics)} beyond rounding"
    )
    worst: dict[str, Difference] = {}
    for difference in sorted(metrics, key=lambda d: -d.relative / d.allowed):
        worst.setdefault(difference.metric, difference)
    yield ""
    yield "| metric | largest relative difference | in | rounding may |"
    yield "|---|---|---|---|"
    for d in worst.values():
        mark = " (beyond)" if d.beyond else ""
        yield f"| {d.metric} | {d.relative:.1e}{mark} | {d.cell} | {d.allowed:.0e} |"
