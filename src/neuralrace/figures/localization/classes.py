"""Shares of localised and oscillating units in every condition (sec. 1)."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.errors import UserError
from neuralrace.figures import receptive, style
from neuralrace.networks.layered import Layered
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

PANELS = {
    r"ReLU, by lengths $\xi$ and gain": ("relu", "relu_low_gain"),
    "ReLU, other numbers of units": ("relu_sizes",),
    "ReLU, trained readout": ("trained_readout",),
    "ReLU with biases": ("relu_biases",),
    "erf and sigmoid with biases": ("erf", "erf_offset", "sigmoid"),
    "without biases": ("erf_without_biases", "sigmoid_without_biases"),
}
"""Experiments by what is in their networks."""
RANGES = (
    {"color": "white", "linewidth": 2.6, "solid_capstyle": "butt"},
    {"color": "black", "linewidth": 1.0, "solid_capstyle": "butt"},
)
"""Lines below each other, seen on every bar."""


@Figure(
    reads={
        (
            "relu relu_low_gain relu_sizes trained_readout relu_biases erf erf_offset sigmoid "
            "erf_without_biases sigmoid_without_biases"
        ): {
            "metrics": "localised_share neither_share oscillating_share",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Mean shares by class, a bar a condition, with ranges over seeds at both boundaries."""
    panels = [[cell for name in names for cell in results.cells(name)] for names in PANELS.values()]
    figure = Canvas(figsize=(style.COLUMN, 1.5 + 0.15 * sum(map(len, panels))))
    axes = figure.subplots(
        len(panels), 1, sharex=True, height_ratios=[0.3 + len(cells) for cells in panels]
    )
    for ax, cells in zip(axes, panels, strict=True):
        for row, cell in enumerate(cells):
            receptive.draw_shares(ax, cell, row, height=0.7)
            _draw_ranges(ax, cell, row)
        sizes = {_network(cell).hidden for cell in cells}
        ax.set_yticks(range(len(cells)), [_name(cell, len(sizes) > 1) for cell in cells])
        ax.tick_params(axis="y", length=0)
        ax.set(xlim=(0, 1), ylim=(len(cells) - 0.5, -0.5))
    axes[-1].set_xlabel("share of units")
    style.letters(axes, list(PANELS))
    spread = style.entry("range over seeds", **RANGES[-1])
    style.legend(figure, [*receptive.class_entries(), spread], columns=2)
    return figure


def _network(cell: CellResults) -> Layered:
    """The network of a cell.

    Raises:
        UserError: it is none with an activation.
    """
    network = cell.spec.network
    if not isinstance(network, Layered):
        raise UserError(f"{cell.name}: network {network.name!r} has no activation to draw")
    return network


def _name(cell: CellResults, sized: bool) -> str:
    """Activation unless it is ReLU, correlation lengths, marginal, loss unless it is squared.

    And the number of units, if that is asked for.
    """
    network, loss = _network(cell), cell.spec.training.loss.name
    words = [receptive.lengths(cell), receptive.marginal(cell)]
    words += [f"$K$ = {network.hidden[0]}"] * sized
    words += [loss.replace("_", "-")] * (loss != "squared_error")
    words += ["$b_2 = 1/2$"] * (receptive.process(cell).targets == (0.5, -0.5))
    name = "; ".join(words)
    return name if network.activation == "relu" else f"{network.activation} {name}"


def _draw_ranges(ax: Axes, cell: CellResults, row: int) -> None:
    """Ranges over seeds where the localised end, and lower where the oscillating begin."""
    shares = receptive.shares(cell)
    for place, ends in ((row - 0.13, shares["localised"]), (row + 0.13, 1 - shares["oscillating"])):
        for line in RANGES:
            ax.plot([ends.min("seed"), ends.max("seed")], [place, place], **line)
