"""A second hidden layer: the stages of a ReLU network and of its gated network.

Follows Jarvis, Klein, Rosman and Saxe, fig. 6. In the gated network the first layer does not gate:
it is linear, and as wide as the ReLU network's, with 700 units. A common pathway and three pathways
that are open in two contexts each have 100 units at the second layer. As in appendix F, context
pathways do not receive the context, which has 700 first-layer units of its own. There are 8 runs of
each network: thin lines are all of them, wide lines the one closest to the mean. What differs from
the source: its picture of the gated network and the width of the first layer are not in its text,
and networks are trained for 4,800 and 2,400 epochs of 8,000. Both networks rest at the same losses,
where outputs agree, but the first drop of the gated network is later, and it is done earlier. If
all pathways receive the context, the first plateau is at another loss.
"""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.diagrams import draw_network, gate_handles, graph
from neuralrace.figures.sweeps import metric, relative_loss, smallest_scale
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
    "two_hidden_shown": (
        "gated, all pathways see the context",
        {"color": style.categorical(2), "ls": "--"},
    ),
    "two_hidden_separate": (
        "gated, separate first layers",
        {"color": style.categorical(9), "ls": ":"},
    ),
}
"""Names and lines of other gated networks, by experiment."""
HALF = 0.5
"""Times are relative to the time at this loss over initial loss."""
NAMED = 0.58
"""Loss over initial loss at which curves have their names."""
LAST, END = 60, 5.5
"""Last time that is drawn, and last relative time."""
SPREAD = 0.08
"""Half the width of a column of runs."""
LEVELS = (0.5, 0.2, 0.05)
"""Losses over initial loss whose times are compared, as in the claims."""


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
            "trajectory": "loss output_curve",
            "metrics": "level_time plateau_time",
        },
        "two_hidden_shown two_hidden_separate": {
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
    """The gated network: a line for each pathway, with a grey for each part of the second layer.
    All that start at objects go through the same first layer. Gates are at the second layer.
    """
    cell = results.cell("two_hidden_gated")
    drawn, opened = graph(cell), contextual.gates_by_context(cell)
    gated = dict.fromkeys(pathway.nodes[-2] for pathway in drawn.pathways)
    shades = dict(zip(gated, style.greys(len(gated)), strict=True))
    draw_network(
        ax,
        drawn,
        {pathway: shades[pathway.nodes[-2]] for pathway in drawn.pathways},
        {pathway.nodes[-2]: gates for pathway, gates in zip(drawn.pathways, opened, strict=True)},
        {"object": "object", "context": "context", "y": "properties"},
        shape=1.4,
    )
    style.note(ax, "cells: gates in\ncontexts 1, 2, 3", "lower right", color="0.35")
    ax.set_title("Context pathways do not receive the context")


def panel_b(results: Results, ax: Axes) -> None:
    """Loss as a share of its start; markers are plateaus, which e shows."""
    for name in NETWORKS_OF_TWO:
        cell = results.cell(name)
        _draw_runs(ax, cell, cell.flow_time, name)
        time, level, _ = _plateaus(cell)
        ax.plot(time, level, linestyle="", markeredgecolor="white", markersize=6.5, zorder=4,
                **NETWORKS[name][1])  # fmt: skip
    ax.set(xlabel=style.FLOW_TIME, ylabel="loss / initial loss", ylim=(0, None))
    ax.set_xlim(0, LAST)
    ax.text(0.98, 0.97, "thin: all runs\nwide: the run nearest to the mean\nmarkers: plateaus",
            ha="right", va="top", color="0.35", transform=ax.transAxes)  # fmt: skip
    ax.set_title("Same plateaus, different timing")


def panel_c(results: Results, ax: Axes) -> None:
    """Loss against time over the mean time to half of the loss, each network by its own. Broken
    lines are the run nearest to the mean of other gated networks: all pathways receive the context,
    or each pathway has a first layer of its own.
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
    ax.set(xlabel="time / time to half loss", ylabel="loss / initial loss", ylim=(0, None))
    ax.set_xlim(0, END)
    ax.text(0.98, 0.97, "lines as in b", ha="right", va="top", color="0.35",
            transform=ax.transAxes)  # fmt: skip
    ax.set_title("Plateaus depend on which pathways see the context")


def panel_d(results: Results, ax: Axes) -> None:
    """Time to a share of the loss over its mean over runs: a marker for each run, bars are medians.
    First layers have 700 units.
    """
    times = {name: metric(results.cell(name), "level_time") for name in NETWORKS}
    times = {name: time.sel(loss_level=list(LEVELS)) for name, time in times.items()}
    off = {name: 100 * (time / time.mean("seed") - 1) for name, time in times.items()}
    ax.update_datalim([(0, float(end)) for run in off.values() for end in (run.min(), run.max())])
    for offset, (name, (_, props)) in zip((-1, 0, 1), NETWORKS.items(), strict=True):
        for column, level in enumerate(LEVELS):
            x, deviation = column + 0.29 * offset, off[name].sel(loss_level=level)
            style.single_runs(ax, x, deviation, SPREAD, markersize=2.5, **props)
    ax.axhline(0, **style.GUIDE)
    style.named_columns(ax, [f"{level:g}" for level in LEVELS])
    ax.set(xlabel="loss / initial loss", ylabel="time off the mean (%)")
    ax.text(0.98, 0.97, "bar: median", ha="right", va="top", color="0.35",
            transform=ax.transAxes)  # fmt: skip
    ax.set_title("Learning times vary by a few per cent")


def panel_e(results: Results, ax: Axes) -> None:
    """Outputs on the first plateaus of either network's run nearest to the mean, and their
    difference.
    """
    relu, gated = (_plateaus(results.cell(name)) for name in NETWORKS_OF_TWO)
    titles = [
        f"loss: ReLU {one:.2f}, gated {other:.2f}"
        for one, other in zip(relu[1], gated[1], strict=True)
    ]
    pairs = list(zip(relu[2], gated[2], strict=True))
    contextual.draw_pairs(ax, results.cell("two_hidden"), pairs, titles)
    ax.set_title("On each plateau outputs are similar")


def _plateaus(
    cell: CellResults,
) -> tuple[
    Float[np.ndarray, " plateau"],
    Float[np.ndarray, " plateau"],
    Float[np.ndarray, "plateau sample output"],
]:
    """Flow times of the plateaus of the typical run, losses over initial loss, and outputs there.

    In place of a plateau that a run does not have, it is the end of training.
    """
    seed, clock = contextual.typical_seed(cell), cell.flow_time.values
    time = metric(cell, "plateau_time").sel(seed=seed).fillna(clock[-1]).values
    at = np.searchsorted(clock, time)
    loss = relative_loss(cell.get("trajectory", "loss")).sel(seed=seed)
    curve = smallest_scale(cell.get("trajectory", "output_curve")).sel(seed=seed)
    return time, loss.values[at], curve.values[at]


def _draw_runs(ax: Axes, cell: CellResults, time: xr.DataArray, name: str) -> None:
    """Draws the loss of every run, and of the typical run."""
    label, props = NETWORKS[name]
    losses = relative_loss(cell.get("trajectory", "loss"))
    for loss in losses:
        ax.plot(time, loss, color=props["color"], linewidth=0.5, alpha=0.5)
    typical = losses.sel(seed=contextual.typical_seed(cell))
    ax.plot(time, typical, color=props["color"], linewidth=1.8)
    if len(reached := np.flatnonzero(typical.values <= NAMED)):
        offset, side = ((6, 4), "left") if name == "two_hidden" else ((-8, -8), "right")
        ax.annotate(label, (float(time[reached[0]]), NAMED), offset, textcoords="offset points",
                    ha=side, va="center", color=props["color"])  # fmt: skip
