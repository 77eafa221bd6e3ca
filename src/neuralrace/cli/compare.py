"""What differs between two results folders.

The same configuration on another machine, another version of Python or of JAX gives the same
numbers but for rounding, and rounding grows: a float32 network that leaves a saddle does so a
little earlier or later. This tells by how much, metric by metric, and which claims come out
otherwise, and which figures look otherwise.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from neuralrace.claims.table import read_tables
from neuralrace.errors import UserError
from neuralrace.extensions.registry import FIGURES
from neuralrace.figures.image_comparison import picture_difference
from neuralrace.results.analysis import ROUNDING, relative_difference
from neuralrace.results.cells import figures_folder, open_results


class Difference(NamedTuple):
    """The largest difference of one metric in one cell."""

    cell: str
    metric: str
    relative: float
    """Largest difference over the largest entry, in either; infinite where only one is finite."""
    allowed: float
    """What rounding explains at the precision of the cell."""

    @property
    def beyond(self) -> bool:
        """Whether it is more than rounding."""
        return self.relative > self.allowed


def differences(one: Path, other: Path) -> Iterator[Difference]:
    """Each metric of each cell that both folders have.

    Raises:
        UserError: a cell or metric that only one has, or two of other specifications.
    """
    results = [open_results(folder) for folder in (one, other)]
    measured = [{name for name in each if each[name].path("metrics").is_file()} for each in results]
    if lacking := ", ".join(sorted(measured[0] ^ measured[1])):
        raise UserError(f"only one of {one} and {other} has metrics of {lacking}")
    for cell in sorted(measured[0]):
        pair = [each[cell].metrics for each in results]
        specs = [dataset.attrs["spec"] for dataset in pair]
        if specs[0] != specs[1] or set(pair[0].data_vars) != set(pair[1].data_vars):
            raise UserError(f"{cell}: {one} and {other} were run by other specifications")
        allowed = ROUNDING[json.loads(specs[0])["precision"]]
        for name in pair[0].data_vars:
            first, second = (dataset[name] for dataset in pair)
            yield Difference(cell, str(name), relative_difference(first, second), allowed)


def other_outcomes(one: Path, other: Path) -> Iterator[str]:
    """Claims and findings whose status differs, or that only one folder has.

    Raises:
        UserError: a folder without judged claims.
    """
    pair = [
        {row.id: row.status for rows in read_tables(folder) for row in rows}
        for folder in (one, other)
    ]
    for name in sorted(pair[0].keys() | pair[1].keys()):
        found = [statuses.get(name, "absent") for statuses in pair]
        if found[0] != found[1]:
            yield f"{name}: {found[0]} / {found[1]}"


def pictures(one: Path, other: Path) -> dict[str, str | None]:
    """What sets the pictures of each figure apart that both folders have; None where alike.

    Args:
        one: a results folder, whose figures stand in it or beside it, or a folder of figures.
        other: another one.

    Raises:
        UserError: a picture is damaged.
    """
    found = {}
    pair = _gallery(one), _gallery(other)
    for name in FIGURES:
        paths = [folder / f"{name}.png" for folder in pair]
        if all(path.is_file() for path in paths):
            try:
                found[name] = picture_difference(*paths)
            except OSError as e:
                raise UserError(f"{paths[0]} or {paths[1]}: is no picture: {e}") from e
    return found


def _gallery(folder: Path) -> Path:
    """Where the figures of results are drawn: `figures/` beside `results/`, else in the folder."""
    if any((folder / f"{name}.png").is_file() for name in FIGURES):
        return folder
    return figures_folder(folder)


def report(one: Path, other: Path) -> Iterator[str]:
    """The comparison in words: figures, claims, and where each metric differs most.

    Two folders of figures have nothing but these. Where neither folder has judged claims, as with
    an experiment of one's own, nothing is said of claims.

    Raises:
        UserError: folders that cannot be compared.
    """
    alone = (_gallery(one), _gallery(other)) == (one, other)
    judged = any((folder / "claims.json").exists() for folder in (one, other))
    outcomes = [] if alone or not judged else list(other_outcomes(one, other))
    found = [] if alone else list(differences(one, other))
    figures = pictures(one, other)
    other_looks = {name: what for name, what in figures.items() if what}
    yield f"{len(figures)} figures in both, {len(other_looks)} look otherwise"
    yield from (f"- {name}: {what}" for name, what in other_looks.items())
    if alone:
        return
    if judged:
        yield f"{len(outcomes)} claims and findings come out otherwise"
    yield from (f"- {line}" for line in outcomes)
    beyond = [difference for difference in found if difference.beyond]
    yield (
        f"{len(found)} metrics of {len({d.cell for d in found})} cells: "
        f"{sum(d.relative == 0 for d in found)} equal to the bit, {len(beyond)} beyond rounding"
    )
    worst: dict[str, Difference] = {}
    for difference in found:
        kept = worst.setdefault(difference.metric, difference)
        if difference.relative / difference.allowed > kept.relative / kept.allowed:
            worst[difference.metric] = difference
    yield from (
        "",
        "| metric | largest relative difference | in | rounding may |",
        "|---|---|---|---|",
    )
    for d in sorted(worst.values(), key=lambda d: -d.relative / d.allowed):
        mark = " (beyond)" if d.beyond else ""
        yield f"| {d.metric} | {d.relative:.1e}{mark} | {d.cell} | {d.allowed:.0e} |"
