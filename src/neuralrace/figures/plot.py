"""The standard figure of any cell: what it learned, and its theory over it."""

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
from neuralrace.figures.compose import entitle
from neuralrace.results.cells import CellResults, cells_of
from neuralrace.theory.modes import final_strength

INTEGRATED = ("flow", "gated_flow")
"""Solutions without an assumption on the start: shown alone where there is one."""
PAIRS = ("trained_error", "untrained_error")
DRAWN = ("loss", "mode_strength", *PAIRS)
"""Variables that are shown, where they were recorded."""
ABREAST, HEIGHT = 3, 2.1
"""Panels in a row, and inches of each."""
MOST_MODES = 8
"""Modes that are shown: colours of more cannot be told apart."""
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
"""The caption under panels of modes: what they show, and their guides."""


def plot(
    results: xr.DataTree | CellResults, ax: Axes | None = None, theory: str | None = None
) -> Figure:
    """Loss over time, strengths of modes and errors of pairs of domains, where there are any.

    The mean over seeds is a line and their range a band; theory is dashed and black, and its mean.
    A thin grey line is the strength that a mode ends at by theory, which the legend tells. It is
    the singular value of the input-output correlation where inputs are uncorrelated with variance
    1, and another number for other inputs.

    Args:
        results: what `simulate` gives, or a cell of `open_results`.
        ax: axes to draw the loss into, and nothing else; a new figure with all when absent.
        theory: the solution that is shown; when absent, the gradient flow of all weights where it
            was solved, and all solutions where it was not.

    Returns:
        The figure, which is shown in a notebook; that of `ax` where it is given.

    Raises:
        UserError: something else than one cell, axes that are none, or no such solution.

    Example:
        >>> import neuralrace as nr
        >>> tree = nr.simulate("hierarchy", hidden=[16], init_scales=[0.01], seeds=2)
        >>> figure = nr.plot(tree, theory="aligned_modes")
        >>> [ax.get_ylabel() for ax in figure.axes]
        ['training loss', 'mode strength']
    """
    cell = _cell(results)
    if not isinstance(ax, Axes | None):
        raise UserError(f"ax: {type(ax).__name__}: give axes of matplotlib, as plt.subplots() does")
    with style.sheet():
        shown = _shown(cell.theory, theory)
        if ax is not None:
            _loss(ax, cell, shown)
            ax.legend(title="init scale")
            ax.set_xlabel(cell.trajectory["time"].attrs["units"])
            return ax.figure.figure  # of a subfigure, too
        return _all(cell, shown)


def _cell(results: Any) -> CellResults:
    """The one cell that is shown.

    Raises:
        UserError: another number of cells, or none that is known.
    """
    cells = cells_of(results) if isinstance(results, xr.DataTree) else [results]
    if len(cells) != 1:
        raise UserError(f"results: holds {len(cells)} cells, and one is drawn; choose one of them")
    if not isinstance(cells[0], CellResults):
        raise UserError(
            f"results: {type(results).__name__}: give what simulate gives or a cell of open_results"
        )
    return cells[0]


def _shown(theory: xr.Dataset, name: str | None) -> xr.Dataset:
    """The solutions that are shown."""
    if "solution" not in theory.dims:
        if name is not None:
            raise UserError(f"theory: {name!r}: nothing was solved; leave it out")
        return xr.Dataset()
    there = theory["solution"].values.tolist()
    if name is not None and (not isinstance(name, str) or name not in there):
        raise UserError(f"theory: {name!r}: was not solved; there is {', '.join(there)}")
    wanted = [name] if name else [each for each in INTEGRATED if each in there] or there
    return theory.sel(solution=wanted)


def _all(cell: CellResults, shown: xr.Dataset) -> Figure:
    trajectory = cell.trajectory
    scales = trajectory["init_scale"].values
    strengths = trajectory.get("mode_strength")
    pairs = [name for name in PAIRS if name in trajectory]
    titles = ["loss"]
    titles += [f"modes, init scale {scale:g}" for scale in scales if strengths is not None]
    titles += ["pairs of domains"] if pairs else []
    rows = -(-len(titles) // ABREAST)
    width = style.PAGE if len(titles) > 1 else style.COLUMN
    figure = style.Canvas(figsize=(width, HEIGHT * rows))
    grid = figure.subplots(rows, min(ABREAST, len(titles)), sharex=True, squeeze=False).ravel()
    panels = grid[: len(titles)]
    for ax in grid[len(titles) :]:
        ax.remove()
    _loss(panels[0], cell, shown)
    panels[0].legend(title="init scale", loc="upper right")
    entries: list[Artist] = [style.BAND]
    if strengths is not None:
        colours, ends = _colours(cell), _ends(cell)
        entries = [*(_mode_entry(m, c, ends) for m, c in colours.items()), *entries]
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
    entries += [style.entry(name, **look) for name, look in _looks(shown).items()]
    style.legend(figure, entries)
    entitle(figure, dict(zip(ascii_lowercase, panels, strict=False)), {})
    return figure


def _loss(ax: Axes, cell: CellResults, shown: xr.Dataset) -> None:
    loss = cell.trajectory["loss"]
    time, scales = loss["time"], loss["init_scale"].values
    for scale, colour in zip(scales, style.ordered(len(scales)), strict=True):
        at = {"init_scale": scale}
        style.over_seeds(ax, time, loss.sel(at), color=colour, label=f"{scale:g}")
        _theory(ax, shown, "loss", at)
    ax.set(ylabel="training loss", xlim=(0, _until(cell)))


def _until(cell: CellResults) -> float:
    """The end of what is shown: a fifth longer than anything changes, or the end of training."""
    time = cell.trajectory["time"]
    drawn = [cell.trajectory[name] for name in DRAWN if name in cell.trajectory]
    return min(1.2 * max(style.settled(curve, time) for curve in drawn), float(time[-1]))


def _pairs(ax: Axes, cell: CellResults, names: list[str]) -> None:
    """Errors of pairs: those never trained by a thinner, broken line."""
    scales = cell.trajectory["init_scale"].values
    for name, line in zip(names, style.LINES, strict=False):
        for scale, colour in zip(scales, style.ordered(len(scales)), strict=True):
            error = cell.trajectory[name].sel(init_scale=scale)
            if error.notnull().any():  # all pairs may be trained
                label = name.removesuffix("_error") if scale == scales[0] else None
                look = {"color": colour, "linestyle": line, "label": label}
                style.over_seeds(ax, cell.trajectory["time"], error, **look)
    ax.set(ylabel="relative error", ylim=(0, None))
    ax.legend(loc="upper right")


def _colours(cell: CellResults) -> dict[int, tuple[float, float, float]]:
    """A colour for each mode that is shown, the strongest of those that are to be learned."""
    s = cell.strength
    return style.mode_colours(s.where((s > 1e-10 * s.max()) & (s["mode"] <= MOST_MODES), 0))


def _ends(cell: CellResults) -> dict[int, float]:
    """The strength that each mode ends at by theory, where there is theory of it."""
    if unmet(cell.spec, "layered linear trained_readout squared_error"):
        return {}
    data = cell.data
    widths = (data.x.shape[1], *cell.spec.layered.hidden, data.y.shape[1])
    modes = data.modes
    ends = final_strength(data.sigma_yx, data.sigma_xx, modes.u, modes.v, min(widths))
    return {n: float(end) for n, end in enumerate(ends, 1) if np.isfinite(end)}


def _mode_entry(mode: int, colour: Any, ends: dict[int, float]) -> Artist:
    """A mode in the legend, with where it ends."""
    end = f" ends at {ends[mode]:.3g}" if mode in ends else ""
    return style.entry(f"mode {mode}{end}", color=colour)


def _looks(shown: xr.Dataset) -> dict[str, dict[str, Any]]:
    """A dashed black line for each solution, told apart by its dashes."""
    names = shown["solution"].values.tolist() if shown else []
    lines = (style.THEORY["linestyle"], *style.LINES[1:])
    return {
        name: {**style.THEORY, "linestyle": lines[number % len(lines)]}
        for number, name in enumerate(names)
    }


def _theory(ax: Axes, shown: xr.Dataset, variable: str, at: dict[str, float]) -> None:
    for name, look in _looks(shown).items():
        if variable in shown:
            curve = shown[variable].sel(at | {"solution": name}).mean("seed")
            ax.plot(curve["time"], curve, **look)
