"""Eight objects in three contexts: a ReLU network and its rectified linear network.

Follows Jarvis, Klein, Rosman and Saxe, fig. 4a and b, with the gated network of their appendix F: a
common pathway, open on all samples, and three pathways that are open in two contexts each, which
see objects only and learn in stages what the common pathway leaves; with as many units in all as
the ReLU network. Its loss has the stages of the ReLU network's, and its pathways learn their
singular values as theory says, from the initial weights and with nothing fitted. The init scale is
not in the source; all is from 1e-5, where outputs agree within a tenth in all runs, which they do
less from larger and from smaller starts. Other readings are in b: trained jointly, with the 100
units of appendix H in each pathway, with contexts among the inputs of context pathways. Outputs are
of one run each, of the gated network between its two nearest snapshots; other lines and bands are
means and ranges over eight runs.
"""

from typing import Any

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import draw_relative_loss, metric, relative_loss, smallest_scale
from neuralrace.results.cells import Results

RELN = "two"
"""The candidate of the ReLU network as the source describes it."""
THIN: dict[str, Any] = {"linewidth": 1.4, "alpha": 1.0}
READINGS: dict[str, tuple[str, dict[str, Any]]] = {
    RELN: ("in stages, 175 units each", contextual.RELN),
    "two_jointly": ("jointly", THIN | {"color": "black", "linestyle": ":"}),
    "two_of_table": ("100 units each", THIN | {"color": style.categorical(9), "linestyle": "--"}),
    "two_shown": (
        "pathways see contexts",
        THIN | {"color": style.categorical(2), "linestyle": "-."},
    ),
    "one": ("open in one context", THIN | {"color": contextual.family_props((1,))["color"]}),
}
"""Names and lines of candidates, by name in the configuration."""
SHARES = (0.42, 0.2)
"""Losses over initial loss at which outputs are drawn."""
TIME = r"time ($\tau$)"
LEAST = 0.004
"""Least loss over initial loss at which distances of outputs are drawn."""
TENTH = 0.1
"""The distance of outputs that is drawn as a line."""


@Figure(
    layout="aaabb;ccccc;ddddd",
    height=7.0,
    heights=(1.1, 1.8, 0.95),
    cf={"a": "Fig. 4a", "c": "Fig. 4a", "d": "Fig. 4b"},
    reads={
        "contextual_reln": {
            "trajectory": "loss outputs",
            "metrics": "imitation_gap imitation_loss imitation_output_error_curve",
        },
        "contextual_stages": {
            "trajectory": "loss outputs pathway_values",
            "theory": "loss pathway_values",
            "metrics": "pathway_error_sup",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """The ReLU network, the gated network and its theory."""
    return [
        style.handle("ReLU network", **contextual.RELU),
        style.handle("gated, trained in stages, same total units", **contextual.RELN),
        style.handle("theory of the gated network", **style.THEORY),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss over initial loss; dots are the moments of c. The number is the largest distance of the
    losses in any run.
    """
    cell, gated = results.cell("contextual_reln"), results.cell("contextual_stages")
    loss = draw_relative_loss(ax, cell, contextual.RELU)
    initial = smallest_scale(cell.get("trajectory", "loss")).isel(time=0, drop=True)
    imitated = metric(cell, "imitation_loss", candidate=RELN) / initial
    style.over_seeds(ax, cell.flow_time, imitated, **contextual.RELN)
    theory = relative_loss(gated.get("theory", "loss", solution="pathway_modes"))
    ax.plot(gated.flow_time, theory.mean("seed"), **style.THEORY)
    gap = metric(cell, "imitation_gap", candidate=RELN)
    style.note(ax, f"at most {float(gap.max()):.2f} apart in any run")
    seed = contextual.first_seed(cell)
    shown, _ = contextual.snapshots(cell, seed)
    moments = contextual.nearest_snapshots(shown, SHARES)
    times = cell.trajectory["snapshot_flow_time"].values[moments]
    ax.plot(times, shown[moments], "o", color=contextual.RELU["color"], markersize=5, zorder=4)
    ax.annotate("outputs in c", (times[-1], shown[moments[-1]]), (4, 4), color="0.35",
                textcoords="offset points")  # fmt: skip
    ax.set(xlabel=TIME, ylabel="loss / initial loss", ylim=(0, 1.05))
    ax.set_xlim(0, style.settling_time(loss, cell.flow_time))
    ax.set_title("The gated network goes through the same plateaus")


def panel_b(results: Results, ax: Axes) -> None:
    """Distance of outputs from the ReLU network's at equal loss, over the size of the targets, by
    what the gated network is; the line is a tenth.
    """
    cell = results.cell("contextual_reln")
    loss = relative_loss(cell.get("trajectory", "loss")).mean("seed")
    for name, (_, props) in READINGS.items():
        errors = metric(cell, "imitation_output_error_curve", candidate=name) ** 0.5
        errors = errors.rename(snapshot="time")
        style.over_seeds(ax, loss.sel(time=errors["time"].values), errors, **props)
    ax.axhline(TENTH, **style.GUIDE)
    handles = [style.handle(label, **props) for label, props in READINGS.values()]
    handles.append(style.handle(f"limit in the claim: {TENTH:g}", **style.GUIDE))
    ax.legend(handles=handles, fontsize=6.5)
    ax.set(xscale="log", xlim=(1.05, LEAST), ylim=(0, 1.7 * ax.dataLim.y1))
    ax.set_xlabel("loss / initial loss")
    ax.set_ylabel("relative distance of outputs\nfrom the ReLU network's")
    ax.set_title("Outputs differ if pathways see contexts")


def panel_c(results: Results, ax: Axes) -> None:
    """Outputs of the ReLU network, of the gated one at the same loss, and their difference. Rows
    are samples, by context; columns are properties.
    """
    relu, reln = results.cell("contextual_reln"), results.cell("contextual_stages")
    contextual.draw_outputs(
        ax,
        (relu, contextual.first_seed(relu)),
        (reln, contextual.first_seed(reln)),
        SHARES,
    )
    ax.set_title("At equal loss outputs are similar")


def panel_d(results: Results, ax: Axes) -> None:
    """Singular values of each pathway's map, a shade for modes alike, under the modes of all
    pathways in stages. The number is the largest distance from theory over the largest value of a
    pathway.
    """
    cell = results.cell("contextual_stages")
    gates = contextual.pathway_gates(cell)
    off = float(metric(cell, "pathway_error_sup", solution="pathway_modes").max())
    axes = style.split(ax, 1, len(gates), sharey=True)[0]
    for pathway, (part, row) in enumerate(zip(axes, gates, strict=True)):
        contextual.draw_singular_values(part, cell, [pathway])
        part.set(xlim=(0, float(cell.flow_time[-1])), ylim=(0, None), xlabel=TIME)
        part.set_title(contextual.opening_label(row, contextual.task(cell)), loc="center")
    axes[0].set_ylabel("singular value")
    axes[1].text(0.03, 0.9, "dark: strong modes", transform=axes[1].transAxes, fontsize=6.5)
    ax.set_title(f"Every pathway is within {off:.0%} of theory")
