r"""Shares of localised and oscillating units in every condition.

Rows are conditions, named by the correlation lengths :math:`\xi_1, \xi_2` of the classes with
:math:`y = 1` and :math:`y = 0`; bars are shares of units at the end of training, means over seeds.
Of the black lines, ranges over seeds, the upper one is where the localised units end and the lower
one where the oscillating ones begin. The notes have ReLU networks localise if :math:`\xi_1 > \xi_2`
and oscillate at short range otherwise, with squared error or cross-entropy, with biases or without,
and sigmoid networks do as erf networks do but need their biases. They tell the classes by eye. Here
they follow from the window that holds 90% of a unit's energy (a third of the ring or less if it is
localised), from the cycles of its dominant frequency in that window, and from how opposite it is to
itself further on. All of it is for units that are averaged: with a trained readout ReLU networks
fit better, and do not localise.
"""

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.receptive_fields import (
    class_handles,
    class_shares,
    draw_shares,
    lengths_label,
    marginal_name,
    process,
)
from neuralrace.figures.sweeps import cannot_draw, metric, metric_mean
from neuralrace.networks.layered import Layered
from neuralrace.results.cells import CellResults, Results

RANGES = (
    {"color": "white", "linewidth": 2.6, "solid_capstyle": "butt"},
    {"color": "black", "linewidth": 1.0, "solid_capstyle": "butt"},
)
"""A white line below a black one, visible on every bar."""
LOSSES = {
    "relu": "ReLU",
    "trained_readout": "ReLU,\ntrained readout",
    "erf": "erf",
    "sigmoid": "sigmoid",
    "erf_without_biases": "erf,\nno biases",
    "sigmoid_without_biases": "sigmoid,\nno biases",
}
"""Names of the experiments whose losses are compared."""
ORDERS = (
    {"color": style.sequential(3)[0], "marker": "o"},
    {"color": style.sequential(3)[1], "marker": "s"},
)
r"""Markers of \xi_1 > \xi_2 and of \xi_1 < \xi_2."""


@Figure(
    layout="abc;def;ggg",
    height=4.6,
    widths=(0.84, 1.0, 1.0),
    heights=(8.6, 6.0, 4.8),
    cf={"a": "sec. 1", "b": "sec. 1", "c": "sec. 1", "d": "sec. 1", "e": "sec. 1"},
    reads={
        "relu trained_readout erf sigmoid erf_without_biases sigmoid_without_biases": {
            "metrics": "localised_share neither_share oscillating_share relative_loss",
        },
        "relu_low_gain relu_sizes relu_biases erf_offset": {
            "metrics": "localised_share neither_share oscillating_share",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Classes, and the lines of ranges."""
    return [*class_handles(), style.handle("range over seeds", **RANGES[-1])]


def panel_a(results: Results, ax: Axes) -> None:
    """ReLU units at the higher gain, by the order of the lengths."""
    cells = results.cells("relu")
    _bars(ax, cells)
    findings = []
    for sign, name, verb in ((">", "localised", "localise"), ("<", "oscillating", "oscillate")):
        if group := [cell for cell in cells if _longer_first(cell) == (sign == ">")]:
            findings.append(rf"$\geq${_least(group, name):.0%} {verb} if $\xi_1 {sign} \xi_2$")
    ax.set_title(f"ReLU: {', '.join(findings)}")


def panel_b(results: Results, ax: Axes) -> None:
    """Units at the lower gain, where inputs are next to Gaussian."""
    cells = results.cells("relu_low_gain")
    gain = marginal_name(cells[0])
    others = [*results.cells("erf"), *results.cells("sigmoid")]
    cells = [*cells, *(cell for cell in others if marginal_name(cell) == gain)]
    _bars(ax, cells)
    ax.set_title(f"{gain.capitalize()}: $\\leq${_most(cells):.0%} localise")


def panel_c(results: Results, ax: Axes) -> None:
    """The other activations with biases; at :math:`b_2 = 1/2` classes swap by a sign."""
    cells = [cell for name in ("erf", "erf_offset", "sigmoid") for cell in results.cells(name)]
    cells = [cell for cell in cells if marginal_name(cell) == marginal_name(cells[0])]
    _bars(ax, cells)
    fixed = [_share(cell, "localised") for cell in cells if cell in results.cells("erf")]
    shares = ", ".join(f"{share:.0%}" for share in fixed)
    ax.set_title(rf"erf at $b_2 = 0$: {shares} localise")


def panel_d(results: Results, ax: Axes) -> None:
    """ReLU units with biases, with squared error and with cross-entropy."""
    cells = results.cells("relu_biases")
    _bars(ax, cells)
    least = _least([cell for cell in cells if _longer_first(cell)], "localised")
    ax.set_title(rf"Biases: $\geq${least:.0%} if $\xi_1 > \xi_2$")


def panel_e(results: Results, ax: Axes) -> None:
    """Units of erf and sigmoid networks without biases."""
    names = ("erf_without_biases", "sigmoid_without_biases")
    cells = [cell for name in names for cell in results.cells(name)]
    _bars(ax, cells)
    ax.set_title(f"Without biases: $\\leq${_most(cells):.0%} localise")


def panel_f(results: Results, ax: Axes) -> None:
    """ReLU networks of other numbers K of units, and with a trained readout."""
    sizes, readouts = results.cells("relu_sizes"), results.cells("trained_readout")
    _bars(ax, [*sizes, *readouts])
    least = _least(sizes, "localised")
    ax.set_title(rf"Sizes: $\geq${least:.0%}; own readout: $\leq${_most(readouts):.0%}")


def panel_g(results: Results, ax: Axes) -> None:
    """Loss at the end over that of the best constant; above 1 nothing is learned of inputs."""
    lengths = {lengths_label(cell) for cell in results.cells("trained_readout")}
    without = []
    for position, name in enumerate(LOSSES):
        cells = [cell for cell in results.cells(name) if lengths_label(cell) in lengths]
        marginal = marginal_name(cells[0])
        for cell in cells:
            if marginal_name(cell) == marginal:
                late = not _longer_first(cell)
                loss = metric(cell, "relative_loss")
                style.points(ax, position + 0.16 * (2 * late - 1), loss, **ORDERS[late])
                without += [loss.min()] * name.endswith("without_biases")
    ax.axhline(1, **style.GUIDE)
    ax.set_xticks(range(len(LOSSES)), LOSSES.values())
    ax.set(
        ylabel="loss over that of\nthe best constant",
        xlim=(-0.5, len(LOSSES) + 0.1),
        ylim=(0, None),
    )
    ax.legend(
        handles=[
            style.handle(rf"$\xi_1 {sign} \xi_2$", linestyle="", **props)
            for sign, props in zip("><", ORDERS, strict=True)
        ],
        loc="upper left",
    )
    ax.set_title(f"Without biases {float(min(without)):.2f} or more of a constant's loss is left")


def _longer_first(cell: CellResults) -> bool:
    r"""Whether \xi_1 > \xi_2."""
    first, second = process(cell).xi
    return first > second


def _share(cell: CellResults, name: str) -> float:
    """Mean share of a class over seeds."""
    return metric_mean(cell, f"{name}_share")


def _most(cells: Iterable[CellResults]) -> float:
    """Largest localised share."""
    return max(_share(cell, "localised") for cell in cells)


def _least(cells: Iterable[CellResults], name: str) -> float:
    """Smallest share of a class."""
    return min(_share(cell, name) for cell in cells)


def _network(cell: CellResults) -> Layered:
    """The network of a cell.

    Raises:
        UserError: a network without an activation.
    """
    network = cell.spec.network
    if not isinstance(network, Layered):
        raise cannot_draw(cell, "network", "activation")
    return network


def _names(cells: Sequence[CellResults]) -> list[str]:
    """Names of conditions: activation unless ReLU, lengths, and differences from the first one.

    All names have the number of units, or that the readout is trained, if these differ.
    """
    sizes = {_units(cell) for cell in cells}
    first, names = marginal_name(cells[0]), []
    for cell in cells:
        activation, loss = _network(cell).activation, cell.spec.training.loss.name
        words = [lengths_label(cell)]
        words += [_units(cell)] * (len(sizes) > 1)
        words += [marginal_name(cell)] * (marginal_name(cell) != first)
        words += [loss.replace("_", "-")] * (loss != "squared_error")
        words += ["$b_2 = 1/2$"] * (process(cell).targets == (0.5, -0.5))
        name = "; ".join(words)
        names.append(name if activation == "relu" else f"{activation} {name}")
    return names


def _units(cell: CellResults) -> str:
    """Number of units, or that their readout is trained."""
    network = _network(cell)
    return f"$K$ = {network.hidden[0]}" if network.readout == "mean" else "own readout"


def _bars(ax: Axes, cells: Sequence[CellResults]) -> None:
    """Draws a bar for each condition, and ranges of the borders between its parts."""
    ax = style.named_rows(ax, _names(cells))
    for row, cell in enumerate(cells):
        draw_shares(ax, cell, row, height=0.78)
        shares = class_shares(cell)
        for position, ends in (
            (row - 0.15, shares["localised"]),
            (row + 0.15, 1 - shares["oscillating"]),
        ):
            for line in RANGES:
                ax.plot([ends.min("seed"), ends.max("seed")], [position, position], **line)
    ax.tick_params(axis="y", length=0)
    ax.set_xticks([0, 0.5, 1])
    ax.set(xlim=(0, 1), ylim=(len(cells) - 0.5, -0.5), xlabel="share of units")
