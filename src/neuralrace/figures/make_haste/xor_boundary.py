"""XoR with a linear margin: where the ReLU network turns from a nonlinear to a linear boundary.

The paper (Jarvis et al., "Make Haste Slowly", sec. 3) has the ReLU network turn at the margin
Delta* = sqrt(2/3), the vertical line, at which pathways of one class each and of one example each
learn equally fast. It draws no boundary; maps and shares are ours. Units of both kinds answer the
task together near Delta*. The smaller the initial weights, the more the turn is a step, and the
nearer to Delta*. Means and ranges over 10 runs.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import margins, style
from neuralrace.figures.sweeps import smallest_scale
from neuralrace.results.cells import CellResults, Results

SIDE = 1.6
"""Half the side of the square on which outputs are drawn."""
DOTS = 61
"""Number of points along each side of the square."""
LEAST = 0.01
"""Least share of the output, at any init scale, of margins that are drawn."""
AROUND = slice(-2, 4)
"""Margins of maps, counted from that of equal speed."""


@Figure(
    layout="a;b",
    height=4.2,
    heights=(1.3, 1.6),
    cf={"b": "sec. 3"},
    reads={
        "xor_margin": {
            "trajectory": "weight_1 weight_2",
            "metrics": "predicted_xor_share xor_share",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Init scales, and theory."""
    return margins.legend(results.cells("xor_margin"))


def panel_a(results: Results, ax: Axes) -> None:
    """Mean output over runs on the plane x3 = 0, where no linear function tells the classes apart,
    at the end of training from the smallest init scale; dots are the examples, filled where the
    target is +1. A nonlinear boundary answers XoR at the four corners, a linear one leaves nothing.
    """
    cells = margins.by_margin(results, "xor_margin")
    near = cells.index(margins.nearest(cells))
    shown = cells[max(near + AROUND.start, 0) : near + AROUND.stop]
    maps = [output(cell) for cell in shown]
    largest = float(np.nan_to_num(np.fmax.reduce(abs(np.array(maps)), axis=None))) or 1.0
    axes = style.split(ax, 1, len(shown), sharex=True, sharey=True)[0]
    for part, cell, shades in zip(axes, shown, maps, strict=True):
        image = style.heat(part, shades, -largest, largest, aspect="equal")
        image.set_extent((-SIDE, SIDE, -SIDE, SIDE))
        for (across, up, *_), (target,) in zip(cell.data.x, cell.data.y, strict=True):
            fill = "black" if target > 0 else "white"
            part.plot(across, up, "o", color="black", markerfacecolor=fill, markeredgewidth=0.8)
        part.set(xlim=(-SIDE, SIDE), ylim=(-SIDE, SIDE), xlabel="$x_1$")
        part.set_title(margins.title(cell), loc="center")
    key = "smallest init scale; dots: examples, filled where the target is +1, open where \u22121"
    style.note_at(ax, key, (1, 1), (0, 4), xycoords="axes fraction", ha="right")
    axes[0].set_xticks((-1, 1), ("-1", "1"))
    axes[0].set_yticks((-1, 1), ("-1", "1"))
    axes[0].set_ylabel("$x_2$")
    ax.figure.colorbar(image, ax=list(axes), label="output at $x_3$ = 0", aspect=12, pad=0.02)
    ax.set_title("The nonlinear part fades beyond $\\Delta^*$")


def panel_b(results: Results, ax: Axes) -> None:
    """Share of the output that units open on one example each carry at the end; units open on both
    examples of a class carry nearly all of the rest. Theory lets both kinds of pathways race from
    the initial weights of each run, with nothing fitted. Margins at which units open on one example
    carry less than 1% are left out; init scales are moved a little apart.
    """
    cells = [
        cell
        for cell in margins.by_margin(results, "xor_margin")
        if cell.get("metrics", "xor_share").mean("seed").max() >= LEAST
    ]
    shares, theory = (
        [cell.get("metrics", name) for cell in cells]
        for name in ("xor_share", "predicted_xor_share")
    )
    margins.draw_by_margin(ax, cells, shares, theory)
    ax.axhline(0.5, **style.GUIDE | {"zorder": 0})
    style.name_level(ax, 0.5, "equal shares")
    style.note(ax, f"bars: range of {shares[0].sizes['seed']} runs", "upper right", color="0.35")
    ax.set(ylim=(-0.05, 1.05), ylabel="output carried by XoR units")
    ax.set_title("Smaller initial weights turn more sharply")


def output(cell: CellResults) -> np.ndarray:
    """Mean output over seeds at x3 = 0, at the end of training from the smallest init scale.

    Args:
        cell: a ReLU network on XoR with a margin.

    Returns:
        (up, across), from the upper left; inputs are `DOTS` values from -`SIDE` to `SIDE`.
    """
    encoder, readout = (
        smallest_scale(cell.get("trajectory", f"weight_{layer}")).isel(snapshot=-1)
        for layer in (1, 2)
    )
    side = np.linspace(-SIDE, SIDE, DOTS)
    points = np.stack(np.meshgrid(side, side[::-1]))
    inputs = xr.DataArray(points, dims=("unit_0", "up", "across"))
    hidden = xr.dot(encoder.isel(unit_0=slice(2)), inputs, dim="unit_0").clip(min=0)
    answers = xr.dot(readout.isel(unit_2=0), hidden, dim="unit_1").mean("seed")
    return answers.transpose("up", "across").values
