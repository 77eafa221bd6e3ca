"""XoR with a linear margin: where the ReLU network turns from a nonlinear to a linear boundary.

The paper (Jarvis et al., "Make Haste Slowly", sec. 3) has the ReLU network turn at the margin
Delta* = sqrt(2/3), the vertical line, at which pathways of one class each and of one example each
learn equally fast. It draws no boundary; the maps and both measures are ours. Units of both kinds
answer the task together near Delta*: there a ReLU network amounts to neither gated network, but to
both in one. The smaller the init scale, the more the turn is a step at Delta*. Theory starts from
the initial weights of each run with nothing fitted. Means and ranges over seeds.
"""

from collections.abc import Sequence

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


@Figure(
    layout="abc",
    height=3.3,
    widths=(0.72, 1.0, 1.0),
    cf={"b": "sec. 3"},
    reads={
        "xor_margin": {
            "trajectory": "weight_1 weight_2",
            "metrics": "nonlinearity_index predicted_xor_share xor_share",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Init scales of b and c, and theory."""
    return [
        *style.scale_handles(margins.scale_styles(results.cells("xor_margin")[0])),
        style.handle("theory", **style.THEORY),
        style.handle("XoR units alone", **style.GUIDE),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Mean output over seeds on the plane x3 = 0, where no linear function tells the classes apart,
    at the end of training from the smallest init scale; dots are the examples, filled where the
    target is +1. Below Delta* the four corners answer XoR, beyond it nothing is left.
    """
    cells = margins.by_margin(results, "xor_margin")
    shown = [cells[at] for at in margins.example_indices(list(map(margins.margin, cells)))]
    maps = [output(cell) for cell in shown]
    reached = [float(np.fmax.reduce(abs(shades).ravel())) for shades in maps]
    largest = float(np.nan_to_num(np.fmax.reduce(reached))) or 1.0
    axes = style.split(ax, len(shown))[:, 0]
    for part, cell, shades in zip(axes, shown, maps, strict=True):
        image = style.heat(part, shades, -largest, largest, aspect="equal")
        image.set_extent((-SIDE, SIDE, -SIDE, SIDE))
        for (across, up, *_), (target,) in zip(cell.data.x, cell.data.y, strict=True):
            fill = "black" if target > 0 else "white"
            part.plot(across, up, "o", color="black", markerfacecolor=fill, markeredgewidth=0.8)
        part.set_yticks((-1, 1), ("-1", "1"))
        part.set(xlim=(-SIDE, SIDE), ylim=(-SIDE, SIDE), ylabel="$x_2$")
        part.set_title(rf"$\Delta$ = {margins.margin(cell):.4g}", loc="center")
    axes[-1].set_xticks((-1, 1), ("-1", "1"))
    axes[-1].set_xlabel("$x_1$")
    ax.figure.colorbar(image, ax=list(axes), label="output at $x_3$ = 0", aspect=30)
    ax.set_title(
        f"At $x_3$ = 0 output reaches {reached[0]:.2g}, and {reached[-1]:.1g} at "
        rf"$\Delta$ = {margins.margin(shown[-1]):.4g}"
    )


def panel_b(results: Results, ax: Axes) -> None:
    """Share of the output that units open on one example each carry at the end; units open on both
    examples of a class carry nearly all of the rest. Theory lets both kinds of pathways race.
    """
    cells = margins.by_margin(results, "xor_margin")
    crossing, carried = _by_margin(ax, cells, "xor_share", np.ones(len(cells)))
    ax.set_ylabel("output carried by XoR units")
    ax.set_title(rf"XoR units carry {carried} at $\Delta$ = {crossing:.4g}")


def panel_c(results: Results, ax: Axes) -> None:
    """Nonlinearity index: half the difference between the classes of outputs at x3 = 0, which is 0
    for every linear function. XoR units alone would have 2/(2 + Delta^2), grey; theory is that
    times their share of the output.
    """
    cells = margins.by_margin(results, "xor_margin")
    positions = np.array(list(map(margins.margin, cells)))
    crossing, index = _by_margin(ax, cells, "nonlinearity_index", _alone(positions))
    positions = np.linspace(positions[0], positions[-1], 50)
    ax.plot(positions, _alone(positions), **style.GUIDE)
    ax.set_ylabel("nonlinearity index")
    ax.set_title(rf"Index {index} at $\Delta$ = {crossing:.4g}")


def _alone(margin: np.ndarray) -> np.ndarray:
    """Nonlinearity index of XoR units alone, each of which answers one example."""
    return 2 / (2 + margin**2)


def _by_margin(
    ax: Axes, cells: Sequence[CellResults], name: str, factors: np.ndarray
) -> tuple[float, str]:
    """Draws a metric by margin and init scale; theory is the predicted share times a factor.

    Returns the margin nearest to that of equal speed, and the range of the metric there.
    """
    values = [cell.get("metrics", name) for cell in cells]
    shares = [cell.get("metrics", "predicted_xor_share") for cell in cells]
    theory = [share * factor for share, factor in zip(shares, factors, strict=True)]
    margins.draw_by_margin(ax, cells, values, theory)
    ax.set_ylim(-0.05, 1.05)
    crossing = margins.nearest(cells)
    ends = sorted(crossing.get("metrics", name).mean("seed").values.tolist())
    return margins.margin(crossing), margins.value_range(ends)


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
