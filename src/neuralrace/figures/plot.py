"""The standard figure of any cell: what was recorded over time, with theory on top."""

from collections.abc import Callable
from functools import partial
from string import ascii_lowercase
from typing import Any, Literal, get_args

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neuralrace.config.requirements import unmet
from neuralrace.errors import UserError
from neuralrace.extensions.registry import SOLUTIONS
from neuralrace.figures import style
from neuralrace.figures.compose import set_titles
from neuralrace.figures.ends import label_ends
from neuralrace.figures.sweeps import layer_widths
from neuralrace.results.cells import CellResults, Results, cells_of
from neuralrace.theory.integration import INTEGRATED
from neuralrace.theory.modes import final_strength

Clock = Literal["steps", "epochs", "flow"]
"""What a time axis counts."""
TEST = style.LINES[2]
"""Line of the loss on test samples."""
PAIRS = ("trained_error", "untrained_error")
LINES = {"task_loss": "task", "mode_strength": "mode", "layer_norm": "layer"}
"""Variables with a panel for each init scale, and the axis that has a line for each entry."""
TITLES = {"task_loss": "loss of each task", "mode_strength": "modes", "layer_norm": "layer norms"}
DRAWN = ("loss", "test_loss", *LINES, *PAIRS)
"""Variables over time that are drawn if they were recorded."""
COLUMNS, HEIGHT = 3, 2.1
"""Number of panels in a row, and height of a row in inches."""
MOST_CELLS = 8
"""Number of cells that fit into one figure."""
MOST_LINES = 8
"""Number of lines that are drawn; more colours cannot be distinguished."""
STRENGTH = (
    r"Strength of mode $k$: $u_k^\top W v_k$, where $W$ is the product of all weights and $u_k$, "
    r"$v_k$ are singular vectors of the input-output correlation $\langle yx^\top\rangle$."
)
BETWEEN_DOMAINS = "Strength of each mode of the task, averaged over trained pairs of domains."
ENDS = (
    r"Grey line and number: where it ends by theory, $W$ the best linear map "
    r"$\langle yx^\top\rangle\langle xx^\top\rangle^{-1}$; for uncorrelated inputs of variance 1 "
    r"the singular value."
)
"""Captions under panels of modes and their guides."""


def plot(
    results: xr.DataTree | Results | CellResults,
    ax: Axes | None = None,
    theory: str | None = None,
    time: Clock | None = None,
) -> Figure:
    """Draws the loss over time, and everything else that was recorded over time.

    - the loss on test samples is dotted, beside the training loss;
    - mode strengths. A grey line and a number at its end are the strength that theory predicts for
      the end of training. For uncorrelated inputs of variance 1 this is the singular value of the
      input-output correlation;
    - errors of trained and untrained pairs of domains, norms of layers, and the loss of each task
      of a sequence;
    - if there are no modes, the incoming weights of hidden units at the end, of the first run.

    The mean over seeds is a line and their range a band; theory is dashed and black. A sweep of
    `simulate` has a row of panels for each of its cells. Where nothing changes any more, the axis
    of time ends before training, and the caption says so.

    Args:
        results: the result of `simulate`, a part of it such as `tree["hidden-8"]`, or what
            `open_results` gives: a cell, or several by `select`.
        ax: axes for the loss of one cell alone; when absent, a new figure shows everything.
        theory: the solution to draw. When absent, the gradient flow of all weights if it was
            solved, and otherwise all solutions but baselines.
        time: the time axis: "steps" or "epochs" of training, or gradient-flow time, "flow", which
            makes different learning rates comparable. When absent, epochs for full batches, and
            steps for others.

    Returns:
        The figure, which a notebook displays, and whose `savefig` embeds TrueType fonts, as
        journals require; the figure of `ax` if `ax` is passed.

    Raises:
        UserError: results of too many cells or none, an `ax` that is not axes, a solution that was
            not solved, or a time that the training does not have: epochs of fresh samples, or
            gradient-flow time of Adam.

    Example:
        >>> import neuralrace as nr
        >>> tree = nr.simulate("hierarchy", hidden=[16], init_scales=[0.01], seeds=2)
        >>> figure = nr.plot(tree, theory="aligned_modes")
        >>> [ax.get_ylabel() for ax in figure.axes]
        ['training loss', 'mode strength']
    """
    cells = _cells(results, 1 if ax is not None else MOST_CELLS)
    if not isinstance(ax, Axes | None):
        raise UserError(
            f"{type(ax).__name__}: give axes of matplotlib, as plt.subplots() does", key="ax"
        )
    if time is not None:
        cells = [_over(cell, time) for cell in cells]
    shown = _shown(cells, theory)
    with style.rc_context():
        if ax is not None:
            _loss(ax, cells[0], shown[0])
            ax.legend(handles=[*_scale_handles(cells), *_test_handles(cells)])
            ax.set_xlabel(_time_label(cells[0]))
            return ax.figure.figure  # of a subfigure, too
        return _all(cells, shown)


def _cells(results: Any, most: int) -> list[CellResults]:
    of_files = isinstance(results, Results)
    if isinstance(results, xr.DataTree):
        cells = cells_of(results)
    else:
        cells = [*results.values()] if of_files else [results]
    if not all(isinstance(cell, CellResults) for cell in cells):
        raise UserError(
            f"{type(results).__name__}: give what simulate or open_results gives",
            key="results",
        )
    if not cells:
        raise UserError("holds no cell", key="results", remedy="select others")
    if len(cells) > most:
        first = cells[0].name if of_files else cells[0].name.rpartition("/")[2]
        raise UserError(
            f"holds {len(cells)} cells, and at most {most} can be drawn",
            key="results",
            remedy=f"choose some, such as results[{first!r}]",
        )
    return cells


def _over(cell: CellResults, time: Any) -> CellResults:
    """A cell whose axis of time is another one.

    Raises:
        UserError: no such time, or one that its training does not have.
    """
    if time not in (names := get_args(Clock)):
        raise UserError("unknown", key="time", value=time, remedy=f"there is {', '.join(names)}")
    training, per_step, units = cell.spec.training, 1.0, time
    if time == "epochs" and not training.batch.whole:
        steps = training.batch.steps_per_epoch(cell.spec.task().items)
        if steps is None:
            problem = "every step draws fresh samples, so that there are no epochs"
            raise UserError(problem, key="time", value=time, remedy="use steps or flow")
        per_step = 1 / steps
    elif time == "flow":
        if not training.optimiser.follows_flow:
            problem = f"{training.optimiser.name} does not follow gradient flow"
            raise UserError(problem, key="time", value=time, remedy="use steps or epochs")
        step = cell.trajectory["time"]
        per_step, units = float(cell.flow_time[-1] / step[-1]), r"$\tau$"

    def over(dataset: xr.Dataset) -> xr.Dataset:
        if "time" not in dataset.dims:
            return dataset
        attrs = {"units": units, "per_step": per_step}
        return dataset.assign_coords(time=("time", per_step * dataset["time"].values, attrs))

    trajectory, theory = over(cell.trajectory), over(cell.theory)
    return CellResults(cell.name, cell.folder, cell.spec, trajectory, theory)


def _time_label(cell: CellResults) -> str:
    units = cell.trajectory["time"].attrs["units"]
    return units if units in get_args(Clock) else f"time ({units})"


def _shown(cells: list[CellResults], name: str | None) -> list[xr.Dataset]:
    """The solutions that are drawn for each cell; a chosen one may be absent from some."""
    solved = [
        cell.theory["solution"].values.tolist() if "solution" in cell.theory.dims else []
        for cell in cells
    ]
    known = list(dict.fromkeys(each for names in solved for each in names))
    if name is not None and (not isinstance(name, str) or name not in known):
        problem = "was not solved" if known else "nothing was solved"
        remedy = f"there is {', '.join(known)}" if known else "leave it out"
        raise UserError(problem, key="theory", value=name, remedy=remedy)
    shown = []
    for cell, names in zip(cells, solved, strict=True):
        if name is not None:
            chosen = [each for each in names if each == name]
        else:
            chosen = [each for each in INTEGRATED if each in names] or [
                each
                for each in names
                if each not in SOLUTIONS or not SOLUTIONS[each].declaration.baseline
            ]
        drawn = [each for each in chosen if _predicts(cell.theory, each)]
        shown.append(cell.theory.sel(solution=drawn) if drawn else xr.Dataset())
    return shown


def _predicts(theory: xr.Dataset, solution: str) -> bool:
    """Whether a solution predicts anything that is drawn."""
    drawn = (theory[name] for name in DRAWN if name in theory)
    return any(
        bool(each.sel(solution=solution).notnull().any())
        for each in drawn
        if "solution" in each.dims
    )


def _all(cells: list[CellResults], shown: list[xr.Dataset]) -> Figure:
    """A new figure with all panels; each cell begins a row."""
    panels = [_panels(cell, solved) for cell, solved in zip(cells, shown, strict=True)]
    most = max(map(len, panels))
    alone = most == 1  # cells side by side
    count = len(cells) if alone else most
    columns = 2 if count == 4 else min(COLUMNS, count)  # two by two
    rows = [-(-count // columns)] if alone else [-(-len(each) // columns) for each in panels]
    width = style.PAGE if columns > 1 else style.COLUMN
    figure = style.Canvas(figsize=(width, HEIGHT * sum(rows)))
    grid = figure.subplots(sum(rows), columns, squeeze=False)
    blocks = iter([*grid.ravel()] if alone else np.split(grid, np.cumsum(rows)[:-1]))
    drawn = []
    names = [cell.name.rpartition("/")[2] for cell in cells]
    if len({*names}) < len(names):  # cells of several experiments
        names = [cell.name for cell in cells]
    for name, each in zip(names, panels, strict=True):
        block = np.ravel(next(blocks))
        label = f"{name}: " if len(cells) > 1 else ""
        for ax, (title, draw) in zip(block, each.items(), strict=False):
            draw(ax)
            ax.set_title(label + title if ax is block[0] else title)
            drawn.append(ax)
    for ax in grid.ravel():
        if ax not in drawn:
            ax.remove()
    caption = dict.fromkeys(line for cell in cells for line in _caption(cell))
    caption |= dict.fromkeys(line for cell in cells for line in _cut(cell))
    if caption:
        figure.supxlabel("\n".join(caption), x=0.01, ha="left", fontsize=6, color="0.35")
    style.legend(figure, _handles(cells, shown))
    style.darken_text(figure)
    set_titles(figure, dict(zip(ascii_lowercase, drawn, strict=False)), {})
    return figure


def _panels(cell: CellResults, shown: xr.Dataset) -> dict[str, Callable[[Axes], None]]:
    """A function that draws each panel of a cell, by title."""
    scales = cell.trajectory["init_scale"].values.tolist()
    drawings = {
        "loss": _loss,
        **{
            f"{TITLES[name]}, init scale {scale:g}": partial(_lines, variable=name, scale=scale)
            for name in LINES
            if name in cell.trajectory
            for scale in scales
        },
        **({"pairs of domains": _pairs} if _pairs_of(cell) else {}),
        **({"weights of hidden units, first run": _fields} if _has_fields(cell) else {}),
    }
    return {
        title: partial(_with_time, draw, cell=cell, shown=shown) for title, draw in drawings.items()
    }


def _with_time(draw: Callable[..., None], ax: Axes, cell: CellResults, shown: xr.Dataset) -> None:
    """Draws a panel; its axis of time, if it has one, is that of the cell."""
    if draw is not _fields:
        ax.set(xlim=(0, _time_end(cell)), xlabel=_time_label(cell))
    draw(ax, cell, shown)


def _loss(ax: Axes, cell: CellResults, shown: xr.Dataset) -> None:
    loss, test = cell.trajectory["loss"], "test_loss" in cell.trajectory
    for scale, colour in _scale_colours(cell).items():
        at = {"init_scale": scale}
        style.over_seeds(ax, loss["time"], loss.sel(at), color=colour)
        if test:
            curve = cell.trajectory["test_loss"].sel(at)
            style.over_seeds(ax, curve["time"], curve, color=colour, linestyle=TEST)
        _theory(ax, shown, "loss", at)
    ax.set(ylabel="loss" if test else "training loss", xlim=(0, _time_end(cell)))


def _lines(ax: Axes, cell: CellResults, shown: xr.Dataset, variable: str, scale: float) -> None:
    """A line for each mode, layer or task, with its label at its end."""
    axis, values = LINES[variable], cell.trajectory[variable]
    colours = _colours(cell) if axis == "mode" else _numbered(values[axis])
    limits = _ends(cell) if axis == "mode" else {}
    end = values["time"].values <= _time_end(cell)
    labels = []
    for entry, colour in colours.items():
        at = {"init_scale": scale, axis: entry}
        if entry in limits:
            ax.axhline(limits[entry], **style.GUIDE)
        style.over_seeds(ax, values["time"], values.sel(at), color=colour)
        _theory(ax, shown, variable, at)
        last = float(values.sel(at).isel(time=end).isel(time=-1).mean("seed"))
        number = f": {limits[entry]:.3g}" if entry in limits else ""
        labels.append((last, f"{axis} {entry}{number}", colour))
    for switch in getattr(cell.spec.dataset, "switches", ()):
        ax.axvline(switch * values["time"].attrs.get("per_step", 1), **style.GUIDE)
    ax.set_ylabel(variable.replace("_", " "))
    label_ends(ax, labels)


def _pairs(ax: Axes, cell: CellResults, shown: xr.Dataset) -> None:
    """Errors of pairs; untrained pairs have a broken line."""
    for name, line in _pairs_of(cell).items():
        for scale, colour in _scale_colours(cell).items():
            error = cell.trajectory[name].sel(init_scale=scale)
            style.over_seeds(ax, error["time"], error, color=colour, linestyle=line)
            _theory(ax, shown, name, {"init_scale": scale})
    ax.set(ylabel="relative error", ylim=(0, None))


def _fields(ax: Axes, cell: CellResults, shown: xr.Dataset) -> None:
    """Incoming weights of the hidden units, sorted by the input of the largest one."""
    weights = cell.receptive_fields.isel(init_scale=0, seed=0, snapshot=-1).values
    weights = np.nan_to_num(weights[np.argsort(abs(weights).argmax(1), kind="stable")])
    largest = float(abs(weights).max()) or 1.0
    image = style.heat(ax, weights, -largest, largest)
    ax.figure.colorbar(image, ax=ax, label="weight")
    ax.set(xlabel="input", ylabel="hidden unit, sorted")


def _has_fields(cell: CellResults) -> bool:
    recorded = {"weight_1", "pathway_maps"} & set(cell.trajectory.data_vars)
    return bool(recorded) and not {*LINES, *PAIRS} & set(cell.trajectory.data_vars)


def _pairs_of(cell: CellResults) -> dict[str, Any]:
    """Variables of pairs that were recorded, with their line styles; all pairs may be trained."""
    recorded = cell.trajectory.data_vars
    styles = zip(PAIRS, style.LINES, strict=False)
    return {n: line for n, line in styles if n in recorded and recorded[n].notnull().any()}


def _time_end(cell: CellResults) -> float:
    """The end of the time axis: a fifth longer than any curve changes, or the end of training."""
    time = cell.trajectory["time"]
    names = [name for name in DRAWN if name in cell.trajectory]
    settled = max(style.settling_time(cell.trajectory[name], time) for name in names)
    return min(1.2 * settled, float(time[-1]))


def _cut(cell: CellResults) -> list[str]:
    """A line of the caption about an axis of time that ends before training."""
    time, end = cell.trajectory["time"], _time_end(cell)
    if end >= float(time[-1]):
        return []
    trained = f"{float(time[-1]):,g} {time.attrs['units']}"
    digits = ",.0f" if time.attrs.get("per_step", 1) == 1 else ",.3g"
    return [f"Shown until {end:{digits}} of {trained}: later, no curve changes by more than 1%."]


# Colours, legend and caption ---------------------------------------------------------------------


def _scale_colours(cell: CellResults) -> dict[float, style.Colour]:
    return _numbered(cell.trajectory["init_scale"])


def _numbered(labels: xr.DataArray) -> dict[Any, style.Colour]:
    """A colour for each label of an axis, of which only the first ones are drawn."""
    shown = labels.values[:MOST_LINES].tolist()
    return dict(zip(shown, style.sequential(len(shown)), strict=True))


def _colours(cell: CellResults) -> dict[int, style.Colour]:
    """A colour for each mode that is drawn: the strongest modes of the target."""
    s = cell.strength
    return style.mode_colours(s.where((s > 1e-10 * s.max()) & (s["mode"] <= MOST_LINES), 0))


def _ends(cell: CellResults) -> dict[int, float]:
    """The strength of each mode at convergence, if there is theory of it."""
    if unmet(cell.spec, "one_task layered linear trained_readout squared_error"):
        return {}
    data, modes = cell.data, cell.data.modes
    ends = final_strength(data.sigma_yx, data.sigma_xx, modes.u, modes.v, min(layer_widths(cell)))
    return {n: float(end) for n, end in enumerate(ends, 1) if np.isfinite(end)}


def _caption(cell: CellResults) -> list[str]:
    if "mode_strength" not in cell.trajectory:
        return []
    return [BETWEEN_DOMAINS if _pairs_of(cell) else STRENGTH, *([ENDS] if _ends(cell) else [])]


def _handles(cells: list[CellResults], shown: list[xr.Dataset]) -> list[Artist]:
    """Legend handles: init scales, pairs, the band and solutions."""
    pairs = {name: line for cell in cells for name, line in _pairs_of(cell).items()}
    styles = {name: props for each in shown for name, props in _styles(each).items()}
    return [
        *_scale_handles(cells),
        *_test_handles(cells),
        *(
            style.handle(f"{name.removesuffix('_error')} pairs", color="0.4", linestyle=line)
            for name, line in pairs.items()
        ),
        style.BAND,
        *(style.handle(name, **props) for name, props in styles.items()),
    ]


def _test_handles(cells: list[CellResults]) -> list[Artist]:
    tested = any("test_loss" in cell.trajectory for cell in cells)
    return [style.handle("test loss", color="0.4", linestyle=TEST)] if tested else []


def _scale_handles(cells: list[CellResults]) -> list[Artist]:
    colours = {scale: colour for cell in cells for scale, colour in _scale_colours(cell).items()}
    return style.scale_handles({scale: {"color": colour} for scale, colour in colours.items()})


def _styles(shown: xr.Dataset) -> dict[str, dict[str, Any]]:
    """A black line for each solution, with different dashes."""
    names = shown["solution"].values.tolist() if shown else []
    lines = (style.THEORY["linestyle"], *style.LINES[1:])
    return {
        name: {**style.THEORY, "linestyle": lines[number % len(lines)]}
        for number, name in enumerate(names)
    }


def _theory(ax: Axes, shown: xr.Dataset, variable: str, at: dict[str, Any]) -> None:
    """The mean over seeds of each solution that has the variable."""
    if variable not in shown:
        return
    for name, props in _styles(shown).items():
        curve = shown[variable].sel(at)
        if "solution" in curve.dims:
            curve = curve.sel(solution=name)
        ax.plot(curve["time"], curve.mean("seed"), **props)
