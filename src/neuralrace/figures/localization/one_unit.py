"""Mean-field flow of ReLU units beside their training (sec. 2.2)."""

from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import gated, receptive, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

FILLS = ("full", "none")
"""Markers of the first pair of correlation lengths and of others."""


@Figure(
    reads={
        "one_unit prediction": {
            "trajectory": "weight_1",
            "theory": "receptive_fields",
            "metrics": "participation predicted_participation",
        },
    }
)
def draw(results: Results) -> Canvas:
    """A unit of every cell, and participation of training against that of theory.

    Rows are numbers of units and laws of inputs, columns are pairs of correlation lengths. Units
    are the first of the first seed, at the end of training.
    """
    cells = [*results.cells("one_unit"), *results.cells("prediction")]
    kinds, orders = (list(dict.fromkeys(map(of, cells))) for of in (_kind, receptive.lengths))
    looks: dict[str, dict[str, Any]] = {
        kind: {"color": colour, "marker": style.marker(index)}
        for index, (kind, colour) in enumerate(zip(kinds, style.ordered(len(kinds)), strict=True))
    }
    figure = Canvas(figsize=(style.COLUMN, 2.6 + 0.8 * len(kinds)))
    upper, lower = figure.add_gridspec(2, 1, height_ratios=(0.75 * len(kinds), 2))
    grid, spread = upper.subgridspec(len(kinds), len(orders)), figure.add_subplot(lower)
    places = [(kinds.index(_kind(cell)), orders.index(receptive.lengths(cell))) for cell in cells]
    for cell, (row, column) in zip(cells, places, strict=True):
        ax = figure.add_subplot(grid[row, column])
        theory = gated.smallest(cell.get("theory", "receptive_fields", solution="mean_field"))
        learned, look = receptive.learned(cell), looks[kinds[row]]
        receptive.draw(ax, _unit(learned), color=look["color"], linewidth=1.9)
        receptive.draw(ax, _unit(theory), **style.THEORY)
        ax.set_ylabel(kinds[row] if column == 0 else "")
        ax.set_xlabel(receptive.PLACE if row == len(kinds) - 1 else "")
        if row == min(above for above, beside in places if beside == column):
            ax.set_title(rf"$\xi_1, \xi_2$ = {orders[column]}")
        predicted = cell.get("metrics", "predicted_participation", solution="mean_field")
        measured = cell.get("metrics", "participation")
        fill = {"linestyle": "", "fillstyle": FILLS[min(column, 1)]}
        spread.plot(gated.smallest(predicted), gated.smallest(measured), **fill, **look)
    _draw_agreement(spread)
    first = figure.axes[1]
    style.letters(
        [first, spread], [first.get_title("left"), "participation, a marker for each run"]
    )
    entries = [style.entry(kind.replace("\n", ", "), **look) for kind, look in looks.items()]
    entries += [
        style.entry(
            rf"$\xi_1, \xi_2$ = {order}", linestyle="", marker="o", color="0.4", fillstyle=fill
        )
        for order, fill in zip(orders, FILLS, strict=False)
    ]
    style.legend(figure, [*entries, style.entry("mean field", **style.THEORY)], columns=2)
    return figure


def _kind(cell: CellResults) -> str:
    """Number of units and law of the inputs."""
    units = cell.receptive_fields.sizes["unit"]
    return f"$K$ = {units}\n{receptive.marginal(cell)}"


def _unit(fields: xr.DataArray) -> receptive.Fields:
    """The receptive field of the first unit of the first seed."""
    return fields.isel(seed=0).values[:1]


def _draw_agreement(ax: Axes) -> None:
    """Logarithmic axes alike, and where theory and training are equal."""
    ends = [0.9, 1.2 * max(ax.dataLim.x1, ax.dataLim.y1)]
    ax.plot(ends, ends, **style.GUIDE)
    ax.set(
        xscale="log",
        yscale="log",
        xlim=ends,
        ylim=ends,
        xlabel="by mean field",
        ylabel="by training",
    )
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50) if tick < ends[1]]
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([], minor=True)
        axis.set_ticks(ticks, map(str, ticks))
