"""Pictures of the benchmark's board: all entries on all tasks, and the map of one entry."""

import re
from collections.abc import Mapping, Sequence
from itertools import count, pairwise
from math import log10
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch, Rectangle

from neuralrace.board.build import BASELINES, GOOD, SUMMARY, tasks_of
from neuralrace.errors import UserError
from neuralrace.figures import maps, style
from neuralrace.metrics.benchmark import OTHER_SEEDS

LEVELS = (0.0, 0.005, 0.025, GOOD, 0.3, 1.0)
"""Ends of the classes of errors, each with a colour; larger errors have the last one. Small ones
are where errors of two decimals are rounded, so that equal numbers have equal colours."""
WORDS = {
    "lambda balanced": "λ-balanced",
    "relu": "ReLU",
    "xor": "XoR",
    "init": "start",
    "hidden": "hidden units",
}
"""Words for parts of names of the configuration."""
WIDEST = 3
"""Letters of the longest number in the usual size."""
ROW = 0.165
"""Height of a row of the board, in inches."""
COLUMNS, LARGEST, FLAT = 3, 0.55, 0.8
"""Maps side by side, largest width of a cell in inches, and height of a cell over its width."""
BESIDE, ABOVE, BETWEEN, BAR, LINE = 0.72, 0.42, 0.39, 0.56, 0.15
"""Inches for names of rows, titles, between maps, and for the colour bar and a line of a legend."""
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


with style.rc_context():
    EMPTY = Patch(facecolor="0.94", label="does not apply, or predicts no loss", linewidth=0)
    BEST: dict[str, Any] = {"fill": False, "linewidth": 1.6, "zorder": 4, "clip_on": False}
    BEST |= maps.HALO
    UNSURE: dict[str, Any] = BEST | {"linestyle": (0, (1.2, 0.8))}
    CLOSER: dict[str, Any] = BEST | {"linewidth": 0.7}
    FRAMES = {
        "best theory of a task": BEST,
        f"best, but its interval reaches {GOOD:g}": UNSURE,
        "other seeds are closer than the best theory": CLOSER,
    }
    UNKNOWN: dict[str, Any] = {"facecolor": "0.94", "edgecolor": "0.7", "hatch": "////"}
    UNKNOWN |= {"linewidth": 0, "zorder": 0.5}
    NO_THEORY = Patch(label="no theory predicts the loss of the task", **UNKNOWN)
    LIMIT: dict[str, Any] = {"color": "black", "linewidth": 0.9}
    AT_START: dict[str, Any] = {"color": "black", "marker": "x", "markersize": 3, "linestyle": ""}
    """Frames, hatch of a column without theory, lines and marks of maps, and legend handles."""


def draw_board(board: xr.DataTree) -> Figure:
    """Loss error of every entry on every task: the median over the task's grid, mean over seeds.

    Dark is good. Light grey: the entry does not apply, or does not predict the loss; hatched where
    no theory does. Frames are around the theory with the least error on a task, dashed where its
    interval over seeds does not end below a tenth, and around runs from other seeds that are closer
    than every theory. The title counts the tasks on which a theory holds. Rows of theories are in
    groups by the family of their first task. Numbers have as many decimals as it takes to tell
    their class.

    Args:
        board: result of `neuralrace.board.build.board`.
    """
    scores = board[SUMMARY]["loss_error"].transpose("statistic", "entry", "task")
    loss = scores.sel(task=tasks_of(board)).dropna("entry", how="all")
    table = loss.sel(statistic="mean")
    entries = [str(name) for name in table["entry"].values]
    tasks = {name: board[name].attrs for name in map(str, table["task"].values)}
    baseline = np.array([name in BASELINES for name in entries])
    errors = np.where(np.isfinite(table.values), table.values, np.inf)
    theories = np.where(baseline[:, None], np.inf, errors)
    # the whole interval is below; a single seed has none
    holds = loss.sel(statistic="high").fillna(table).values < GOOD
    predicted = np.isfinite(theories)
    with style.rc_context():
        figure = style.Canvas(figsize=(style.PAGE, 2.1 + ROW * len(entries)))
        ax = figure.subplots()
        rows = [_words(entry) for entry in entries]
        image = _errors(ax, table.values, rows, [_short(*task) for task in tasks.items()])
        ax.set_facecolor(EMPTY.get_facecolor())
        for row, column in np.argwhere(np.isfinite(table.values)).tolist():
            error = float(table.values[row, column])
            text, shade = _number(error), min(error, LEVELS[-1])
            size = 6 if len(text) <= WIDEST else 5  # clear of a frame
            style.write_entry(ax, image, (row, column), shade, text, size)
        heads = ["held-out tasks" if a["held_out"] else _words(a["family"]) for a in tasks.values()]
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
        drawn: list[dict[str, Any]] = []
        for column, known in enumerate(map(any, predicted.T.tolist())):
            best = int(theories[:, column].argmin())
            if not known:
                place = (column - 0.5, -0.5)
                ax.add_patch(Rectangle(place, 1, (~baseline).sum(), **UNKNOWN))
            else:
                # a little wider than the entry, so that it covers no digit
                look = BEST if holds[best, column] else UNSURE
                ax.add_patch(Rectangle((column - 0.53, best - 0.5), 1.06, 1, **look))
                drawn.append(look)
            if known and OTHER_SEEDS in entries:
                row = entries.index(OTHER_SEEDS)
                if errors[row, column] < theories[best, column]:
                    ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **CLOSER))
                    drawn.append(CLOSER)
        ax.tick_params(axis="x", rotation=90)
        ax.tick_params(length=0)
        ax.set_ylabel("theories, and baselines below the thick line")
        ax.set_xlabel("tasks by family")
        held = np.any(holds[~baseline], axis=0)[predicted.any(axis=0)]
        title = "Where theories predict the loss, one holds"
        if not held.all():
            title = f"Theory holds on {held.mean():.0%} of tasks with theories"
        ax.set_title(title, pad=13)
        frames = [Patch(label=name, **look) for name, look in FRAMES.items() if look in drawn]
        figure.legend(handles=[*frames, EMPTY, NO_THEORY], loc="outside lower left", ncols=2)
        label = (
            "largest loss error / initial loss: median over settings of each seed, mean over seeds"
        )
        label += f"\n(a theory holds on a task if the whole 95% interval is below {GOOD:g})"
        _bar(figure, image, float(table.max()), label, ax=ax, aspect=60, pad=0.02)
    return figure


def draw_map(board: xr.DataTree, entry: str) -> Figure:
    """Loss error of an entry over init scale and the axis of each task, mean over seeds.

    Dark is good; the solid line is around settings at which the entry holds. Where there is a
    cross, theory misses the loss by a tenth before the first step: no simulation is needed to see
    it. Values of the axis to which the entry never applies are left out; the title counts the
    settings to which it applies.

    Args:
        board: result of `neuralrace.board.build.board`.
        entry: a solution or a baseline.

    Raises:
        UserError: the entry predicts the loss of no task.
    """
    every = {name: board[name].to_dataset() for name in tasks_of(board)}
    solved = {name: task.sel(entry=entry) for name, task in every.items() if entry in task["entry"]}
    means = {name: _known(task.mean("seed", keep_attrs=True)) for name, task in solved.items()}
    tasks = {name: task for name, task in means.items() if task.sizes["value"]}
    if not tasks:
        known = sorted({str(each) for task in every.values() for each in task["entry"].values})
        remedy = f"there is {', '.join(known)}"
        raise UserError("predicts the loss of no task", key="entry", value=entry, remedy=remedy)
    with style.rc_context():
        figure = style.Canvas()
        figure.set_layout_engine("none")
        axes = [figure.add_axes((0, 0, 1, 1), label=name) for name in tasks]
        image = [_task(ax, *task) for ax, task in zip(axes, tasks.items(), strict=True)][-1]
        drawn = [ax.get_legend_handles_labels() for ax in axes]
        marks = {text: mark for pair in drawn for mark, text in zip(*pair, strict=True)}
        errors = np.concatenate([task["loss_error"].values.ravel() for task in tasks.values()])
        handles = [marks[text] for text in sorted(marks)]
        if np.isnan(errors).any():
            handles.append(EMPTY)
        bar = figure.add_axes((0, 0, 1, 1), label="colour bar")
        corner = _arrange(figure, axes, bar, len(handles))
        figure.legend(handles=handles, loc="upper left", bbox_to_anchor=corner)
        label = f"largest loss error / initial loss\n(holds below {GOOD:g})"
        _bar(figure, image, float(np.nanmax(errors)), label, cax=bar)
        bar.axvline(GOOD, **LIMIT)
        held, every = int((errors < GOOD).sum()), int(np.isfinite(errors).sum())
        title = f"{_words(entry)}: holds at {held} of {every} settings"
        left, top = 0.1 / figure.get_figwidth(), 1 - 0.06 / figure.get_figheight()
        figure.suptitle(title, x=left, y=top, ha="left", va="top", fontsize=8)
    return figure


def _arrange(figure: Figure, axes: Sequence[Axes], bar: Axes, lines: int) -> tuple[float, float]:
    """Sets the sizes of a figure and of its maps, whose cells are all of one size.

    Args:
        figure: the figure.
        axes: maps, in rows from the upper left.
        bar: of colours; stands beside the last map, or below all where there is no room.
        lines: of the legend, which stands below the bar, or beside it where it has a row alone.

    Returns:
        The upper left corner of the legend, in shares of the figure.
    """
    columns = min(COLUMNS, len(axes))
    width = max(style.COLUMN, columns * style.PAGE / COLUMNS)
    across, up = zip(*((len(ax.get_xticks()), len(ax.get_yticks())) for ax in axes), strict=True)
    slot = width / columns
    widest = slot - BESIDE - 0.04
    cell = min(LARGEST, widest / max(across))
    heights = [FLAT * cell * max(up[i : i + columns]) for i in range(0, len(up), columns)]
    # scales are named below the lowest map of a column, and where the next one has others
    scales = [[text.get_text() for text in ax.get_xticklabels()] for ax in axes]
    named = [own != other for own, other in zip(scales, scales[columns:], strict=False)]
    gaps = [BETWEEN + LINE * any(named[i : i + columns]) for i in range(0, len(up), columns)]
    tops = np.cumsum([ABOVE, *map(sum, zip(heights, gaps, strict=True))]).tolist()
    beside = len(axes) % columns
    left, top = beside * slot + BESIDE, tops[-2] if beside else tops[-1]
    alone = columns > 1 and not beside
    legend_left, legend_top = (left + slot, top) if alone else (left, top + BAR)
    height = max(tops[-1], top + BAR, legend_top + LINE * lines) + 0.03
    figure.set_size_inches(width, height)

    def place(ax: Axes, left: float, top: float, wide: float, high: float) -> None:
        low = 1 - (top + high) / height
        ax.set_position((left / width, low, wide / width, high / height))

    for number, ax in enumerate(axes):
        row, column = divmod(number, columns)
        size = (cell * across[number], FLAT * cell * up[number])
        place(ax, column * slot + BESIDE, tops[row], *size)
        if number >= len(named) or named[number]:
            ax.set_xlabel("init scale")
    place(bar, left, top, widest, 0.1)
    return (legend_left - 0.25) / width, 1 - legend_top / height


def _known(task: xr.Dataset) -> xr.Dataset:
    """Scores of an entry without values and init scales to which it never applies."""
    for dim in ("value", "init_scale"):
        task = task.dropna(dim, how="all", subset=["loss_error"])
    return task


def _task(ax: Axes, name: str, scores: xr.Dataset) -> AxesImage:
    """The map of one task."""
    error, start = (
        scores[score].transpose("value", "init_scale").values
        for score in ("loss_error", "initial_loss_error")
    )
    keys = [key.removesuffix(".name") for key in scores.attrs["axis"].split(", ")]
    axis = ", ".join(_words(key.rpartition(".")[2]) for key in keys)
    rows = [_value(value) for value in scores["value"].values.tolist()]
    if len(rows) == 1:  # too low for a name along it
        rows, axis = [":\n".join(filter(None, [axis, *rows]))], ""
    columns = [_value(f"{scale:g}") for scale in scores["init_scale"].values]
    image = _errors(ax, error, rows, columns)
    ax.set_title(_title(name, scores.attrs))
    ax.set_ylabel(axis, labelpad=2)
    ax.tick_params(axis="x", rotation=0, labelsize=6)
    ax.tick_params(axis="y", pad=2)
    ax.set_facecolor(EMPTY.get_facecolor())
    _outline(ax, error)
    row, column = np.nonzero(start >= GOOD)
    if len(row):
        ax.plot(column, row, label=f"error ≥ {GOOD:g} before training", **AT_START)
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(-0.5, len(rows) - 0.5))
    return image


def _errors(
    ax: Axes, errors: Float[np.ndarray, "row column"], rows: Sequence[str], columns: Sequence[str]
) -> AxesImage:
    """Errors as colours, dark where they are small."""
    image = style.heat(ax, np.minimum(errors, LEVELS[-1]), 0, 1, rows, columns)
    image.set_norm(BoundaryNorm(LEVELS, image.get_cmap().N))
    return image


def _bar(figure: Figure, image: AxesImage, worst: float, label: str, **place: Any) -> None:
    """The colour bar, with an arrow where errors are larger than its last class."""
    extend = "max" if worst > LEVELS[-1] else "neither"
    bar = figure.colorbar(image, location="bottom", extend=extend, label=label, **place)
    bar.set_ticks(LEVELS, labels=[f"{level:g}" for level in LEVELS], fontsize=6)


def _number(error: float) -> str:
    """An error with the fewest decimals, at least two, that leave it in its class."""
    if error >= LEVELS[-1]:
        return f">{LEVELS[-1]:g}"
    texts = (f"{error:.{decimals}f}" for decimals in count(2))
    own = np.digitize(error, LEVELS)
    return next(text for text in texts if np.digitize(float(text), LEVELS) == own).lstrip("0")


def _words(name: str) -> str:
    """A name of the configuration in words."""
    text = name.replace("_", " ")
    return re.sub(rf"\b({'|'.join(WORDS)})\b", lambda part: WORDS[part[0]], text)


def _value(text: str) -> str:
    """A value of an axis in few letters, as 10⁻³ for 0.001 and 6×6 for two layers."""
    if re.fullmatch(r"1e-\d+|0\.00+1", text):
        power = str(round(log10(float(text))))
        return f"10{power.translate(SUPERSCRIPTS)}"
    return re.sub(r"(?<=\d)x(?=\d)", "×", _words(text))


def _title(task: str, attrs: Mapping[Any, Any]) -> str:
    """Name of a task."""
    if attrs["held_out"]:
        return f"{_words(task.rpartition('_drawn_')[0])}, held out"
    return _words(task)


def _short(task: str, attrs: Mapping[Any, Any]) -> str:
    """Name of a task below the name of its family, or below the heading of held-out ones."""
    if attrs["held_out"]:
        return _words(task.rpartition("_drawn_")[0])
    return _words(task.removeprefix(f"{attrs['family']}_"))


def _changes(groups: Sequence[Any]) -> list[float]:
    """Places between neighbours of different groups."""
    return [i - 0.5 for i in range(1, len(groups)) if groups[i] != groups[i - 1]]


def _outline(ax: Axes, errors: Float[np.ndarray, "row column"]) -> None:
    """Lines between the places of a map where theory holds and those where it does not."""
    holds = np.where(np.isnan(errors), np.nan, errors < GOOD)  # no line where nothing is known
    across, up = (np.argwhere(abs(np.diff(holds, axis=axis)) == 1) for axis in (1, 0))
    edges = [[(column + 0.5, row - 0.5), (column + 0.5, row + 0.5)] for row, column in across]
    edges += [[(column - 0.5, row + 0.5), (column + 0.5, row + 0.5)] for row, column in up]
    if edges:
        limit = LineCollection(edges, label="holds / does not", **LIMIT)
        limit.set_capstyle("projecting")
        ax.add_collection(limit)
