"""Mode strengths over time, the curves that deep linear networks are known by."""

import xarray as xr
from matplotlib.axes import Axes

from neuralrace.figures import style
from neuralrace.results.cells import CellResults


def strengths(ax: Axes, cell: CellResults, solution: str, init_scale: int = 0) -> None:
    """Strength of each mode that is to be learned, and what a solution says of it.

    Args:
        ax: drawn on; it gets a second axis, with epochs.
        cell: has recorded mode strengths.
        solution: label of the solution, drawn as theory: its mean over seeds.
        init_scale: which one, by number.
    """
    modes = cell.get("trajectory", "mode_strength").isel(init_scale=init_scale)
    solved = cell.get("theory", "mode_strength", solution=solution).isel(init_scale=init_scale)
    solved, time = solved.mean("seed"), cell.flow_time
    for mode, colour in style.mode_colours(cell.strength).items():
        style.over_seeds(ax, time, modes.sel(mode=mode), color=colour)
        ax.plot(time, solved.sel(mode=mode), **style.THEORY)
    style.epochs(ax, time)
    ax.set(xlabel=style.FLOW_TIME, ylabel="mode strength", xlim=(0, rest(cell, solved)))


def rest(cell: CellResults, curves: xr.DataArray) -> float:
    """When the curves of all modes that are to be learned have come to rest."""
    return style.settled(curves.where(cell.strength != 0, 0), cell.flow_time)
