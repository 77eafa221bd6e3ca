"""Pictures of the benchmark's board: all entries on all tasks, and the map of one entry."""

from collections.abc import Sequence
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

LEVELS = (0, 0.01, 0.03, GOOD, 0.3, 1)
"""Ends of the classes of errors, each with a colour; larger errors have the last one."""
ROW, COLUMNS, PANEL, AROUND, ALONE = 0.165, 4, 1.35, 0.6, 4.2
"""Height of an entry's row; maps side by side; height of a map, and of title and legend; and width
of the figure of a single map, all but the second in inches."""


with style.rc_context():
    NOT_APPLYING = Patch(
        facecolor="white", edgecolor="0.7", hatch="////", label="does not apply", linewidth=0
    )
    EMPTY = Patch(facecolor="0.94", label="does not apply, or predicts no loss", linewidth=0)
    BEST: dict[str, Any] = {"fill": False, "edgecolor": style.categorical(4), "linewidth": 1.5}
    BEST_HANDLE = Patch(label="best theory of a task", **BEST)
    CONTOUR = style.handle("error of a tenth", color="black", linewidth=0.9)
    AT_START = style.handle("error of a tenth before the first step", **style.THEORY)
    """Legend handles."""


def draw_board(board: xr.DataTree) -> Figure:
    """Loss error of every entry on every task, the median over the task's grid.

    Dark is good. Light grey: the entry does not apply, or does not predict the loss. Frames are
    around the theory with the least error on a task; baselines have none.

    Args:
        board: result of `neuralrace.board.build.board`.
    """
    loss = board[SUMMARY]["loss_error"].sel(statistic="mean").dropna("entry", how="all")
    table = loss.transpose("entry", "task").sel(task=tasks_of(board))
    with style.rc_context():
        figure = style.Canvas(figsize=(style.PAGE, 1.5 + ROW * table.sizes["entry"]))
        ax = figure.subplots()
        image = _errors(ax, table.values, list(table["entry"].values), list(table["task"].values))
        for row, column in np.argwhere(np.isfinite(table.values)):
            error = float(table.values[row, column])
            ink = "black" if error >= GOOD else "white"
            text = f"{error:.2f}".lstrip("0") if error < LEVELS[-1] else ">1"
            ax.text(column, row, text, color=ink, ha="center", va="center", fontsize=6)
        ax.set_facecolor(EMPTY.get_facecolor())
        theories = np.array([name not in BASELINES for name in table["entry"].values])
        errors = np.where(theories[:, None] & np.isfinite(table.values), table.values, np.inf)
        for column in np.flatnonzero(np.isfinite(errors).any(axis=0)):
            place = (column - 0.5, int(errors[:, column].argmin()) - 0.5)
            ax.add_patch(Rectangle(place, 1, 1, zorder=4, **BEST))
        ax.tick_params(axis="x", rotation=90)
        ax.tick_params(length=0)
        ax.set_ylabel("theories, and baselines below the line")
        ax.set_xlabel("tasks by family; on the right those drawn for this board")
        for attribute, width in (("family", 0.6), ("held_out", 1.2)):
            groups = [board[str(name)].attrs[attribute] for name in table["task"].values]
            for place in _changes(groups):
                ax.axvline(place, color="black", linewidth=width)
        for place in _changes([name in BASELINES for name in table["entry"].values]):
            ax.axhline(place, color="black", linewidth=1.2)
        holds = int((errors.min(axis=0) < GOOD).sum())
        count = table.sizes["task"]
        ax.set_title(f"A theory predicts the loss within a tenth on {holds} of {count} tasks")
        figure.legend(handles=[BEST_HANDLE, EMPTY], loc="outside lower left", ncols=2)
        label = "error of the loss, median over the grid of a task"
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
