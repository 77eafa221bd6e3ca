"""A second hidden layer: the stages of a ReLU network and of its gated network.

Follows Jarvis, Klein, Rosman and Saxe, fig. 6. In the gated network the first layer does not gate:
it is one linear layer of 700 units on all pathways, as wide as the ReLU network's. A common pathway
and three pathways that are open in two contexts each have 100 units at the second layer. There are
8 runs of each network: thin lines are all of them, wide lines the one closest to the mean. What
differs from the source: its picture of the gated network is not in its text, and neither are the
width of the first layer and what context pathways receive. The gated network comes to half of the
loss at about the same time as the ReLU network, but rests at another loss, and is done much
earlier. It rests where the ReLU network does if context pathways do not receive the context, as in
a gated network of one hidden layer; the context then has first-layer units of its own. So does
another network, in which each pathway has a first layer of 100 units.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.diagrams import draw_network, gate_handles, graph
from neuralrace.figures.gate_patterns import colour
from neuralrace.figures.sweeps import metric, relative_loss
from neuralrace.results.cells import CellResults, Results

NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "two_hidden": ("ReLU", {"color": style.COLOURS["relu"], "marker": "o"}),
    "two_hidden_gated": ("gated", {"color": style.COLOURS["gated"], "marker": "D"}),
    "one_hidden": (
        "ReLU, one hidden layer",
        {"color": style.categorical(5), "marker": "^"},
    ),
}
"""Names and markers of networks, by experiment; those of two hidden layers are first."""
NETWORKS_OF_TWO = ("two_hidden", "two_hidden_gated")
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "two_hidden_objects": ("gated, context to common", {"color": style.categorical(2), "ls": "--"}),
    "two_hidden_separate": (
        "gated, a first layer each",
        {"color": style.categorical(9), "ls": ":"},
    ),
}
"""Names and lines of other gated networks, by experiment."""
PLATEAUS = (0.69, 0.4)
"""Losses over initial loss on plateaus of the ReLU network."""
HALF = 0.5
"""Times are relative to the time at this loss over initial loss."""
NAMED = 0.58
"""Loss over initial loss at which curves have their names."""
END = 5.5
"""Last relative time that is drawn."""
SPREAD = 0.08
"""Half the width of a column of runs."""


@Figure(
    layout="aaaabbbbbb;cccccddddd;eeeeeeeeee",
    height=6.8,
    heights=(1.0, 0.9, 1.65),
    cf={"a": "Fig. 6a", "b": "Fig. 6b", "e": "Fig. 6"},
    reads={
        "one_hidden": {
            "metrics": "level_time",
        },
        "two_hidden two_hidden_gated": {
            "trajectory": "loss outputs",
            "metrics": "level_time",
        },
        "two_hidden_objects two_hidden_separate": {
            "trajectory": "loss",
            "metrics": "level_time",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Networks, and gates in the diagram."""
    return [
        *(style.handle(name, linestyle="", **props) for name, props in NETWORKS.values()),
        *(style.handle(name, **props) for name, props in OTHERS.values()),
        *gate_handles(),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """The gated network: a line for each pathway, all of them through the first layer. Gates are at
    the second layer.
    """
    cell = results.cell("two_hidden_gated")
    drawn, opened = graph(cell), contextual.gates_by_context(cell)
    draw_network(
        ax,
        drawn,
        dict(zip(drawn.pathways, map(colour, opened > 0), strict=True)),
        {pathway.nodes[-2]: gates for pathway, gates in zip(drawn.pathways, opened, strict=True)},
        {"x": "object,\ncontext", "y": "properties"},
        shape=1.4,
    )
    style.note(ax, "cells: gates in\ncontexts 1, 2, 3", "lower right", color="0.35")
    ax.set_title("All pathways share a linear first layer")


def panel_b(results: Results, ax: Axes) -> None:
    """Loss as a share of its start; markers are the moments of e."""
    relu = results.cell("two_hidden")
    losses, _ = contextual.snapshots(relu, contextual.typical_seed(relu))
    levels = losses[contextual.nearest_snapshots(losses, PLATEAUS)]
    for name in NETWORKS_OF_TWO:
        cell = results.cell(name)
        _draw_runs(ax, cell, cell.flow_time, name)
        reached, _ = contextual.snapshots(cell, contextual.typical_seed(cell))
        moments = [contextual.moment_at_loss(level, reached) for level in levels]
        clock = cell.trajectory["snapshot_flow_time"].values
        ax.plot(np.interp(moments, np.arange(len(clock)), clock), levels, linestyle="",
                markeredgecolor="white", markersize=6.5, zorder=4, **NETWORKS[name][1])  # fmt: skip
    ax.set(xlabel=style.FLOW_TIME, ylabel="loss over initial loss", ylim=(0, None))
    ax.set_xlim(0, float(relu.flow_time[-1]))
    ax.text(0.98, 0.97, "thin: all runs\nwide: the run nearest to the mean\nmarkers: moments of e",
            ha="right", va="top", color="0.35", transform=ax.transAxes)  # fmt: skip
    ax.set_title("The gated network is done much earlier")


def panel_c(results: Results, ax: Axes) -> None:
    """Loss against time over the mean time to half of the loss, each network by its own. Broken
    lines are the run nearest to the mean of other gated networks: the context reaches the common
    pathway only, or each pathway has a first layer of its own.
    """
    for name in NETWORKS_OF_TWO:
        cell = results.cell(name)
        _draw_runs(ax, cell, cell.flow_time / contextual.level_time(cell, HALF), name)
    for name, (label, props) in OTHERS.items():
        cell = results.cell(name)
        typical = relative_loss(cell.get("trajectory", "loss"))
        typical = typical.sel(seed=contextual.typical_seed(cell))
        time = cell.flow_time / contextual.level_time(cell, HALF)
        ax.plot(time, typical, label=label, linewidth=1.2, **props)
    ax.set(xlabel="time over time to 0.5", ylabel="loss over initial loss", ylim=(0, None))
    ax.set_xlim(0, END)
    ax.text(0.98, 0.97, "lines as in b", ha="right", va="top", color="0.35",
            transform=ax.transAxes)  # fmt: skip
    ax.set_title("Where it rests depends on what pathways receive")


def panel_d(results: Results, ax: Axes) -> None:
    """Time to a share of the loss over its mean over runs: a marker for each run, bars are medians.
    First layers have 700 units.
    """
    levels = results.cell("two_hidden").get("metrics", "level_time")["loss_level"].values[::2]
    times = {name: metric(results.cell(name), "level_time") for name in NETWORKS}
    off = {name: 100 * (time / time.mean("seed") - 1) for name, time in times.items()}
    ax.update_datalim([(0, float(end)) for run in off.values() for end in (run.min(), run.max())])
    for offset, (name, (_, props)) in zip((-1, 0, 1), NETWORKS.items(), strict=True):
        for column, level in enumerate(levels):
            x, deviation = column + 0.29 * offset, off[name].sel(loss_level=level)
            style.single_runs(ax, x, deviation, SPREAD, markersize=2.5, **props)
    ax.axhline(0, **style.GUIDE)
    style.named_columns(ax, [f"{level:g}" for level in levels])
    ax.set(xlabel="loss over initial loss", ylabel="time off the mean (%)")
    ax.text(0.98, 0.97, "bar: median", ha="right", va="top", color="0.35",
            transform=ax.transAxes)  # fmt: skip
    ax.set_title("Runs of both networks vary alike")


def panel_e(results: Results, ax: Axes) -> None:
    """Outputs at losses on plateaus of the ReLU network, of either network's run nearest to the
    mean, and their difference.
    """
    runs = [(cell, contextual.typical_seed(cell)) for cell in map(results.cell, NETWORKS_OF_TWO)]
    contextual.draw_outputs(ax, runs[0], runs[1], PLATEAUS)
    ax.set_title("On the ReLU network's plateaus outputs are similar")


def _draw_runs(ax: Axes, cell: CellResults, time: xr.DataArray, name: str) -> None:
    """Draws the loss of every run, and of the typical run."""
    label, props = NETWORKS[name]
    losses = relative_loss(cell.get("trajectory", "loss"))
    for loss in losses:
        ax.plot(time, loss, color=props["color"], linewidth=0.5, alpha=0.5)
    typical = losses.sel(seed=contextual.typical_seed(cell))
    ax.plot(time, typical, color=props["color"], linewidth=1.8)
    if len(reached := np.flatnonzero(typical.values <= NAMED)):
        offset, side = ((6, 4), "left") if name == "two_hidden" else ((10, -22), "right")
        ax.annotate(label, (float(time[reached[0]]), NAMED), offset, textcoords="offset points",
                    ha=side, va="center", color=props["color"])  # fmt: skip
