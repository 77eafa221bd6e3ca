"""Networks by number of layers and by entry variance, and labels at the ends of lines."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.figures import style
from neuralrace.results.cells import CellResults, Results

VARIANCES = {"growth": "as printed", "growth_standard": "Glorot and Bengio"}
"""Entry variances of Glorot starts, by experiment."""


def networks(results: Results, experiment: str) -> list[CellResults]:
    """Networks of an experiment, those with the fewest layers first."""
    return sorted(results.cells(experiment), key=depth)


def depth(cell: CellResults) -> int:
    """Number of layers of weights."""
    return len(cell.spec.layered.hidden) + 1


def unit_scale(cell: CellResults) -> dict[str, int]:
    """Position of the init scale that is closest to 1."""
    return {"init_scale": int(np.argmin(abs(cell.metrics["init_scale"].values - 1)))}


def squared_growth(norms: xr.DataArray) -> xr.DataArray:
    """Growth of squared norms since the start."""
    return norms**2 - norms.isel(time=0) ** 2


def label(
    ax: Axes, x: float, y: float, text: str, colour: style.Colour | str, shift: float = 0
) -> None:
    """A label to the right of a point, moved up by `shift` points."""
    ax.annotate(
        text,
        (x, y),
        (3, shift),
        textcoords="offset points",
        va="center",
        color=colour,
        fontsize=style.RC_PARAMS["legend.fontsize"],
        annotation_clip=False,
    )


def label_ends(
    ax: Axes, x: float, ends: Mapping[str, float], colours: Sequence[style.Colour], gap: float
) -> None:
    """Labels of lines at their right ends, in the colours of the lines.

    Args:
        ax: axes with their final limits along y.
        x: right end of the axes.
        ends: height of each line, by label.
        colours: one for each label.
        gap: least distance between labels, as a share of the height of the axes.
    """
    low, high = ax.get_ylim()
    heights = [(height - low) / (high - low) for height in ends.values()]
    spread: dict[int, float] = {}
    lowest = -np.inf
    for index in np.argsort(heights, kind="stable"):
        lowest = spread[int(index)] = max(heights[index], lowest + gap)
    over = max(max(spread.values()) - 1, 0)
    for index, (text, colour) in enumerate(zip(ends, colours, strict=True)):
        label(ax, x, low + (spread[index] - over) * (high - low), text, colour)
