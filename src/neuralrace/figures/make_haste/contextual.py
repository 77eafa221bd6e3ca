"""Eight objects in three contexts: a ReLU network and its rectified linear network.

Follows Jarvis, Klein, Rosman and Saxe, fig. 4a and b. The rectified linear network is gated: a
common pathway, open on all samples, and three pathways that are open in two contexts each. Its loss
has the stages of the ReLU network's, and its pathways learn their singular values as theory says,
from the initial weights and with nothing fitted. What differs from the source: with 100 units in
every pathway it is late in the first drop, which is the common pathway's, and early in the last; a
gated network with half of the ReLU network's units in the common pathway is neither. Outputs are of
one run each, of the gated network between its two nearest snapshots; other lines and bands are
means and ranges over ten runs, in d over five.
"""

from typing import Any, Literal

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import (
    draw_relative_loss,
    metric,
    metric_mean,
    relative_loss,
    smallest_scale,
)
from neuralrace.results.cells import CellResults, Results

RELN, WIDE = "two", "two_half"
"""Candidates of the ReLU network, with the widths of the paper and with a wide common pathway."""
STYLES: dict[str, dict[str, Any]] = {
    RELN: contextual.RELN,
    WIDE: {"color": "0.25", "linewidth": 1.0, "alpha": 1.0, "marker": "s", "markersize": 2.5},
}
TAGS: dict[str, tuple[str, int, Literal["left", "right"]]] = {
    RELN: ("100 units per pathway", 9, "left"),
    WIDE: ("wide\ncommon", -7, "right"),
}
"""Names in the enlarged drop, with their offset in points and alignment."""
SHARES = (0.5, 0.2)
"""Losses over initial loss at which outputs are drawn."""
SHORT = r"flow time (units of $\tau$)"
LEAST = 0.004
"""Least loss over initial loss at which distances of outputs are drawn."""
FIRST = 0.85
"""Loss over initial loss in the middle of the first drop."""


@Figure(
    layout="aab;ccc;ddd",
    height=7.0,
    heights=(1.1, 1.8, 0.95),
    cf={"a": "Fig. 4a", "c": "Fig. 4a", "d": "Fig. 4b"},
    reads={
        "contextual": {
            "trajectory": "loss outputs",
            "theory": "candidate_loss",
            "metrics": "imitation_gap imitation_loss imitation_output_error_curve",
        },
        "contextual_gated": {
            "trajectory": "loss outputs pathway_values",
            "theory": "pathway_values",
            "metrics": "pathway_error_sup",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """The ReLU network, both gated networks and their theory."""
    return [
        style.handle("ReLU network", **contextual.RELU),
        style.handle("gated, 100 units per pathway", **STYLES[RELN]),
        style.handle("gated, wide common pathway", **STYLES[WIDE]),
        style.handle("theory of gated networks", **style.THEORY),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss over initial loss; dots are the moments of c. The enlarged first drop has the gated
    network with a wide common pathway, too, with markers at recorded times. Numbers are the largest
    distance of losses of the gated networks from the ReLU network's.
    """
    cell = results.cell("contextual")
    loss = draw_relative_loss(ax, cell, contextual.RELU)
    drop = float(cell.flow_time[int((loss.mean("seed") > FIRST).sum())])
    inset = ax.inset_axes((0.42, 0.4, 0.4, 0.55))
    style.over_seeds(inset, cell.flow_time, loss, **contextual.RELU)
    _draw_candidate(ax, cell, RELN)
    for name in STYLES:
        _draw_candidate(inset, cell, name)
    initial = float(smallest_scale(cell.get("trajectory", "loss")).isel(time=0).mean("seed"))
    for name, (tag, shift, side) in TAGS.items():
        gap = metric_mean(cell, "imitation_gap", candidate=name)
        theory = smallest_scale(cell.get("theory", "candidate_loss", candidate=name)).mean("seed")
        time = float(cell.flow_time[int((theory > FIRST * initial).sum()) - 1])
        inset.annotate(f"{tag}:\n{gap:.2g} off", (time, FIRST), (shift, 0), va="center", ha=side,
                       textcoords="offset points", color=STYLES[name]["color"])  # fmt: skip
    low, high = 2 * FIRST - 1.03, 1.03
    inset.set(xlim=(0.2 * drop, 1.6 * drop), ylim=(low, high))
    inset.text(0.98, 0.9, "first drop", ha="right", transform=inset.transAxes)
    box = (0.2 * drop, low, 1.4 * drop, high - low)
    ax.indicate_inset(box, edgecolor=style.GUIDE["color"], linewidth=0.8)
    shown, _ = contextual.snapshots(cell, contextual.first_seed(cell))
    moments = contextual.nearest_snapshots(shown, SHARES)
    times = cell.trajectory["snapshot_flow_time"].values[moments]
    ax.plot(times, shown[moments], "o", color=contextual.RELU["color"], markersize=5, zorder=4)
    ax.annotate("outputs in c", (times[-1], shown[moments[-1]]), (4, 4), color="0.35",
                textcoords="offset points")  # fmt: skip
    ax.set(xlabel=style.FLOW_TIME, ylim=(0, 1.05))
    ax.set_xlim(0, style.settling_time(loss, cell.flow_time))
    ax.set_title("The gated network passes the same stages")


def panel_b(results: Results, ax: Axes) -> None:
    """Distance of outputs from the ReLU network's at equal loss, over the size of the targets."""
    cell = results.cell("contextual")
    errors = {name: metric(cell, "imitation_output_error_curve", candidate=name) ** 0.5
              for name in STYLES}  # fmt: skip
    loss = relative_loss(cell.get("trajectory", "loss")).mean("seed")
    loss = loss.sel(time=errors[RELN]["snapshot"].values)
    for name, props in STYLES.items():
        distance = errors[name].rename(snapshot="time")
        style.over_seeds(ax, loss, distance, **{"marker": "."} | props)
    peak = int(errors[RELN].mean("seed").fillna(0).argmax("snapshot"))
    for name, text, offset in ((RELN, "100 units", (8, -2)), (WIDE, "wide", (3, -12))):
        height = float(errors[name].mean("seed")[peak])
        ax.annotate(text, (float(loss[peak]), height), offset, textcoords="offset points",
                    color=STYLES[name]["color"])  # fmt: skip
    ax.set(xscale="log", xlim=(1.05, LEAST), ylim=(0, None))
    ax.set_xlabel("loss over initial loss")
    ax.set_ylabel("relative distance of outputs\nfrom the ReLU network's")
    most = float(errors[RELN].max())  # of all runs, as far as the band reaches
    ax.set_title(f"Outputs are at most {most:.0%} apart")


def panel_c(results: Results, ax: Axes) -> None:
    """Outputs of the ReLU network, of the gated one at the same loss, and their difference. Rows
    are samples, by context; columns are properties.
    """
    cell = results.cell("contextual")
    reln = contextual.reln(results.cells("contextual_gated"))
    contextual.draw_outputs(
        ax, (cell, contextual.first_seed(cell)), (reln, contextual.first_seed(reln)), SHARES
    )
    ax.set_title("At equal loss outputs are similar")


def panel_d(results: Results, ax: Axes) -> None:
    """Singular values of each pathway's map, a shade for modes alike, under joint modes of all. The
    number is the largest distance from theory over the largest value of a pathway.
    """
    cell = contextual.reln(results.cells("contextual_gated"))
    gates = contextual.pathway_gates(cell)
    off = float(metric(cell, "pathway_error_sup", solution="pathway_modes").max())
    axes = style.split(ax, 1, len(gates), sharey=True)[0]
    for pathway, (part, row) in enumerate(zip(axes, gates, strict=True)):
        contextual.draw_singular_values(part, cell, [pathway])
        part.set(xlim=(0, float(cell.flow_time[-1])), ylim=(0, None), xlabel=SHORT)
        part.set_title(contextual.opening_label(row, contextual.task(cell)), loc="center")
    axes[0].set_ylabel("singular value")
    axes[1].text(0.03, 0.9, "dark: strong modes", transform=axes[1].transAxes, fontsize=6.5)
    ax.set_title(f"Every pathway is within {off:.0%} of theory")


def _draw_candidate(ax: Axes, cell: CellResults, name: str) -> None:
    """Draws the loss of a gated network over the initial loss of the ReLU network."""
    initial = smallest_scale(cell.get("trajectory", "loss")).isel(time=0, drop=True)
    trained = metric(cell, "imitation_loss", candidate=name)
    theory = smallest_scale(cell.get("theory", "candidate_loss", candidate=name))
    style.over_seeds(ax, cell.flow_time, trained / initial, **STYLES[name])
    ax.plot(cell.flow_time, (theory / initial).mean("seed"), **style.THEORY)
