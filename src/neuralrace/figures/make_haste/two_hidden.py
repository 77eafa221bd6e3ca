"""A second hidden layer: stages, how much runs differ, and what each layer does (fig. 6)."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.errors import UserError
from neuralrace.figures import gated, style
from neuralrace.networks.gated import Gated
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

ONE: dict[str, Any] = {"color": "0.55", "marker": "^", "linestyle": style.LINES[1]}
TWO: dict[str, Any] = {"color": style.distinct(3), "marker": "o"}
UNITS = {
    "always_open_units": ("units alike", {"color": style.distinct(3), "marker": "o"}),
    "always_open_share": ("by power", {"color": style.distinct(9), "marker": "s"}),
}
"""Metrics, what to call them and how to draw them."""


@Figure(
    reads={
        "one_hidden": {
            "metrics": "level_time_variation",
        },
        "two_hidden": {
            "trajectory": "loss",
            "metrics": (
                "always_open_share always_open_units final_loss_share level_time_variation "
                "linearised_loss"
            ),
        },
        "two_hidden_gated": {
            "trajectory": "loss",
            "metrics": "level_time_variation",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Losses of all runs, spread of their times, and both hidden layers at the end."""
    relu, single = results.cell("two_hidden"), results.cell("one_hidden")
    networks = sorted(results.cells("two_hidden_gated"), key=_units)
    looks: list[dict[str, Any]] = [
        {
            "color": colour,
            "marker": style.marker(3 + index),
            "linestyle": style.LINES[2 + index % 2],
        }
        for index, colour in enumerate(style.ordered(len(networks)))
    ]
    figure = Canvas(figsize=(style.COLUMN, 6.6))
    rows = figure.add_gridspec(4, 1, height_ratios=(1.2, 1.2, 1, 1.25))
    first, second, spread = (figure.add_subplot(rows[row]) for row in range(3))
    linear, always = (figure.add_subplot(cell) for cell in rows[3].subgridspec(1, 2))

    _draw_runs(first, relu, TWO)
    for cell, look in zip(networks, looks, strict=True):
        _draw_runs(second, cell, look)
    loss = gated.relative(relu.get("trajectory", "loss"))
    second.plot(relu.flow_time, typical(loss), color=TWO["color"])
    for ax in (first, second):
        ax.set(
            xlim=(0, float(relu.flow_time[-1])), ylim=(0, None), ylabel="loss over\ninitial loss"
        )
    style.epochs(first, relu.flow_time)
    first.tick_params(labelbottom=False)
    second.set_xlabel(style.FLOW_TIME)

    scale = float(relu.trajectory["init_scale"].min())
    for cell, look in zip((relu, *networks, single), (TWO, *looks, ONE), strict=True):
        variation = _variation(cell, scale)
        spread.plot(range(variation.size), variation, linewidth=1.2, **look)
    levels = [f"{level:g}" for level in variation["loss_level"].values]
    spread.set_xticks(range(len(levels)), levels)
    spread.set(xlabel="loss over initial loss", ylabel="deviation of its\ntime over mean")
    spread.margins(y=0.15)
    spread.set_ylim(0, None)
    _draw_layers(linear, always, relu)
    style.letters(
        [first, second, spread, linear, always],
        ["ReLU networks", "gated networks", "spread over runs", "at the end", "units always open"],
    )
    entries = [style.entry("ReLU, two hidden layers", **TWO)]
    entries += [
        style.entry(f"gated, {_units(cell)} units a layer", **look)
        for cell, look in zip(networks, looks, strict=True)
    ]
    style.legend(figure, [*entries, style.entry("ReLU, one hidden layer", **ONE)], columns=2)
    return figure


def _units(cell: CellResults) -> int:
    """Units in the first hidden layer of each pathway."""
    network = cell.spec.network
    if not isinstance(network, Gated):
        raise UserError(f"{cell.name}: network {network.name!r} has no pathways")
    return network.hidden[0]


def typical(loss: xr.DataArray) -> xr.DataArray:
    """Loss of the run that is closest to the mean of all, in the square, of (seed, time)."""
    off = ((loss - loss.mean("seed")) ** 2).sum("time", skipna=False)
    return loss.isel(seed=int(np.nanargmin(off)))


def _variation(cell: CellResults, scale: float) -> xr.DataArray:
    """Deviation of times over runs at an init scale, over their mean."""
    variation = cell.get("metrics", "level_time_variation")
    if scale not in variation["init_scale"]:
        raise UserError(
            f"{cell.name}: init_scales lacks {scale:g}, the scale that networks are compared at. "
            "Add it in config/ and run the experiment again."
        )
    return variation.sel(init_scale=scale)


def _draw_runs(ax: Axes, cell: CellResults, look: dict[str, Any]) -> None:
    """Loss of every run, thin, and of the typical one."""
    line = {key: value for key, value in look.items() if key != "marker"}
    losses = gated.relative(cell.get("trajectory", "loss"))
    for loss in losses:
        ax.plot(cell.flow_time, loss, color=look["color"], alpha=0.35, linewidth=0.5)
    ax.plot(cell.flow_time, typical(losses), **line)


def _draw_layers(linear: Axes, always: Axes, cell: CellResults) -> None:
    """Loss at the end without the ReLU of a layer, and units that are always open."""
    kept = gated.smallest(cell.get("metrics", "final_loss_share"))
    taken = gated.smallest(cell.get("metrics", "linearised_loss"))
    layers = taken["hidden_layer"].values.tolist()
    for place, loss in enumerate((kept, *taken.transpose("hidden_layer", "seed"))):
        style.points(linear, place, loss, **TWO)
    linear.set_xticks(range(len(layers) + 1), ["none", *map(str, layers)])
    linear.set(yscale="log", xlabel="layer without its ReLU", ylabel="loss over\ninitial loss")
    for offset, (metric, (name, look)) in zip((-0.1, 0.1), UNITS.items(), strict=True):
        for layer in layers:
            share = gated.smallest(cell.get("metrics", metric)).sel(layer=layer)
            style.points(always, layer + offset, share, **look)
        always.plot([], [], linestyle="", label=name, **look)
    always.set_xticks(layers, map(str, layers))
    always.set(xlabel="hidden layer", ylabel="share of units", ylim=(-0.01, None))
    always.legend(loc="upper left")
    for ax in (linear, always):
        ax.margins(x=0.25)
