"""Comparison of two results folders: metrics, outcomes of claims, and figures.

On another machine, or with another version of Python or JAX, the same configuration gives the same
numbers except for rounding. Rounding errors grow: a float32 network leaves a saddle a little
earlier or later.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from neuralrace.claims.table import read_tables
from neuralrace.errors import UserError, counted
from neuralrace.extensions.registry import FIGURES
from neuralrace.figures.image_comparison import picture_difference
from neuralrace.results.analysis import ROUNDING, relative_difference
from neuralrace.results.cells import figures_folder, open_results


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


def differences(one: Path, other: Path) -> Iterator[Difference]:
    """The largest difference of each metric of each cell.

    Raises:
        UserError: only one folder has a cell or metric, or a cell has two specifications.
    """
    results = [open_results(folder) for folder in (one, other)]
    measured = [{name for name in each if each[name].path("metrics").is_file()} for each in results]
    if lacking := ", ".join(sorted(measured[0] ^ measured[1])):
        raise UserError(f"only one of {one} and {other} has metrics of {lacking}")
    for cell in sorted(measured[0]):
        pair = [folder[cell].metrics for folder in results]
        specs = [dataset.attrs["spec"] for dataset in pair]
        if specs[0] != specs[1] or set(pair[0].data_vars) != set(pair[1].data_vars):
            raise UserError(f"{cell} has different specifications or metrics in {one} and {other}")
        allowed = ROUNDING[json.loads(specs[0])["precision"]]
        for name in pair[0].data_vars:
            first, second = (dataset[name] for dataset in pair)
            yield Difference(cell, str(name), relative_difference(first, second), allowed)


def other_outcomes(one: Path, other: Path) -> Iterator[str]:
    """Claims and findings whose status differs, or that only one folder has.

    Raises:
        UserError: a folder has no judged claims.
    """
    pair = [
        {row.id: row.status for rows in read_tables(folder) for row in rows}
        for folder in (one, other)
    ]
    for name in sorted(pair[0].keys() | pair[1].keys()):
        first, second = (statuses.get(name, "absent") for statuses in pair)
        if first != second:
            yield f"{name}: {first} / {second}"


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
    outcomes = list(other_outcomes(one, other)) if compared else []
    metrics = [] if only_figures else list(differences(one, other))
    figures = pictures(one, other)
    different = {name: difference for name, difference in figures.items() if difference}
    yield f"{counted(len(figures), 'figure')} in both; different: {len(different)}"
    yield from (f"- {name}: {difference}" for name, difference in different.items())
    if only_figures:
        return
    if compared:
        yield f"claims and findings with another outcome: {len(outcomes)}"
    elif judged:
        yield f"claims are not compared: they are judged in {judged[0]} only"
    yield from (f"- {line}" for line in outcomes)
    yield (
        f"{len(metrics)} metrics of {len({d.cell for d in metrics})} cells: "
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
