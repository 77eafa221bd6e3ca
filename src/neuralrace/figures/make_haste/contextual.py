"""Eight objects in three contexts: a ReLU network and its rectified linear network.

Follows Jarvis, Klein, Rosman and Saxe, fig. 4a and b. The rectified linear network is gated: a
common pathway, open on all samples, and three pathways that are open in two contexts each. Its loss
has the stages of the ReLU network's, and its pathways learn their singular values as theory says,
from the initial weights and with nothing fitted. What differs from the source: with 100 units in
every pathway it is late in the first drop, which is the common pathway's, and early in the last; a
gated network with half of the ReLU network's units in the common pathway is neither. Outputs are of
one run each, of the gated network between its two nearest snapshots.
"""

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
STYLES = {RELN: contextual.RELN, WIDE: {"color": style.categorical(9), "linewidth": 1.2}}
SHARES = (0.5, 0.2, 0.05)
"""Losses over initial loss at which outputs are drawn."""
FIRST = 0.85
"""Loss over initial loss in the middle of the first drop."""
CLOSE = 0.01
"""Squared distance of outputs that differ by a tenth of their size."""


@Figure(
    layout="abb;ccd",
    height=4.0,
    widths=(1.15, 0.85, 1.0),
    heights=(1.25, 1.0),
    cf={"a": "Fig. 4a", "b": "Fig. 4a", "c": "Fig. 4b"},
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
        style.handle("gated, 100 units a pathway", **STYLES[RELN]),
        style.handle("gated, wide common pathway", **STYLES[WIDE]),
        style.BAND,
        style.handle("theory of the gated", **style.THEORY),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss as a share of its start, the first drop enlarged; dots are the moments of b."""
    cell = results.cell("contextual")
    loss = draw_relative_loss(ax, cell, contextual.RELU)
    drop = float(cell.flow_time[int((loss.mean("seed") > FIRST).sum())])
    inset = ax.inset_axes((0.42, 0.42, 0.58, 0.56))
    style.over_seeds(inset, cell.flow_time, loss, **contextual.RELU)
    _draw_candidates(ax, cell)
    _draw_candidates(inset, cell)
    inset.set(xlim=(0.6 * drop, 2 * drop), ylim=(2 * FIRST - 1.03, 1.03))
    shown, _ = contextual.snapshots(cell, contextual.first_seed(cell))
    moments = contextual.nearest_snapshots(shown, SHARES)
    times = cell.trajectory["snapshot_flow_time"].values[moments]
    ax.plot(times, shown[moments], "o", color=contextual.RELU["color"], zorder=4)
    style.epoch_axis(ax, cell.flow_time)
    ax.set(xlabel=style.FLOW_TIME, ylim=(0, None))
    ax.set_xlim(0, style.settling_time(loss, cell.flow_time))
    near, wide = (metric_mean(cell, "imitation_gap", candidate=name) for name in STYLES)
    ax.set_title(f"Losses are {near:.2g} apart, from the wide one {wide:.2g}")


def panel_b(results: Results, ax: Axes) -> None:
    """Outputs of the ReLU network, of the gated one at the same loss, and their difference."""
    cell = results.cell("contextual")
    reln = contextual.reln(results.cells("contextual_gated"))
    apart = contextual.draw_outputs(
        ax, (cell, contextual.first_seed(cell)), (reln, contextual.first_seed(reln)), SHARES
    )
    ax.set_title(f"At equal loss no output differs by more than {apart:.2g}")


def panel_c(results: Results, ax: Axes) -> None:
    """Singular values of each pathway's map, a shade for modes alike, under joint modes of all."""
    cell = contextual.reln(results.cells("contextual_gated"))
    gates = contextual.pathway_gates(cell)
    off = metric(cell, "pathway_error_sup", solution="pathway_modes")
    axes = style.split(ax, 1, len(gates), sharey=True)[0]
    for pathway, (part, row) in enumerate(zip(axes, gates, strict=True)):
        contextual.draw_singular_values(part, cell, [pathway])
        part.set(xlim=(0, float(cell.flow_time[-1])), ylim=(0, None))
        label = contextual.opening_label(row, contextual.task(cell))
        part.set(xlabel=r"flow time ($\tau$)", title=label)
    axes[0].set_ylabel("singular value")
    ax.set_title(f"Every pathway follows theory, to {float(off.max()):.0%} of its largest value")


def panel_d(results: Results, ax: Axes) -> None:
    """Squared distance of outputs over squared targets; below the line alike to a tenth in size."""
    cell = results.cell("contextual")
    loss = relative_loss(cell.get("trajectory", "loss"))
    largest = []
    for name, props in STYLES.items():
        error = metric(cell, "imitation_output_error_curve", candidate=name)
        error = error.rename(snapshot="time")
        x = loss.sel(time=error["time"]).mean("seed")
        style.over_seeds(ax, x, error, marker=".", **props)
        largest.append(float(error.max("time").mean("seed")))
    ax.axhline(CLOSE, **style.GUIDE)
    ax.set(xlabel="loss over initial loss", ylabel="$|f-g|^2/|y|^2$, at equal loss")
    ax.set(xlim=(1.02, 0), ylim=(0, None))
    near, wide = largest
    ax.set_title(f"Outputs are up to {near:.2g} apart, {wide:.2g} with a wide common pathway")


def _draw_candidates(ax: Axes, cell: CellResults) -> None:
    """Draws losses of both gated networks over the initial loss of the ReLU network."""
    initial = smallest_scale(cell.get("trajectory", "loss")).isel(time=0, drop=True)
    for name, props in STYLES.items():
        trained = metric(cell, "imitation_loss", candidate=name)
        theory = smallest_scale(cell.get("theory", "candidate_loss", candidate=name))
        style.over_seeds(ax, cell.flow_time, trained / initial, **props)
        ax.plot(cell.flow_time, (theory / initial).mean("seed"), **style.THEORY)
