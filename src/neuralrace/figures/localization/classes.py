r"""Shares of localised and oscillating units by activation, lengths, biases, loss and gain.

Bars are shares of units at the end of training, means over five runs; the left bars are those whose
longer correlation length has :math:`y = 1`. Black lines are ranges over the runs of where localised
units end and where oscillating ones begin. The notes have ReLU networks localise if :math:`\xi_1 >
\xi_2` and oscillate at short range otherwise, with squared error or cross-entropy, with biases or
without, and sigmoid networks do as erf networks do but need their biases. They tell the classes by
eye. Here they follow from the window that holds 90% of a unit's energy (a third of the ring or less
if it is localised), from the cycles of its dominant frequency in that window, and from how opposite
it is to itself further on. All of it is for units that are averaged: with a trained readout ReLU
networks fit better, and do not localise.

Where the offset :math:`b_2` of eq. 1 is trained, there are sixteen runs, and all parameters have
one learning rate. At 1/2 no output of ReLU units reaches the targets of 0.
"""

from collections.abc import Callable, Iterable, Mapping

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.receptive_fields import (
    class_handles,
    class_shares,
    draw_shares,
    lengths_label,
    marginal_name,
    process,
)
from neuralrace.figures.sweeps import cannot_draw
from neuralrace.networks.layered import Layered
from neuralrace.results.cells import CellResults, Results

RANGES = (
    {"color": "white", "linewidth": 2.6, "solid_capstyle": "butt"},
    {"color": "black", "linewidth": 1.0, "solid_capstyle": "butt"},
)
"""A white line below a black one, visible on every bar."""
BY_OFFSET = {
    "ReLU": ("relu_biases", "relu_output_half", "relu_output_bias"),
    "erf": ("erf", "erf_offset", "erf_output_bias"),
    "sigmoid": ("sigmoid", "sigmoid_output_half", "sigmoid_output_bias"),
}
"""Experiments with the offset at 0, at 1/2 and trained, by activation."""
COLOURS = {
    "ReLU": style.COLOURS["relu"],
    "erf": style.categorical(4),
    "sigmoid": style.categorical(5),
}
"""Colours of activations."""
ORDERS = {True: r"$\xi_1 > \xi_2$", False: r"$\xi_1 < \xi_2$"}
"""Names of the columns, by whether the longer length is first."""


@Figure(
    layout="ab;cd;ee",
    height=6.0,
    cf={"a": "sec. 1", "b": "sec. 1", "c": "sec. 1, eq. 1", "d": "sec. 1", "e": "sec. 1, eq. 1"},
    reads={
        (
            "relu relu_biases relu_output_half relu_output_bias relu_low_gain trained_readout erf "
            "erf_offset erf_output_bias sigmoid sigmoid_output_half sigmoid_output_bias "
            "erf_without_biases sigmoid_without_biases"
        ): {
            "metrics": "localised_share neither_share oscillating_share",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Classes, and the lines of ranges."""
    return [*class_handles(), style.handle("range of a boundary over runs", **RANGES[-1])]


def panel_a(results: Results, ax: Axes) -> None:
    """ReLU units at the higher gain, by the two lengths."""

    def lengths(cell: CellResults) -> str:
        return " and ".join(f"{xi:g}" for xi in sorted(process(cell).xi, reverse=True))

    ax.set_title(r"ReLU units localise if $\xi_1 > \xi_2$")
    _bars(ax, _by_name(results.cells("relu"), lambda cell: rf"$\xi$ = {lengths(cell)}"), False)


def panel_b(results: Results, ax: Axes) -> None:
    """ReLU networks with biases and squared error, with biases and cross-entropy, and with a
    trained readout.
    """
    cells = [*results.cells("relu_biases"), *results.cells("trained_readout")]
    ax.set_title("Of three changes, trained readouts prevent bumps")
    _bars(ax, _by_name(cells, _variety), False)


def panel_c(results: Results, ax: Axes) -> None:
    """Other activations at the higher gain; at :math:`b_2 = 1/2` classes swap by a sign."""
    names = ("erf", "erf_offset", "sigmoid", "erf_without_biases", "sigmoid_without_biases")
    cells = [cell for name in names for cell in results.cells(name)]
    gain = marginal_name(results.cells("relu")[0])
    ax.set_title("erf, sigmoid units hardly localise without biases")
    _bars(ax, _by_name([cell for cell in cells if marginal_name(cell) == gain], _activation))


def panel_d(results: Results, ax: Axes) -> None:
    """All activations at the lower gain, where inputs are next to Gaussian."""
    low = results.cells("relu_low_gain")
    gain, lengths = marginal_name(low[0]), {process(cell).xi for cell in results.cells("erf")}
    cells = [*low, *results.cells("erf"), *results.cells("sigmoid")]
    shown = [c for c in cells if marginal_name(c) == gain and process(c).xi in lengths]
    ax.set_title("At a low gain hardly any unit localises")
    _bars(ax, _by_name(shown, lambda cell: _network(cell).activation.replace("relu", "ReLU")))


def panel_e(results: Results, ax: Axes) -> None:
    """Share of localised units at the higher gain, against the offset of the output, with
    :math:`b_1` trained; bars are ranges over runs.
    """
    gain = marginal_name(results.cells("relu")[0])
    lengths = {process(cell).xi for cell in results.cells("erf")}
    ax.set_title("A trained $b_2$ brings erf and sigmoid closer")
    # (order, activation) -> column and cell of each setting that there is
    found: dict[tuple[bool, str], list[tuple[int, CellResults]]] = {}
    for name, experiments in BY_OFFSET.items():
        for column, experiment in enumerate(experiments):
            for cell in results.cells(experiment):
                first, second = xi = process(cell).xi
                squared = cell.spec.training.loss.squared
                if marginal_name(cell) == gain and xi in lengths and squared:
                    found.setdefault((first > second, name), []).append((column, cell))
    orders = [order for order in ORDERS if order in {each for each, _ in found}]
    axes = style.split(ax, 1, len(orders), sharey=True, wspace=0.1)[0]
    for part, order in zip(axes, orders, strict=True):
        ends = []
        for number, name in enumerate(BY_OFFSET):
            if cells := found.get((order, name)):
                look = {"color": COLOURS[name], "marker": style.marker(number), "markersize": 5}
                places = [column + 0.12 * (number - 1) for column, _ in cells]
                shares = [class_shares(cell)["localised"] for _, cell in cells]
                points = style.point_series(part, places, shares, **look)
                ends.append((points[-1], name, look["color"]))
                part.set_title(f"{ORDERS[order]}: {lengths_label(cells[0][1])}", loc="center")
        style.named_columns(part, ("0", "1/2", "trained"))
        part.set_xlabel("offset $b_2$ of the output")
        part.set(ylim=(-0.06, 1.06), yticks=[0, 0.5, 1])
    axes[0].set_ylabel("share of localised units")
    label_ends(axes[-1], ends)


def _by_name(
    cells: Iterable[CellResults], name: Callable[[CellResults], str]
) -> dict[str, dict[bool, CellResults]]:
    r"""Cells by name of a row, and by whether \xi_1 > \xi_2."""
    rows: dict[str, dict[bool, CellResults]] = {}
    for cell in cells:
        first, second = process(cell).xi
        rows.setdefault(name(cell), {})[first > second] = cell
    return rows


def _network(cell: CellResults) -> Layered:
    """The network of a cell.

    Raises:
        UserError: a network without an activation.
    """
    network = cell.spec.network
    if not isinstance(network, Layered):
        raise cannot_draw(cell, "network", "activation")
    return network


def _variety(cell: CellResults) -> str:
    """What a ReLU network has that those of the first panel have not."""
    network = _network(cell)
    if network.readout != "mean":
        return "trained readout"
    return "biases, cross-entropy" if cell.spec.training.loss.name == "cross_entropy" else "biases"


def _activation(cell: CellResults) -> str:
    """Activation, and biases."""
    network = _network(cell)
    offset = ", $b_2$ = 1/2" * (process(cell).targets == (0.5, -0.5))
    return f"{network.activation}{offset}" if network.bias else f"{network.activation}, no biases"


def _bars(ax: Axes, rows: Mapping[str, Mapping[bool, CellResults]], labelled: bool = True) -> None:
    """Draws a bar for each row and order of the lengths, with ranges of the borders in it.

    Beside the rows stands their gain, and above them their lengths, if they have the same.
    """
    orders = [first for first in ORDERS if any(first in cells for cells in rows.values())]
    axes = style.split(ax, 1, len(orders))[0]
    for number, (part, longer_first) in enumerate(zip(axes, orders, strict=True)):
        for row, cells in enumerate(rows.values()):
            if longer_first in cells:
                _bar(part, cells[longer_first], row)
        part.set_yticks(
            range(len(rows)), [""] * len(rows) if number else [f"  {name}" for name in rows]
        )
        part.tick_params(axis="y", length=0)
        part.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        part.set(xlim=(0, 1), ylim=(len(rows) - 0.5, -0.5))
        part.set_xlabel("share of units" if labelled else "")
        shown = [cells[longer_first] for cells in rows.values() if longer_first in cells]
        lengths = {lengths_label(cell) for cell in shown}
        same = f": {next(iter(lengths))}" if len(lengths) == 1 else ""
        part.set_title(f"{ORDERS[longer_first]}{same}", loc="center")
        if not number:
            part.set_ylabel(marginal_name(shown[0]))


def _bar(ax: Axes, cell: CellResults, row: int) -> None:
    """Draws the shares of a cell, and their ranges."""
    draw_shares(ax, cell, row, height=0.78)
    shares = class_shares(cell)
    for ends in (shares["localised"], 1 - shares["oscillating"]):
        for line in RANGES:
            ax.plot([ends.min("seed"), ends.max("seed")], [row, row], **line)
