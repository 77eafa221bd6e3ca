"""XoR: the cell types of a ReLU network, the gated network they amount to, and the dynamics."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.errors import UserError
from neuralrace.figures import style
from neuralrace.networks.gated import Gated
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

LABELS: dict[int, dict[str, Any]] = {
    1: {"color": style.distinct(3), "marker": "o"},
    -1: {"color": style.distinct(0), "marker": "s"},
}
"""Looks of labels, and of units by the sign of their readout."""
SPAN = 0.8
"""Where the largest unit is drawn, as a share of the way to a corner."""


@Figure(
    reads={
        "xor_relu": {
            "trajectory": "loss weight_1 weight_2",
            "theory": "loss",
            "metrics": "loss_error_sup",
        },
        "xor_gated": {
            "trajectory": "",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Hidden units on the task, gates of pathways, and losses against theory.

    Units are those of the first seed at the finest step.
    """
    cells = sorted(results.cells("xor_relu"), key=lambda cell: -cell.spec.training.learning_rate)
    rates = [cell.spec.training.learning_rate for cell in cells]
    figure = Canvas(figsize=(style.COLUMN, 4.6))
    grid = figure.add_gridspec(3, 2, height_ratios=(1.25, 1, 0.9), width_ratios=(1, 1))
    units, gates = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[0, 1])
    losses, errors = figure.add_subplot(grid[1, :]), figure.add_subplot(grid[2, :])
    _units(units, cells[-1])
    _gates(gates, results.cell("xor_gated"))
    colours = style.ordered(len(cells))
    shown = sorted({0, len(cells) - 1})
    for index in shown:
        cell, colour = cells[index], colours[index]
        loss = cell.get("trajectory", "loss").isel(init_scale=0)
        style.over_seeds(losses, cell.flow_time, loss / loss.isel(time=0), color=colour)
    # the finest clock shows theory best; it starts from the same weights at every step size
    theory = cells[-1].get("theory", "loss", solution="xor_race").isel(init_scale=0).mean("seed")
    losses.plot(cells[-1].flow_time, theory / theory.isel(time=0), **style.THEORY)
    losses.set(xlabel=style.FLOW_TIME, ylabel="loss over\ninitial loss", ylim=(0, None))
    losses.set_xlim(0, style.settled(theory, cells[-1].flow_time) * 1.1)

    off = [
        cell.get("metrics", "loss_error_sup", solution="xor_race").isel(init_scale=0)
        for cell in cells
    ]
    for rate, each, colour in zip(rates, off, colours, strict=True):
        style.points(errors, rate, each, color=colour, marker="o")
    style.slope_one(errors, rates, float(off[-1].mean("seed")) * rates[0] / rates[-1])
    style.loglog(errors, rates)
    errors.set(xlabel="learning rate", ylabel="largest distance\n(initial loss)")
    style.letters(
        [units, gates, losses, errors],
        [
            "ReLU network",
            "gated linear network",
            "ReLU network against theory",
            "distance from theory",
        ],
    )
    entries = [
        style.entry(f"learning rate {rates[index]:g}", color=colours[index]) for index in shown
    ]
    theory = style.entry("theory", **style.THEORY)
    slope = style.entry("d: slope 1", **style.GUIDE)
    signs = [
        style.entry(f"label, readout ${sign:+d}$", linestyle="", **look)
        for sign, look in LABELS.items()
    ]
    style.legend(figure, [*signs, *entries, style.BAND, theory, slope], columns=3)
    return figure


def _units(ax: Axes, cell: CellResults) -> None:
    """The task, and where the hidden units point: input weights times the size of the readout."""
    data = cell.data
    last = {"init_scale": 0, "seed": 0, "snapshot": -1}
    encoder, readout = (
        cell.get("trajectory", f"weight_{layer}").isel(last).values for layer in (1, 2)
    )
    unit = abs(readout).T * encoder
    unit *= SPAN / abs(unit).max()
    for corner in data.x:
        ax.plot(*np.stack([0 * corner, corner], axis=1), color="0.75", linewidth=0.6, zorder=0)
    for sign, look in LABELS.items():
        corners = data.x[np.sign(data.y[:, 0]) == sign]
        ax.plot(*corners.T, linestyle="", markersize=8, **look)
        chosen = unit[np.sign(readout[0]) == sign]
        ax.plot(*chosen.T, linestyle="", markersize=3, alpha=0.5, **look)
    ax.set(xlabel="input 1, weight 1", ylabel="input 2, weight 2", aspect="equal")
    ax.set(xticks=(-1, 0, 1), yticks=(-1, 0, 1), xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))


def _gates(ax: Axes, cell: CellResults) -> None:
    """Gates of every pathway on every example."""
    network = cell.spec.network
    if not isinstance(network, Gated):
        raise UserError(f"{cell.name}: network {network.name!r} has no gates of pathways to draw")
    data = cell.data
    picture = network.gates.picture(data)
    numbers = [str(number) for number in range(1, len(picture.values) + 1)]
    style.heat(ax, picture.values, 0, 1, numbers, [f"${name}$" for name in data.item_names])
    ax.set(xlabel="example", ylabel=picture.rows)
