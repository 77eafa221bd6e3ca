"""A second hidden layer: the stages of a ReLU network and of its gated network.

Follows Jarvis, Klein, Rosman and Saxe, fig. 6. The gated network has a common and three context
pathways of two hidden layers each. Faded are all runs, and bold the one closest to the mean. Where
both networks rest they give the same outputs, and the drops come at the same relative times. What
differs from the source: with 700 units in each layer the ReLU network is about twice as fast as the
gated network with 100 in each layer of each pathway, and its runs vary a third as much. Both come
with the width of the layers.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.errors import UserError
from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.diagrams import gate_handles
from neuralrace.figures.sweeps import relative_loss
from neuralrace.results.cells import CellResults, Results

RELU: dict[str, Any] = {"color": style.COLOURS["relu"], "marker": "o"}
GATED: dict[str, Any] = {
    "color": style.COLOURS["gated"],
    "marker": "D",
    "linestyle": style.LINES[1],
}
ONE: dict[str, Any] = {"color": style.categorical(5), "marker": "^", "linestyle": style.LINES[2]}
PLATEAUS = (0.7, 0.42, 0.3)
"""Losses over initial loss on plateaus of the gated network."""
HALF = 0.5
"""Times are relative to the time at this loss over initial loss."""
LATE = 0.05
"""Loss over initial loss at the end of learning."""


@Figure(
    layout="aaaabbbbbbbb;ccccccdddeee",
    height=4.2,
    heights=(1.0, 1.2),
    cf={"a": "Fig. 6a", "b": "Fig. 6b", "c": "Fig. 6"},
    reads={
        "one_hidden": {
            "metrics": "level_time_variation",
        },
        "two_hidden two_hidden_gated": {
            "trajectory": "loss outputs",
            "metrics": "level_time level_time_variation",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Networks, and gates in the diagram."""
    return [
        style.handle("ReLU, two hidden layers", **RELU),
        style.handle("gated, two hidden layers", **GATED),
        style.handle("ReLU, one hidden layer", **ONE),
        *gate_handles(),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """The gated network; cells are gates in the first to the last context."""
    cell = results.cell("two_hidden_gated")
    contextual.draw_pathways(ax, cell, shape=1.7)
    ax.set_title(f"{len(contextual.pathway_gates(cell))} pathways of two hidden layers")


def panel_b(results: Results, ax: Axes) -> None:
    """Loss as a share of its start; dots are the moments of c."""
    relu, reln = results.cell("two_hidden"), results.cell("two_hidden_gated")
    for cell, props in ((reln, GATED), (relu, RELU)):
        _draw_runs(ax, cell, cell.flow_time, props)
    seed = contextual.typical_seed(relu)
    losses, _ = contextual.snapshots(relu, seed)
    moments = contextual.nearest_snapshots(losses, PLATEAUS)
    times = relu.trajectory["snapshot_flow_time"].values[moments]
    ax.plot(times, losses[moments], "o", color=RELU["color"])
    style.epoch_axis(ax, relu.flow_time)
    ax.set(xlabel=style.FLOW_TIME, ylabel="loss over initial loss", ylim=(0, None))
    ax.set_xlim(0, float(relu.flow_time[-1]))
    ratio = contextual.level_time(reln, HALF) / contextual.level_time(relu, HALF)
    ax.set_title(f"The gated network takes {ratio:.1f} times as long to {HALF:.0%} of the loss")


def panel_c(results: Results, ax: Axes) -> None:
    """Outputs of the bold run of either network on plateaus, and their difference."""
    runs = [
        (cell, contextual.typical_seed(cell))
        for cell in map(results.cell, ("two_hidden", "two_hidden_gated"))
    ]
    apart = contextual.draw_outputs(ax, runs[0], runs[1], PLATEAUS)
    ax.set_title(f"On plateaus no output differs by more than {apart:.2g}")


def panel_d(results: Results, ax: Axes) -> None:
    """Loss against time over the time to half of the loss, each network by its own."""
    ratios = []
    for name, props in (("two_hidden_gated", GATED), ("two_hidden", RELU)):
        cell = results.cell(name)
        _draw_runs(ax, cell, cell.flow_time / contextual.level_time(cell, HALF), props)
        ratios.append(contextual.level_time(cell, LATE) / contextual.level_time(cell, HALF))
    longest = float(np.fmax.reduce(ratios))
    ax.set(xlabel="time over time to 0.5", ylabel="loss over initial loss", ylim=(0, None))
    ax.set_xlim(0, 1.2 * longest if np.isfinite(longest) else None)
    slow, fast = ratios
    ax.set_title(f"{LATE:.0%} takes {fast:.1f} times as long as {HALF:.0%}, gated {slow:.1f}")


def panel_e(results: Results, ax: Axes) -> None:
    """Standard deviation over runs of the time to a share of the loss, over its mean."""
    cells = [results.cell(name) for name in ("two_hidden", "two_hidden_gated", "one_hidden")]
    scale = min(map(float, cells[0].spec.init_scales))
    means = []
    for cell, props in zip(cells, (RELU, GATED, ONE), strict=True):
        variation = _variation(cell, scale)
        ax.plot(range(variation.size), variation, linewidth=1.2, **props)
        means.append(float(variation.mean()))
    levels = [f"{level:g}" for level in variation["loss_level"].values]
    ax.set_xticks(range(len(levels)), levels)
    ax.set(xlabel="loss over initial loss", ylabel="deviation of its time", ylim=(0, None))
    ax.set_title(f"Times vary by {means[0]:.1%} over runs, gated {means[1]:.1%}")


def _draw_runs(ax: Axes, cell: CellResults, time: xr.DataArray, props: dict[str, Any]) -> None:
    """Draws the loss of every run, faded, and of the typical run."""
    losses = relative_loss(cell.get("trajectory", "loss"))
    for loss in losses:
        ax.plot(time, loss, color=props["color"], alpha=0.3, linewidth=0.6)
    line = {key: value for key, value in props.items() if key != "marker"}
    ax.plot(time, losses.sel(seed=contextual.typical_seed(cell)), **line)


def _variation(cell: CellResults, scale: float) -> xr.DataArray:
    """Standard deviation of times over runs at an init scale, over their mean."""
    variation = cell.get("metrics", "level_time_variation")
    if scale not in variation["init_scale"]:
        raise UserError(
            f"lacks {scale:g}, the scale at which networks are compared",
            key=f"{cell.name}: init_scales",
            remedy="add it in config/ and run the experiment again",
        )
    return variation.sel(init_scale=scale)
