"""The board: scores of every entry on every task, with intervals over seeds."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from neuralrace.board.held_out import is_held_out
from neuralrace.claims.verdict import CONFIDENCE
from neuralrace.config.cell import Ensemble, flatten_keys
from neuralrace.extensions.registry import METRICS, SOLUTIONS
from neuralrace.metrics.benchmark import OTHER_SEEDS
from neuralrace.results.cells import CellResults
from neuralrace.results.checksums import fingerprint
from neuralrace.theory.integration import INTEGRATED

VERSION = "1"
"""Version of tasks and scores: boards of one version can be compared."""
SUMMARY = "summary"
"""Node of a board that has the scores of all tasks."""
GOOD = 0.1
"""A theory holds at a point of a task's grid where it misses the loss by less than this, and on a
task where the whole interval of its loss error is below it."""
BASELINES = (
    *INTEGRATED,  # what remains of their error is that training makes finite steps
    *(name for name, entry in SOLUTIONS.items() if entry.declaration.baseline),
    OTHER_SEEDS,
)
"""Entries that every theory is to be compared with."""
SCORES = {
    name: each.long_name for name, each in METRICS["theory_scores"].declaration.outputs.items()
}
"""Meaning of each score."""
STATISTICS = ("mean", "low", "high")
LONG_NAMES = {
    "holds_share": "share of a task's grid at which an entry applies with a loss error below 0.1",
    "holds": "1 where the loss error, mean over seeds, is below 0.1, and 0 where it is not",
    "task": "task of the benchmark",
    "entry": "a solution, or a baseline that needs simulation",
    "statistic": "mean over seeds, and the ends of its 95% confidence interval (Student t, without "
    "numbers that cannot be: errors below 0, and shares below 0 or above 1)",
    "value": "value of the axis of the task, or of several axes",
    "init_scale": "factor on every initial weight",
    "seed": "run seed",
}


def board(cells: Iterable[CellResults]) -> xr.DataTree:
    """Scores of every entry on every task.

    Args:
        cells: cells of tasks, with the metric `theory_scores`, in the order of the configuration.

    Returns:
        A tree. Its node `summary` has a variable for each score, (task, entry, statistic): the
        median over the points of the task's grid (init scale and axis), then mean and interval over
        seeds; and `holds_share`, the share of points at which an entry applies with a loss error
        below 0.1. A node for each task has the scores of all runs, (value, init_scale, seed,
        entry), and `holds`, (value, init_scale, entry). A score is NaN where an entry does not
        apply or does not predict the quantity.

    Example:
        >>> import neuralrace as nr
        >>> board = nr.benchmark("linear_width", entries=["exact"])
        >>> board["linear_width"]["loss_error"].dims
        ('value', 'init_scale', 'seed', 'entry')
    """
    by_task: dict[str, list[CellResults]] = {}
    for cell in cells:
        by_task.setdefault(cell.name.split("/")[1], []).append(cell)
    tasks = {name: _task(name, members) for name, members in by_task.items()}
    summary = all_tasks({name: _summary(task) for name, task in tasks.items()})
    first = next(iter(by_task.values()))[0]
    tree = xr.DataTree.from_dict({SUMMARY: _described(summary), **tasks})
    title = "Board of the benchmark of theories"
    tree.attrs = {"title": title, "version": VERSION, "versions": first.metrics.attrs["versions"]}
    return tree


def all_tasks(summaries: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Scores of all tasks, (task, entry, statistic).

    Theories are in the order of the first task whose loss they predict; baselines come last.

    Args:
        summaries: scores of each task, (entry, statistic), by name.
    """
    names = xr.IndexVariable("task", list(summaries))
    summary = xr.concat(list(summaries.values()), names, join="outer")
    known = summary["loss_error"].sel(statistic="mean").notnull().transpose("entry", "task")
    first_task = dict(zip(known["entry"].values, known.values.argmax(axis=1), strict=True))
    order = sorted(first_task, key=lambda name: (name in BASELINES, first_task[name], name))
    return summary.sel(entry=order)


def tasks_of(board: xr.DataTree) -> list[str]:
    """Names of the tasks of a board, in its order."""
    return [name for name in board.children if name != SUMMARY]


def _task(name: str, cells: Sequence[CellResults]) -> xr.Dataset:
    """Scores of all runs of a task, (value, init_scale, seed, entry)."""
    specs = [flatten_keys(cell.spec.only(Ensemble).model_dump(mode="json")) for cell in cells]
    swept = [key for key in specs[0] if any(spec.get(key) != specs[0][key] for spec in specs)]
    axis, values = "", [""] * len(cells)
    for key in swept:  # mostly the first one distinguishes all cells
        if len(set(values)) < len(cells):
            axis = ", ".join(filter(None, (axis, key)))
            labels = [_label(spec.get(key)) for spec in specs]
            values = [", ".join(filter(None, pair)) for pair in zip(values, labels, strict=True)]
    scores = (
        xr.concat(
            [cell.metrics[[name for name in SCORES if name in cell.metrics]] for cell in cells],
            xr.IndexVariable("value", values),
            join="outer",
            data_vars="all",
        )
        .drop_attrs()
        .drop_encoding()
    )
    mean = scores["loss_error"].mean("seed")
    scores["holds"] = (mean < GOOD).where(mean.notnull())
    digest = fingerprint(*(cell.spec.only(Ensemble).sha256() for cell in cells))
    return _described(scores).assign_attrs(
        axis=axis, family=name.split("_")[0], held_out=int(is_held_out(name)), spec_sha256=digest
    )


def _summary(task: xr.Dataset) -> xr.Dataset:
    """Scores of a task over its grid, (entry, statistic)."""
    points, error = ("value", "init_scale"), task["loss_error"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of entries that do not predict a quantity
        by_seed = task[[name for name in SCORES if name in task]].median(points)
    # of the whole grid, without diverged runs: where an entry does not apply, it does not hold
    by_seed["holds_share"] = (error < GOOD).where(error.notnull().any("entry")).mean(points)
    by_seed["holds_share"] = by_seed["holds_share"].where(error.notnull().any(points))
    return in_range(by_seed.map(_interval))


def in_range(summary: xr.Dataset) -> xr.Dataset:
    """Intervals of scores, (entry, statistic), without values that the mean cannot have.

    With few seeds, Student's interval reaches beyond the smallest error, 0, and the largest share,
    1. The true mean is in range, so that the part of the interval in range covers it as often.
    """
    summary = summary.clip(min=0, keep_attrs=True)
    return summary.assign(holds_share=summary["holds_share"].clip(max=1, keep_attrs=True))


def _interval(by_seed: xr.DataArray) -> xr.DataArray:
    """Mean over seeds and its confidence interval, along `statistic`; a single seed has none."""
    count = by_seed.notnull().sum("seed")
    mean = by_seed.mean("seed")
    quantile = stdtrit((count - 1).clip(1), (1 + CONFIDENCE) / 2)
    half = quantile * by_seed.std("seed", ddof=1) / np.sqrt(count)
    parts = [mean, mean - half, mean + half]
    return xr.concat(parts, xr.IndexVariable("statistic", list(STATISTICS))).transpose(
        "entry", "statistic"
    )


def _described(dataset: xr.Dataset) -> xr.Dataset:
    """The dataset with the meaning of each variable."""
    meanings = SCORES | LONG_NAMES
    for name in map(str, dataset.variables):
        dataset[name].attrs = {"long_name": meanings[name], "units": "1"}
    return dataset


def _label(value: Any) -> str:
    """A value of a specification as text: `8x4` for a list."""
    if isinstance(value, Mapping):
        return ", ".join(map(_label, value.values()))
    if isinstance(value, list):
        return "x".join(map(_label, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
