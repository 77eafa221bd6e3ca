"""The standard figure of any cell: loss, mode strengths and errors of pairs, with theory on top."""

from string import ascii_lowercase
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neuralrace.config.requirements import unmet
from neuralrace.errors import UserError
from neuralrace.figures import style
from neuralrace.figures.compose import set_titles
from neuralrace.figures.sweeps import layer_widths
from neuralrace.results.cells import CellResults, cells_of
from neuralrace.theory.modes import final_strength

INTEGRATED = ("flow", "gated_flow")
"""Solutions that assume nothing about the start; if one was solved, no other is shown."""
PAIRS = ("trained_error", "untrained_error")
DRAWN = ("loss", "mode_strength", *PAIRS)
"""Variables that are drawn if they were recorded."""
COLUMNS, HEIGHT = 3, 2.1
"""Number of panels in a row, and height of a row in inches."""
MOST_MODES = 8
"""Number of modes that are drawn; more colours cannot be distinguished."""
STRENGTH = (
    r"Strength of mode $k$: $u_k^\top W v_k$, where $W$ is the product of all weights and $u_k$, "
    r"$v_k$ are singular vectors of the input-output correlation $\langle yx^\top\rangle$."
)
BETWEEN_DOMAINS = "Strength of each mode of the task, averaged over trained pairs of domains."
ENDS = (
    r"Grey: where it ends by theory, $W$ the best linear map "
    r"$\langle yx^\top\rangle\langle xx^\top\rangle^{-1}$; for uncorrelated inputs of variance 1 "
    r"the singular value."
)
"""Captions under panels of modes and their guides."""


def plot(
    results: xr.DataTree | CellResults, ax: Axes | None = None, theory: str | None = None
) -> Figure:
    """Draws the loss over time, and mode strengths and errors of pairs of domains if recorded.

    The mean over seeds is a line and their range a band; theory is dashed and black. A thin grey
    line is the strength that a mode has at convergence in theory, and the legend gives its value.
    For uncorrelated inputs of variance 1 this is the singular value of the input-output
    correlation.

    Args:
        results: the result of `simulate`, or a cell of `open_results`.
        ax: axes for the loss alone; when absent, a new figure shows everything.
        theory: the solution to draw. When absent, the gradient flow of all weights if it was
            solved, and otherwise all solutions.

    Returns:
        The figure, which a notebook displays; the figure of `ax` if `ax` is passed.

    Raises:
        UserError: results of several cells or none, an `ax` that is not axes, or a solution that
            was not solved.

    Example:
        >>> import neuralrace as nr
        >>> tree = nr.simulate("hierarchy", hidden=[16], init_scales=[0.01], seeds=2)
        >>> figure = nr.plot(tree, theory="aligned_modes")
        >>> [ax.get_ylabel() for ax in figure.axes]
        ['training loss', 'mode strength']
    """
    cell = _cell(results)
    if not isinstance(ax, Axes | None):
        raise UserError(
            f"{type(ax).__name__}: give axes of matplotlib, as plt.subplots() does", key="ax"
        )
    with style.rc_context():
        shown = _shown(cell.theory, theory)
        if ax is not None:
            _loss(ax, cell, shown)
            ax.legend(title="init scale")
            ax.set_xlabel(cell.trajectory["time"].attrs["units"])
            return ax.figure.figure  # of a subfigure, too
        return _all(cell, shown)


def _cell(results: Any) -> CellResults:
    cells = cells_of(results) if isinstance(results, xr.DataTree) else [results]
    if len(cells) != 1:
        raise UserError(
            f"holds {len(cells)} cells, and one is drawn",
            key="results",
            remedy="choose one of them",
        )
    if not isinstance(cells[0], CellResults):
        raise UserError(
            f"{type(results).__name__}: give what simulate gives or a cell of open_results",
            key="results",
        )
    return cells[0]


def _shown(theory: xr.Dataset, name: str | None) -> xr.Dataset:
    """The solutions that are drawn."""
    if "solution" not in theory.dims:
        if name is not None:
            raise UserError("nothing was solved", key="theory", value=name, remedy="leave it out")
        return xr.Dataset()
    solved = theory["solution"].values.tolist()
    if name is not None and (not isinstance(name, str) or name not in solved):
        raise UserError(
            "was not solved", key="theory", value=name, remedy=f"there is {', '.join(solved)}"
        )
    integrated = [solution for solution in INTEGRATED if solution in solved]
    return theory.sel(solution=[name] if name else integrated or solved)


def _all(cell: CellResults, shown: xr.Dataset) -> Figure:
    """A new figure with all panels."""
    trajectory = cell.trajectory
    scales = trajectory["init_scale"].values
    strengths = trajectory.get("mode_strength")
    pairs = [name for name in PAIRS if name in trajectory]
    titles = ["loss"]
    titles += [f"modes, init scale {scale:g}" for scale in scales if strengths is not None]
    titles += ["pairs of domains"] if pairs else []
    rows = -(-len(titles) // COLUMNS)
    width = style.PAGE if len(titles) > 1 else style.COLUMN
    figure = style.Canvas(figsize=(width, HEIGHT * rows))
    grid = figure.subplots(rows, min(COLUMNS, len(titles)), sharex=True, squeeze=False).ravel()
    panels = grid[: len(titles)]
    for ax in grid[len(titles) :]:
        ax.remove()
    _loss(panels[0], cell, shown)
    panels[0].legend(title="init scale", loc="upper right")
    handles: list[Artist] = [style.BAND]
    if strengths is not None:
        colours, ends = _colours(cell), _ends(cell)
        handles = [*(_mode_handle(m, c, ends) for m, c in colours.items()), *handles]
        for ax, scale in zip(panels[1:], scales, strict=False):
            for mode, colour in colours.items():
                at = {"init_scale": scale, "mode": mode}
                if mode in ends:
                    ax.axhline(ends[mode], **style.GUIDE)
                style.over_seeds(ax, trajectory["time"], strengths.sel(at), color=colour)
                _theory(ax, shown, "mode_strength", at)
            ax.set_ylabel("mode strength")
        caption = [BETWEEN_DOMAINS if pairs else STRENGTH, *([ENDS] if ends else [])]
        figure.supxlabel("\n".join(caption), x=0.01, ha="left", fontsize=6, color="0.35")
    if pairs:
        _pairs(panels[-1], cell, pairs)
    for ax, title in zip(panels, titles, strict=True):
        ax.set_title(title)
        ax.set_xlabel(trajectory["time"].attrs["units"])
        ax.tick_params(labelbottom=True)
    handles += [style.handle(name, **props) for name, props in _styles(shown).items()]
    style.legend(figure, handles)
    style.darken_text(figure)
    set_titles(figure, dict(zip(ascii_lowercase, panels, strict=False)), {})
    return figure


def _loss(ax: Axes, cell: CellResults, shown: xr.Dataset) -> None:
    loss = cell.trajectory["loss"]
    time, scales = loss["time"], loss["init_scale"].values
    for scale, colour in zip(scales, style.sequential(len(scales)), strict=True):
        at = {"init_scale": scale}
        style.over_seeds(ax, time, loss.sel(at), color=colour, label=f"{scale:g}")
        _theory(ax, shown, "loss", at)
    ax.set(ylabel="training loss", xlim=(0, _time_end(cell)))


def _time_end(cell: CellResults) -> float:
    """The end of the time axis: a fifth longer than any curve changes, or the end of training."""
    time = cell.trajectory["time"]
    drawn = [cell.trajectory[name] for name in DRAWN if name in cell.trajectory]
    return min(1.2 * max(style.settling_time(curve, time) for curve in drawn), float(time[-1]))


def _pairs(ax: Axes, cell: CellResults, names: list[str]) -> None:
    """Errors of pairs; untrained pairs have a broken line."""
    scales = cell.trajectory["init_scale"].values
    for name, line in zip(names, style.LINES, strict=False):
        for scale, colour in zip(scales, style.sequential(len(scales)), strict=True):
            error = cell.trajectory[name].sel(init_scale=scale)
            if error.notnull().any():  # all pairs may be trained
                label = name.removesuffix("_error") if scale == scales[0] else None
                props = {"color": colour, "linestyle": line, "label": label}
                style.over_seeds(ax, cell.trajectory["time"], error, **props)
    ax.set(ylabel="relative error", ylim=(0, None))
    ax.legend(loc="upper right")


def _colours(cell: CellResults) -> dict[int, style.Colour]:
    """A colour for each mode that is drawn: the strongest modes of the target."""
    s = cell.strength
    return style.mode_colours(s.where((s > 1e-10 * s.max()) & (s["mode"] <= MOST_MODES), 0))


def _ends(cell: CellResults) -> dict[int, float]:
    """The strength of each mode at convergence, if there is theory of it."""
    if unmet(cell.spec, "layered linear trained_readout squared_error"):
        return {}
    data, modes = cell.data, cell.data.modes
    ends = final_strength(data.sigma_yx, data.sigma_xx, modes.u, modes.v, min(layer_widths(cell)))
    return {n: float(end) for n, end in enumerate(ends, 1) if np.isfinite(end)}


def _mode_handle(mode: int, colour: Any, ends: dict[int, float]) -> Artist:
    """Legend handle of a mode, with its strength at convergence."""
    end = f" ends at {ends[mode]:.3g}" if mode in ends else ""
    return style.handle(f"mode {mode}{end}", color=colour)


def _styles(shown: xr.Dataset) -> dict[str, dict[str, Any]]:
    """A black line for each solution, with different dashes."""
    names = shown["solution"].values.tolist() if shown else []
    lines = (style.THEORY["linestyle"], *style.LINES[1:])
    return {
        name: {**style.THEORY, "linestyle": lines[number % len(lines)]}
        for number, name in enumerate(names)
    }


def _theory(ax: Axes, shown: xr.Dataset, variable: str, at: dict[str, float]) -> None:
    for name, props in _styles(shown).items():
        if variable in shown:
            curve = shown[variable].sel(at | {"solution": name}).mean("seed")
            ax.plot(curve["time"], curve, **props)
