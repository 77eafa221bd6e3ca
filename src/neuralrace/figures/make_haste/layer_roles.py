"""What each of two hidden layers does: the first is used as a linear one, the second gates.

On Jarvis, Klein, Rosman and Saxe, sec. 6, which has the first hidden layer of the ReLU network open
on all samples, and the second gate by objects and contexts together. The first layer is linear in
what it does: without its ReLU the trained network keeps most of what it learned. What differs from
the source: counted unit by unit, hardly any of its units is open on every sample. Gates of the
second layer are mixed: most of what the common part leaves is carried by units that are on for two
contexts, as with one hidden layer, and hardly any by units whose gate is the same for all objects.
Eight runs of each network.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.gate_patterns import by_contexts, colour, draw_gates, kinds_of
from neuralrace.figures.sweeps import metric, smallest_scale
from neuralrace.results.cells import Results
from neuralrace.theory.reln.gates import relu_gates

TWO: dict[str, Any] = {"color": style.COLOURS["relu"], "marker": "o"}
ONE: dict[str, Any] = {"color": style.categorical(5), "marker": "^"}
NETWORKS = {"two_hidden": ("two hidden layers", TWO), "one_hidden": ("one hidden layer", ONE)}
"""Names and markers of networks, by experiment."""
EVERY = 3
"""One unit in so many is drawn."""


@Figure(
    layout="abc",
    height=2.95,
    widths=(0.9, 1.45, 1.15),
    cf={"b": "sec. 6"},
    reads={
        "two_hidden": {
            "trajectory": "weight_1 weight_2",
            "metrics": (
                "always_open_units carried_residual context_gated_share final_loss_share "
                "linearised_loss"
            ),
        },
        "one_hidden": {
            "metrics": "carried_residual context_gated_share",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Colours of units, by the contexts that they are open in."""
    contexts = contextual.task(results.cell("two_hidden")).contexts
    common, *kinds = kinds_of(contexts)
    return [
        Patch(color=colour(common), label=f"mostly open in {_listed(common)}"),
        *(Patch(color=colour(kind), label=_listed(kind)) for kind in kinds),
        Patch(color=colour(~common), label="fewer"),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss at the end over the initial loss, of the trained network and with the ReLU of one hidden
    layer taken away; a line for each run, numbers are medians.
    """
    cell = results.cell("two_hidden")
    kept, linearised = metric(cell, "final_loss_share"), metric(cell, "linearised_loss")
    losses = np.stack([kept, *linearised.transpose("hidden_layer", "seed")])
    ax.plot(losses, alpha=0.45, linewidth=1.0, markeredgewidth=0, **TWO)
    for column, median in enumerate(np.median(losses, axis=1)):
        beside: dict[str, Any] = {
            "textcoords": "offset points",
            "ha": "right" if column else "left",
        }
        ax.annotate(f"{100 * median:.2g}%", (column, median), (-7 if column else 9, 0), **beside)
    layers = [f"layer {layer}\nwithout\nits ReLU" for layer in linearised["hidden_layer"].values]
    style.named_columns(ax, ["as\ntrained", *layers])
    ax.text(0.98, 0.02, "numbers: medians", ha="right", color="0.35", transform=ax.transAxes)
    ax.set(yscale="log", ylabel="loss over initial loss")
    ax.set_title("Layer 2 needs its ReLU more")


def panel_b(results: Results, ax: Axes) -> None:
    """Gates at the end of a run of median loss, a row for a unit and a column for a sample, by
    context; closed gates are white. Rows are sorted by the contexts that units are open in, on more
    than half of the samples of each, and have their colour; every third unit is drawn. Numbers are
    shares of units that are open on all samples, the mean over runs; the paper has all of layer 1.
    """
    cell = results.cell("two_hidden")
    contexts, seed = (
        contextual.task(cell).contexts,
        style.median_seed(metric(cell, "final_loss_share")),
    )
    weights = [
        smallest_scale(cell.get("trajectory", f"weight_{layer}")).sel(seed=seed).isel(snapshot=-1)
        for layer in (1, 2)
    ]
    gates = relu_gates([*(weight.values for weight in weights), np.empty((0, 0))], cell.data.x)
    always = metric(cell, "always_open_units").mean("seed").values
    parts = style.split(ax, 1, len(gates))[0]
    for layer, (part, gate, share) in enumerate(zip(parts, gates, always, strict=True), start=1):
        draw_gates(part, gate[by_contexts(gate, contexts)[::EVERY]], cell)
        paper = "Jarvis et al.: 100%" if layer == 1 else ""
        part.set_title(f"layer {layer}: {share:.0%} open\non every sample\n{paper}", loc="center")
        part.set(yticks=[], xlabel="sample,\nby context")
    parts[0].set_ylabel("hidden unit, by contexts that it\nis mostly open in (white: closed)")
    ax.set_title("Units of both layers close")


def panel_c(results: Results, ax: Axes) -> None:
    """What units of the last hidden layer carry of the residual of the common part, by the number
    of contexts that they are on in, and in units whose gate is the same for all objects of each
    context; a dot for each run, a bar at the median.
    """
    ax.set_ylim(-0.04, 1)
    for offset, (experiment, (name, props)) in zip((-0.2, 0.2), NETWORKS.items(), strict=True):
        cell = results.cell(experiment)
        shares = metric(cell, "carried_residual")
        numbers = shares["open_contexts"].values
        columns = [*shares.transpose("open_contexts", "seed"), metric(cell, "context_gated_share")]
        for x, share in enumerate(columns):
            style.single_runs(ax, x + offset, share, 0.14, markersize=3, markeredgewidth=0, **props)
        ax.plot([], [], linestyle="", label=name, **props)
    ax.axvline(len(numbers) - 0.5, **style.GUIDE)
    ax.plot([], [], color="0.2", linewidth=1.2, label="median")
    style.named_columns(ax, [*map(str, numbers), "same gate\nfor all\nobjects"])
    ax.set_ylabel("share of the residual carried")
    # Below the numbers alone, beside the name of the last column.
    middle = len(numbers) / (2 * len(columns))
    ax.set_xlabel("number of contexts that\na unit is mostly open in", x=middle, labelpad=-14)
    ax.legend(loc="upper left")
    ax.set_title("Units of two contexts carry most")


def _listed(opened: Bool[np.ndarray, " context"]) -> str:
    """The contexts that a unit is open in."""
    return ", ".join(map(str, np.flatnonzero(opened) + 1))
