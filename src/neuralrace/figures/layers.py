"""Networks by number of layers and by entry variance, and labels of layers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.results.cells import CellResults, Results

VARIANCES = {"growth": "as printed", "growth_standard": "Glorot and Bengio"}
"""Entry variances of Glorot starts, by experiment."""

CLOSE = 0.05
"""Distance of lines, as a share of the height of the axes, up to which they share a label."""


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


def line(colour: style.Colour | str, width: int | float = 3) -> dict[str, Any]:
    """Properties of a simulated line."""
    return style.SIMULATION | {"color": colour, "linewidth": width}


def label(
    ax: Axes,
    x: int | float,
    y: int | float,
    text: str,
    colour: style.Colour | str,
    shift: int | float = 0,
    xycoords: str = "data",
) -> None:
    """A label to the right of a point, moved up by `shift` points."""
    ax.annotate(
        text,
        (x, y),
        (3, shift),
        xycoords,
        textcoords="offset points",
        va="center",
        color=colour,
        fontsize=style.RC_PARAMS["legend.fontsize"],
        annotation_clip=False,
    )


def label_layers(
    ax: Axes, ends: xr.DataArray, colours: Sequence[style.Colour], noun: str = "layer"
) -> None:
    """Layers at the right ends of lines; those at almost the same height share a label.

    Args:
        ax: axes with their final limits along y.
        ends: height of each line, (layer).
        colours: one for each layer.
        noun: stands before the numbers of layers; may be empty.
    """
    low, high = ax.get_ylim()
    known = [int(layer) for layer in ends["layer"].values]
    heights = dict(zip(known, ends.values.tolist(), strict=True))
    shared: list[list[int]] = []
    for layer in sorted(known, key=heights.__getitem__):
        if shared and heights[layer] - heights[shared[-1][-1]] < CLOSE * (high - low):
            shared[-1].append(layer)
        else:
            shared.append([layer])
    labels = []
    for layers in map(sorted, shared):
        whole = len(layers) > 2 and len(layers) == layers[-1] - layers[0] + 1
        names = f"{layers[0]} to {layers[-1]}" if whole else ", ".join(map(str, layers))
        text = f"{noun}{'s' if noun and len(layers) > 1 else ''} {names}".strip()
        height = float(np.mean([heights[layer] for layer in layers]))
        labels.append((height, text, colours[known.index(layers[len(layers) // 2])]))
    label_ends(ax, labels)
