"""XoR with a linear margin: a ReLU network learns as its two kinds of pathways do in a race.

Follows fig. 2 of Jarvis et al., "Make Haste Slowly" (sec. 3, appendix C), panel by panel. A third
input gives the classes away by a margin Delta, so that a linear boundary would do. Linear pathways,
one for each class, use it; XoR pathways, one for each example, do not, and grow faster below
Delta* = sqrt(2/3), the vertical line. The paper has the ReLU network behave as the faster kind
alone (dotted, from its own units of that kind). Theory, dashed and from its initial
weights with nothing fitted, lets both kinds learn from one residual: that is the same far from
Delta*, and faster than either near it. The smallest init scale is drawn, at which the paper's
statement comes closest; bands are ranges over 10 runs.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, diagrams, margins, style
from neuralrace.figures.sweeps import metric, metric_mean, smallest_scale
from neuralrace.results.cells import CellResults, Results

RELU: dict[str, Any] = {"color": style.COLOURS["relu"]}
ALONE: dict[str, dict[str, Any]] = {
    "margin_linear": style.PAPER | margins.LINEAR | {"linewidth": 1.5},
    "margin_xor": style.PAPER | margins.XOR | {"linewidth": 1.5},
}
"""Lines of the solutions of one kind of pathway alone."""
TILT = np.array([[1.0, 0.0], [0.45, 0.38], [0.0, 1.0]])
"""Projection of the three inputs to the plane of the drawing."""
SHOWN = 0.9
"""Margin of the drawing of the task."""
SAME = 0.02
"""Distance of losses, over the largest loss, below which lines cover each other."""
AROUND, NEAR = (0.55, 1.5), (0.88, 1.12)
"""First and last time at which losses are drawn, over the half time: from flat to flat, and within
the fall where all lines are close.
"""


@Figure(
    layout="abc;dee",
    height=4.5,
    widths=(1.17, 0.96, 0.87),
    cf={
        "a": "Fig. 2a",
        "b": "Fig. 2b",
        "c": "Fig. 2c",
        "d": "Fig. 2d",
        "e": "Fig. 2e",
    },
    reads={
        "xor_margin": {
            "trajectory": "loss",
            "theory": "loss",
            "metrics": "loss_half_time predicted_loss_half_time",
        },
        "xor_margin_gated": {"metrics": ""},
    },
)
def legend(results: Results) -> style.Handles:
    """The network, theory, and either kind of pathway alone as the paper has it."""
    return [
        style.handle("ReLU network", **style.SIMULATION | RELU),
        style.handle("theory: both kinds race", **style.THEORY),
        style.handle("Jarvis et al.: linear alone", **ALONE["margin_linear"]),
        style.handle("Jarvis et al.: XoR alone", **ALONE["margin_xor"]),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """The task: four examples by number, filled where the target is +1, XoR in two inputs and Delta
    to either side of a plane in the third.
    """
    data = margins.by_margin(results, "xor_margin")[0].data
    corners = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0], [-1, -1, 0]]) @ TILT
    ax.fill(*corners.T, color="0.92", zorder=0)
    ax.plot(*corners.T, **style.GUIDE)
    for number, (x, (target,)) in enumerate(zip(data.x, data.y, strict=True), start=1):
        foot, head = np.array([[*x[:2], 0], [*x[:2], SHOWN * target]]) @ TILT
        ax.plot(*np.array([foot, head]).T, **style.GUIDE)
        fill = "black" if target > 0 else "white"
        ax.plot(*head, "o", color="black", markerfacecolor=fill, markersize=5, zorder=3)
        style.note_at(ax, f"{number}", tuple(head), (5, 3), color="black")
    for text, position, offset in (
        (r"$\Delta$", (-1, 1, SHOWN / 2), (-8, -2)),
        ("$x_1$", (0, -1, 0), (0, -10)),
        ("$x_2$", (1, 0, 0), (3, -4)),
    ):
        across, up = np.array(position) @ TILT
        ax.annotate(text, (across, up), offset, textcoords="offset points")
    ax.text(1, 0.97, "filled: target +1\nopen: target \u22121", ha="right", va="top", color="0.35",
            transform=ax.transAxes)  # fmt: skip
    ax.margins(0.14)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_axis_off()
    ax.set_title("XoR with a linear margin")


def panel_b(results: Results, ax: Axes) -> None:
    """The gated network with a pathway for each class; cells are gates on examples 1 to 4."""
    _draw_pathways(ax, margins.gated_pairs(results)[0][0], margins.LINEAR)
    ax.text(0, 0, "cells: gates on\nexamples 1 to 4,\nwhite if open", va="bottom", color="0.35",
            transform=ax.transAxes)  # fmt: skip
    ax.set_title("Linear: a pathway for each class")


def panel_c(results: Results, ax: Axes) -> None:
    """The gated network with a pathway for each example."""
    _draw_pathways(ax, margins.gated_pairs(results)[0][1], margins.XOR)
    ax.set_title("XoR: one for each example")


def panel_d(results: Results, ax: Axes) -> None:
    """Learning time: that to half of the initial loss. Crosses are margins at which one kind alone
    does not learn during training (linear), or has no unit (XoR).
    """
    cells = margins.by_margin(results, "xor_margin")
    positions = list(map(margins.margin, cells))
    times = [metric(cell, "loss_half_time") for cell in cells]
    means = style.point_series(ax, positions, times, marker="o", **RELU)
    ax.plot(positions, means, **style.SIMULATION | RELU)
    ax.plot(positions, _predicted(cells, "margin_race"), **style.THEORY)
    for solution, props in ALONE.items():
        ax.plot(positions, _predicted(cells, solution), **props)
    top = 1.12 * ax.dataLim.y1
    for solution, props in ALONE.items():
        never = np.array(positions)[np.isnan(_predicted(cells, solution))]
        ax.plot(never, np.full(len(never), 0.96 * top), "x", color=props["color"], markersize=4)
    ax.text(0.98, 0.9, "×: not within training,\nor no unit of this kind", ha="right", va="top",
            fontsize=6.5, transform=ax.transAxes)  # fmt: skip
    margins.draw_crossover(ax)
    ax.set(xlabel=margins.LABEL, ylabel=r"half time ($\tau$)", ylim=(0, top))
    ax.set_title(r"Far from $\Delta^*$, ReLU follows the faster kind")


def panel_e(results: Results, ax: Axes) -> None:
    """Losses of ReLU networks below, at and above Delta*, with the race and with either kind of
    pathway alone. Near Delta* only the middle of the fall is drawn.
    """
    cells = margins.by_margin(results, "xor_margin")
    near = cells.index(margins.nearest(cells))
    examples = margins.example_indices(list(map(margins.margin, cells)))
    close = {near, min(near + 1, len(cells) - 1)}
    shown = sorted({*examples, *close})
    axes = style.split(ax, 1, len(shown), sharey=True)[0]
    for part, at in zip(axes, shown, strict=True):
        cell = cells[at]
        time, loss = cell.flow_time, smallest_scale(cell.get("trajectory", "loss"))
        half = metric_mean(cell, "loss_half_time")
        first, last = NEAR if at in close else AROUND
        near_half = (time >= first * half) & (time <= last * half)
        visible = near_half if near_half.sum() > 2 else time >= 0
        style.over_seeds(part, time[visible], loss[..., visible], **RELU)
        for solution, props in {**ALONE, "margin_race": style.THEORY}.items():
            theory = smallest_scale(cell.get("theory", "loss", solution=solution)).mean("seed")
            part.plot(time[visible], theory[..., visible], **props)
            apart = abs(theory - loss.mean("seed")).max() / loss.max()
            if solution in ALONE and apart < SAME:
                name = "linear" if solution == "margin_linear" else "XoR"
                part.text(0.04, 0.06, f"{name}\n= ReLU", color=props["color"], fontsize=6.5,
                          transform=part.transAxes)  # fmt: skip
        part.set_title(margins.title(cell), loc="center")
        part.set(xlabel=r"flow time ($\tau$)", ylim=(0, None))
        part.margins(x=0)
        part.xaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes[0].set_ylabel("loss")
    ax.set_title(r"Near $\Delta^*$ ReLU is ahead of both kinds")


def _draw_pathways(ax: Axes, cell: CellResults, props: dict) -> None:
    """Draws a gated network with the examples on which its pathways are open."""
    graph = diagrams.graph(cell)
    gates = contextual.pathway_gates(cell)
    routes = dict.fromkeys(graph.pathways, props["color"])
    strips = dict(zip(graph.hidden, gates, strict=True))
    diagrams.draw_network(ax, graph, routes, strips, {"x": "$x$", "y": "$y$"}, shape=1.1)


def _predicted(cells: Sequence[CellResults], solution: str) -> list[float]:
    """Mean half times over seeds by margin; NaN if a run does not reach half of the loss."""
    times = [metric(cell, "predicted_loss_half_time", solution=solution) for cell in cells]
    return [float(time.mean("seed", skipna=False)) for time in times]
