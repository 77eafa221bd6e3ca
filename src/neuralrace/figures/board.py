"""Pictures of the benchmark's board: all entries on all tasks, and the map of one entry."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch, Rectangle

from neuralrace.board.build import BASELINES, GOOD, SUMMARY, tasks_of
from neuralrace.errors import UserError
from neuralrace.figures import maps, style
from neuralrace.metrics.benchmark import OTHER_SEEDS

LEVELS = (0.0, 0.01, 0.03, GOOD, 0.3, 1.0)
"""Ends of the classes of errors, each with a colour; larger errors have the last one."""
ROW, COLUMNS, PANEL, AROUND, ALONE = 0.165, 4, 1.35, 0.6, 4.2
"""Height of an entry's row; maps side by side; height of a map, and of title and legend; and width
of the figure of a single map, all but the second in inches."""


with style.rc_context():
    NOT_APPLYING = Patch(
        facecolor="white", edgecolor="0.7", hatch="////", label="does not apply", linewidth=0
    )
    EMPTY = Patch(facecolor="0.94", label="does not apply, or predicts no loss", linewidth=0)
    BEST: dict[str, Any] = {"fill": False, "linewidth": 1.8, "zorder": 4} | maps.HALO
    CLOSER: dict[str, Any] = BEST | {"linewidth": 0.7}
    FRAMES = (
        Patch(label="best theory of a task", **BEST),
        Patch(label="other seeds are closer than the best theory", **CLOSER),
    )
    UNKNOWN: dict[str, Any] = {"facecolor": "0.94", "edgecolor": "0.7", "hatch": "////"}
    UNKNOWN |= {"linewidth": 0, "zorder": 0.5}
    NO_THEORY = Patch(label="no theory predicts the loss of the task", **UNKNOWN)
    CONTOUR = style.handle("error of a tenth", color="black", linewidth=0.9)
    AT_START = style.handle("error of a tenth before the first step", **style.THEORY)
    """Frames, hatch of a column without theory, and legend handles."""


def draw_board(board: xr.DataTree) -> Figure:
    """Loss error of every entry on every task, the median over the task's grid.

    Dark is good. Light grey: the entry does not apply, or does not predict the loss; hatched where
    no theory does. Frames are
    around the theory with the least error on a task, and around runs from other seeds that are
    closer than every theory. Rows of theories are in groups by the family of their first task.

    Args:
        board: result of `neuralrace.board.build.board`.
    """
    loss = board[SUMMARY]["loss_error"].sel(statistic="mean").dropna("entry", how="all")
    table = loss.transpose("entry", "task").sel(task=tasks_of(board))
    entries = [str(name) for name in table["entry"].values]
    tasks = {name: board[name].attrs for name in map(str, table["task"].values)}
    baseline = np.array([name in BASELINES for name in entries])
    errors = np.where(np.isfinite(table.values), table.values, np.inf)
    theories = np.where(baseline[:, None], np.inf, errors)
    predicted = np.isfinite(theories)
    with style.rc_context():
        figure = style.Canvas(figsize=(style.PAGE, 1.7 + ROW * len(entries)))
        ax = figure.subplots()
        rows = [entry.replace("_", " ") for entry in entries]
        image = _errors(ax, table.values, rows, [_short(*task) for task in tasks.items()])
        ax.set_facecolor(EMPTY.get_facecolor())
        for row, column in np.argwhere(np.isfinite(table.values)).tolist():
            error = float(table.values[row, column])
            text = f"{error:.2f}".lstrip("0") if error < LEVELS[-1] else ">1"
            style.write_entry(ax, image, (row, column), min(error, LEVELS[-1]), text)
        heads = ["drawn for this board" if a["held_out"] else a["family"] for a in tasks.values()]
        above = {"transform": ax.get_xaxis_transform(), "va": "bottom", "ha": "center"}
        for start, end in pairwise([-0.5, *_changes(heads), len(heads) - 0.5]):
            ax.text((start + end) / 2, 1.006, heads[round(start + 0.5)], fontsize=6, **above)
            ax.axvline(end, color="black", linewidth=0.6)
        families = [attrs["family"] for attrs in tasks.values()]
        groups = ["" if base else families[row.argmax()]
                  for base, row in zip(baseline, predicted, strict=True)]  # fmt: skip
        for place in _changes(groups):
            ax.axhline(place, color="black", linewidth=0.6)
        for place in _changes(baseline.tolist()):
            ax.axhline(place, color="black", linewidth=1.6)
        for column, known in enumerate(map(any, predicted.T.tolist())):
            best = int(theories[:, column].argmin())
            if not known:
                place = (column - 0.5, -0.5)
                ax.add_patch(Rectangle(place, 1, (~baseline).sum(), **UNKNOWN))
            else:
                ax.add_patch(Rectangle((column - 0.5, best - 0.5), 1, 1, **BEST))
            if known and OTHER_SEEDS in entries:
                row = entries.index(OTHER_SEEDS)
                if errors[row, column] < theories[best, column]:
                    ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **CLOSER))
        ax.tick_params(axis="x", rotation=90)
        ax.tick_params(length=0)
        ax.set_ylabel("theories, and baselines below the thick line")
        ax.set_xlabel("tasks by family")
        holds = int((theories.min(axis=0) < GOOD).sum())
        ax.set_title(f"A theory holds on {holds} of {len(tasks)} tasks", pad=13)
        figure.legend(handles=[*FRAMES, EMPTY, NO_THEORY], loc="outside lower left", ncols=2)
        label = f"error of the loss, median over the grid of a task; a theory holds below {GOOD:g}"
        figure.colorbar(image, ax=ax, label=label, pad=0.01, aspect=40)
    return figure


def draw_map(board: xr.DataTree, entry: str) -> Figure:
    """Loss error of an entry over init scale and the axis of each task, mean over seeds.

    Dark is good; the solid line is the contour of an error of a tenth. Beyond the dashed line,
    theory misses the loss by a tenth before the first step: no simulation is needed to see it.

    Args:
        board: result of `neuralrace.board.build.board`.
        entry: a solution or a baseline.

    Raises:
        UserError: the entry predicts the loss of no task.
    """
    tasks = {
        name: scores.sel(entry=entry)
        for name in tasks_of(board)
        if entry in (scores := board[name].to_dataset())["entry"]
        and scores["loss_error"].sel(entry=entry).notnull().any()
    }
    if not tasks:
        known = sorted({str(e) for n in tasks_of(board) for e in board[n].dataset["entry"].values})
        remedy = f"there is {', '.join(known)}"
        raise UserError("predicts the loss of no task", key="entry", value=entry, remedy=remedy)
    with style.rc_context():
        columns = min(COLUMNS, len(tasks))
        rows = -(-len(tasks) // columns)
        width = style.PAGE if columns > 1 else ALONE
        figure = style.Canvas(figsize=(width, AROUND + PANEL * rows))
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax in panels[len(tasks) :]:
            ax.remove()
        axes = list(panels[: len(tasks)])
        held = np.mean([float((task["holds"] == 1).mean()) for task in tasks.values()])
        grids = f"the grids of {len(tasks)} tasks" if len(tasks) > 1 else "the grid of a task"
        title = f"{entry.replace('_', ' ')} holds at {held:.0%} of {grids}"
        figure.suptitle(title, x=0.01, ha="left", fontsize=8)
        own = all(bool(task["initial_loss_error"].max() < GOOD) for task in tasks.values())
        everywhere = all(bool(task["loss_error"].notnull().all()) for task in tasks.values())
        handles = [CONTOUR, *([] if own else [AT_START]), *([] if everywhere else [NOT_APPLYING])]
        figure.legend(handles=handles, loc="outside lower left", ncols=len(handles))
        for ax, (name, scores) in zip(axes, tasks.items(), strict=True):
            image = _task(ax, name, scores)
        bar = {"shrink": min(1, 2 / rows), "anchor": (0, 1)}
        figure.colorbar(image, ax=axes, label="error of the loss", pad=0.01, aspect=20, **bar)
    return figure


def _task(ax: Axes, name: str, scores: xr.Dataset) -> AxesImage:
    """The map of one task."""
    error, start = (
        scores[score].mean("seed").transpose("value", "init_scale").values
        for score in ("loss_error", "initial_loss_error")
    )
    scales = [f"{scale:.2g}" for scale in scores["init_scale"].values]
    image = _errors(ax, error, list(scores["value"].values), scales)
    for row, column in np.argwhere(np.isnan(error)):
        place = (column - 0.5, row - 0.5)
        ax.add_patch(Rectangle(place, 1, 1, facecolor="white", edgecolor="0.8", hatch="////", lw=0))
    ax.tick_params(axis="x", rotation=90)
    ax.set_xlabel("init scale")
    keys = [key.removesuffix(".name") for key in scores.attrs["axis"].split(", ")]
    ax.set_ylabel(", ".join(key.rpartition(".")[2] for key in keys).replace("_", " "))
    ax.set_title(name.replace("_", " "))
    _outline(ax, error, linewidth=1.4, color="white")
    _outline(ax, error, linewidth=0.9, color="black")
    _outline(ax, start, **maps.BOUNDARY)
    return image


def _errors(
    ax: Axes, errors: Float[np.ndarray, "row column"], rows: Sequence[str], columns: Sequence[str]
) -> AxesImage:
    """Errors as colours, dark where they are small."""
    image = style.heat(ax, np.minimum(errors, LEVELS[-1]), 0, 1, rows, columns)
    image.set_norm(BoundaryNorm(LEVELS, image.get_cmap().N))
    return image


def _short(task: str, attrs: Mapping[Any, Any]) -> str:
    """Name of a task below the name of its family, or of those that were drawn."""
    if attrs["held_out"]:
        return task.replace("_drawn", "").replace("_", " ")
    return task.removeprefix(f"{attrs['family']}_").replace("_", " ")


def _changes(groups: Sequence[Any]) -> list[float]:
    """Places between neighbours of different groups."""
    return [i - 0.5 for i in range(1, len(groups)) if groups[i] != groups[i - 1]]


def _outline(ax: Axes, errors: Float[np.ndarray, "row column"], **line: Any) -> None:
    """Lines between the places of a map where theory holds and those where it does not."""
    holds = np.where(np.isnan(errors), np.nan, errors < GOOD)  # no line where nothing is known
    rows, columns = holds.shape
    for row, column in np.argwhere(abs(np.diff(holds, axis=1)) == 1):
        ax.plot([column + 0.5] * 2, [row - 0.5, row + 0.5], **line)
    for row, column in np.argwhere(abs(np.diff(holds, axis=0)) == 1):
        ax.plot([column - 0.5, column + 0.5], [row + 0.5] * 2, **line)
    ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
