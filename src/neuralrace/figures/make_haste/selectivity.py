"""Mixed selectivity: units of ReLU networks are open in several contexts.

The paper (Jarvis et al., "Make Haste Slowly", secs. 4 and 5) finds no unit that is specific to a
context, and pathways that are open in C - 1 of C contexts (shaded). It reads this off the gated
network; here units are counted one by one, by the number of contexts that they are open in, on more
than half of the objects of each, and by what they carry at the end of training. C - 1 holds for
three and four contexts; with five, more is carried by units open in three. Bars are means over 10
runs, with ranges.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import metric, metric_mean
from neuralrace.results.cells import CellResults, Results

EXPERIMENTS = ("contextual", "three_contexts", "four_contexts", "five_contexts")
WIDTH = 0.36
"""Width of a bar."""
SHADE = "0.9"
PARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "carried_residual": ("of the residual", {"color": style.COLOURS["relu"]}),
    "carried_common": ("of the common part", {"color": (0.95, 0.77, 0.66)}),
}
"""Names and shades of what units carry, by metric."""


@Figure(
    layout="ab;cd",
    height=4.4,
    cf={"a": "sec. 4", "b": "sec. 5", "c": "sec. 5", "d": "sec. 5"},
    reads={
        "contextual three_contexts four_contexts five_contexts": {
            "metrics": (
                "carried_common carried_residual context_specific_share mean_open_contexts"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Parts of the targets, their ranges, and what the paper has."""
    runs = metric(results.cell("contextual"), "carried_residual").sizes["seed"]
    return [
        *(Patch(**props, linewidth=0, label=f"share {name}") for name, props in PARTS.values()),
        style.handle(f"range of {runs} runs", color="black", linestyle="", marker="|"),
        Patch(color=SHADE, linewidth=0, label="Jarvis et al.: open in all but one"),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Three contexts with blocks of different structure, as in figs. 3 and 4: shares of the part
    that is linear in the inputs, and of the residual, carried by units open in q contexts. As text:
    contexts that a unit is open in on average, weighted by what it carries of the residual, and the
    most that is carried of the residual, in any of the four tasks, by units that are shut on all
    samples of the other contexts.
    """
    _draw_carried(ax, results.cell("contextual"))
    most = max(metric_mean(results.cell(name), "context_specific_share") for name in EXPERIMENTS)
    text = (
        "open: on more than half\nof the objects\n\n"
        "units shut on all objects\nin all contexts but one carry\n"
        f"{_percent(most)} of the residual (a to d)"
    )
    ax.text(0.02, 0.84, text, va="top", fontsize=6.5, transform=ax.transAxes)
    ax.set_title("Three structures: units open in two, rarely one")


def panel_b(results: Results, ax: Axes) -> None:
    """The same for three contexts with hierarchies in all blocks."""
    _draw_carried(ax, results.cell("three_contexts"))
    ax.set_title("Three hierarchies: open in two, hardly in one")


def panel_c(results: Results, ax: Axes) -> None:
    """The same for four contexts."""
    _draw_carried(ax, results.cell("four_contexts"))
    ax.set_title("Four contexts: units are open in three")


def panel_d(results: Results, ax: Axes) -> None:
    """The same for five contexts."""
    _draw_carried(ax, results.cell("five_contexts"))
    ax.set_title("Five contexts: in three rather than four")


def _draw_carried(ax: Axes, cell: CellResults) -> None:
    """Draws what units carry, by the number of contexts that they are open in."""
    contexts = contextual.task(cell).contexts
    numbers = np.arange(contexts + 1)
    ax.axvspan(contexts - 1.5, contexts - 0.5, color=SHADE, linewidth=0, zorder=0)
    for side, (key, (_, props)) in zip((-0.5, 0.5), PARTS.items(), strict=True):
        carried = metric(cell, key)
        low, mean, high = carried.min("seed"), carried.mean("seed"), carried.max("seed")
        bars = numbers + side * WIDTH
        ax.bar(bars, mean, WIDTH, linewidth=0, **props)
        ax.vlines(bars, low, high, color="black", linewidth=0.8)
    mean = metric_mean(cell, "mean_open_contexts")
    ax.text(0.02, 0.97, f"open in {mean:.1f} on average", va="top", transform=ax.transAxes)
    ax.set(xticks=numbers, xlabel=f"contexts that a unit is open in, of {contexts}")
    ax.set(ylim=(0, 1.05), ylabel="share carried")


def _percent(share: float) -> str:
    """A share in percent, or that it is small."""
    return "< 1%" if share < 0.01 else f"{share:.0%}"
