"""Mixed selectivity: units of ReLU networks are open in several contexts.

The paper (Jarvis et al., "Make Haste Slowly", secs. 4 and 5) finds no unit that is specific to a
context, and pathways that are open in C - 1 of C contexts. It reads this off the gated network;
here units are counted one by one, by the contexts that they are open in, on more than half of the
samples of each, and by what they carry. C - 1 holds for three and four contexts; with five, more is
carried by units open in three, whose family learns the residual faster (grey: sqrt(q(C - q)/C) over
the largest). Gates of single units depend on the objects as well, other than those of clusters.
Means and ranges over seeds.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results

HIERARCHIES = ("three_contexts", "four_contexts", "five_contexts")
EXPERIMENTS = ("contextual", *HIERARCHIES)
PARTS = {
    "carried_residual": ("residual", {"color": style.COLOURS["relu"], "marker": "o"}),
    "carried_common": ("common part", {"color": style.categorical(9), "marker": "s"}),
}
"""Names and markers of metrics."""
KINDS = {
    "context_gated_share": (
        "gated by context alone",
        {"color": style.categorical(4), "marker": "D"},
    ),
    "context_specific_share": (
        "open in one context",
        {"color": style.categorical(5), "marker": "v"},
    ),
}
"""Names and markers of kinds of units, by the metric of the residual that they carry."""
SPEED: dict[str, Any] = style.GUIDE | {"linewidth": 1.0}


@Figure(
    layout="aabbccdd;eeeeefff",
    height=3.9,
    cf={"e": "sec. 5", "f": "sec. 4"},
    reads={
        "contextual three_contexts four_contexts five_contexts": {
            "metrics": (
                "carried_common carried_residual context_gated_share context_specific_share "
                "mean_open_contexts"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Parts of the targets, and guides."""
    return [
        *(style.handle(name, linestyle="", **props) for name, props in PARTS.values()),
        style.handle(r"speed of family $q$", **SPEED),
        style.handle("Jarvis et al.: $C - 1$", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Three contexts with blocks of different structure, as in figs. 3 and 4: shares of the
    residual, and of the part that is linear in the inputs, carried by units open in q contexts.
    """
    _draw_carried(ax, results.cell("contextual"))
    ax.set_ylabel("share carried")


def panel_b(results: Results, ax: Axes) -> None:
    """The same for three contexts with hierarchies in all blocks."""
    _draw_carried(ax, results.cell("three_contexts"))


def panel_c(results: Results, ax: Axes) -> None:
    """The same for four contexts."""
    _draw_carried(ax, results.cell("four_contexts"))


def panel_d(results: Results, ax: Axes) -> None:
    """The same for five contexts."""
    _draw_carried(ax, results.cell("five_contexts"))


def panel_e(results: Results, ax: Axes) -> None:
    """Contexts that a unit is open in on average, by what it carries of the residual: reuse grows
    with the contexts, though by less than C - 1. Grey is half of them, the fastest family.
    """
    cells = [results.cell(experiment) for experiment in HIERARCHIES]
    counts = np.array([contextual.task(cell).contexts for cell in cells])
    means = [metric(cell, "mean_open_contexts") for cell in cells]
    props = {"color": style.COLOURS["relu"], "marker": "o"}
    line = style.point_series(ax, counts.tolist(), means, **props)
    ax.plot(counts, line, linewidth=1.0, color=props["color"])
    ax.plot(counts, counts - 1, **style.PAPER)
    ax.plot(counts, counts / 2, **style.GUIDE)
    ax.annotate("$C/2$", (counts[-1], counts[-1] / 2), (3, -2), textcoords="offset points")
    ax.set(xticks=counts, xlabel="contexts $C$", ylabel="contexts a unit is open in")
    ax.margins(x=0.12)
    numbers = ", ".join(f"{mean:.1f}" for mean in line)
    ax.set_title(f"Units are open in {numbers} of {', '.join(map(str, counts))} contexts")


def panel_f(results: Results, ax: Axes) -> None:
    """Share of the residual carried by units that gate by context alone, open or closed on all
    objects of each, and by units open in a single context. The first task has blocks of different
    structure (fig. 3 of the paper), the others have hierarchies in all.
    """
    cells = [results.cell(experiment) for experiment in EXPERIMENTS]
    names = [f"$C$ = {contextual.task(cell).contexts}" for cell in cells]
    for offset, (key, (name, props)) in zip((-0.1, 0.1), KINDS.items(), strict=True):
        shares = [metric(cell, key) for cell in cells]
        positions = [position + offset for position in range(len(cells))]
        style.point_series(ax, positions, shares, label=name, **props)
    ax.axhline(1, **style.PAPER)
    ax.annotate("Jarvis et al.: all by context alone", (0, 0.96), va="top")
    ax.set_xticks(range(len(cells)), [f"{names[0]},\ndifferent", *names[1:]])
    ax.set(ylim=(-0.06, 1.06), ylabel="residual carried")
    ax.margins(x=0.12)
    ax.legend(loc="center")
    most = max(float(metric(cell, kind).max()) for kind in KINDS for cell in cells)
    ax.set_title(f"Either kind carries at most {most:.0%}")


def _draw_carried(ax: Axes, cell: CellResults) -> None:
    """Draws what units carry, by the number of contexts they are open in, and family speeds."""
    contexts = contextual.task(cell).contexts
    numbers = np.arange(contexts + 1)
    speed = np.sqrt(numbers * (contexts - numbers) / contexts)
    ax.plot(numbers, speed / speed.max(), **SPEED)
    ax.axvline(contexts - 1, **style.PAPER | {"zorder": 0})
    for offset, (key, (_, props)) in zip((-0.1, 0.1), PARTS.items(), strict=True):
        carried = metric(cell, key).transpose("open_contexts", "seed")
        style.point_series(ax, numbers + offset, carried, **props)
    ax.set(
        xticks=numbers,
        xlim=(-0.4, contexts + 0.4),
        ylim=(-0.06, 1.06),
        xlabel="open in $q$ contexts",
    )
    residual = metric(cell, "carried_residual").mean("seed")
    most = int(residual.fillna(0).argmax("open_contexts"))
    ax.set_title(f"$C$ = {contexts}: {float(residual[most]):.0%} by $q$ = {most}")
