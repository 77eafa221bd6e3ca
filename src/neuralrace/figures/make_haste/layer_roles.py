"""What each of two hidden layers does: the first is used as a linear one, the second gates.

On Jarvis, Klein, Rosman and Saxe, sec. 6, which has the first hidden layer of the ReLU network open
on all samples, and the second gate by objects and contexts together. The first layer is linear in
what it does: without its ReLU the trained network keeps most of what it learned. What differs from
the source: counted unit by unit hardly any of its units is open on every sample. Gates of the
second layer are mixed: most of what the common part leaves is carried by units that are on for two
contexts, as with one hidden layer, and hardly any by units whose gate is the same for all objects.
"""

from typing import Any

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import Results

TWO: dict[str, Any] = {"color": style.COLOURS["relu"], "marker": "o"}
ONE: dict[str, Any] = {"color": style.categorical(5), "marker": "^"}
POWER: dict[str, Any] = {"color": style.categorical(9), "marker": "s"}
NETWORKS = {"two_hidden": TWO, "one_hidden": ONE}
"""Markers of networks, by experiment."""


@Figure(
    layout="abcd",
    height=2.3,
    widths=(1.0, 1.0, 1.2, 0.9),
    reads={
        "two_hidden": {
            "metrics": (
                "always_open_share always_open_units carried_residual context_gated_share "
                "final_loss_share linearised_loss"
            ),
        },
        "one_hidden": {
            "metrics": "carried_residual context_gated_share",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """ReLU networks by depth, and the paper's statement."""
    return [
        style.handle("two hidden layers", linestyle="", **TWO),
        style.handle("two, units by power", linestyle="", **POWER),
        style.handle("one hidden layer", linestyle="", **ONE),
        style.handle("Jarvis et al.: layer 1 is open", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss at the end over the initial loss, with the ReLU of one hidden layer taken away."""
    cell = results.cell("two_hidden")
    kept, linearised = metric(cell, "final_loss_share"), metric(cell, "linearised_loss")
    losses = [kept, *linearised.transpose("hidden_layer", "seed")]
    means = style.point_series(ax, range(len(losses)), losses, **TWO)
    layers = [str(layer) for layer in linearised["hidden_layer"].values]
    ax.set_xticks(range(len(losses)), ["none", *layers])
    ax.set(yscale="log", xlabel="layer without its ReLU", ylabel="loss over initial loss")
    ax.margins(x=0.2)
    ax.set_title(
        f"Loss without the ReLU of layer {layers[0]}: {means[1]:.2g}, of {layers[-1]}: "
        f"{means[-1]:.2g}"
    )


def panel_b(results: Results, ax: Axes) -> None:
    """Share of units that are open on all samples, unit by unit and by their power."""
    cell = results.cell("two_hidden")
    shares = []
    for offset, counted, props in ((-0.12, "units", TWO), (0.12, "share", POWER)):
        share = metric(cell, f"always_open_{counted}").transpose("layer", "seed")
        layers = share["layer"].values.tolist()
        positions = [layer + offset for layer in layers]
        shares.append(style.point_series(ax, positions, share, **props)[0])
    ax.plot([0.7, 1.3], [1, 1], **style.PAPER)
    ax.set_xticks(layers, map(str, layers))
    ax.set(xlabel="hidden layer", ylabel="share always open", ylim=(-0.05, 1.05))
    ax.margins(x=0.2)
    units, power = shares
    ax.set_title(f"Always open in layer {layers[0]}: {units:.0%} of units, {power:.0%} of power")


def panel_c(results: Results, ax: Axes) -> None:
    """What units carry of the residual of the common part, by the contexts that they are on in."""
    carried = []
    for (experiment, props), offset in zip(NETWORKS.items(), (-0.12, 0.12), strict=True):
        share = metric(results.cell(experiment), "carried_residual")
        numbers = share["open_contexts"].values
        share = share.transpose("open_contexts", "seed")
        carried.append(style.point_series(ax, numbers + offset, share, **props)[-2])
    ax.set_xticks(numbers)
    ax.set(xlabel="contexts that a unit is on in", ylabel="share of the residual", ylim=(-0.05, 1))
    two, one = carried
    ax.set_title(f"Units on in {numbers[-2]} contexts carry {two:z.0%}, with one layer {one:z.0%}")


def panel_d(results: Results, ax: Axes) -> None:
    """Share of the residual in units whose gate is the same for all objects of each context."""
    two, one = (
        style.points(ax, at, metric(results.cell(name), "context_gated_share"), **props)
        for at, (name, props) in enumerate(NETWORKS.items())
    )
    ax.set_xticks(range(len(NETWORKS)), ["two", "one"])
    ax.set(xlabel="hidden layers", ylabel="share of the residual", ylim=(-0.05, 1))
    ax.margins(x=0.4)
    ax.set_title(f"Units gated by context carry {two:z.0%}, with one layer {one:z.0%}")
