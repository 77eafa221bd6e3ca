"""Which gates leave the least loss (eqs. 12 to 17)."""

from collections.abc import Sequence
from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from neuralrace.figures import frozen, gated, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

DERIVED = {"color": style.distinct(3), "marker": "*", "markersize": 5}
COUPLING = {
    "second_moment_diagonality": "coupling in $A$",
    "precision_diagonality": "coupling in $A^+$",
}
"""Shares of the second moment of gated inputs, and of its inverse, that couple pathways."""


@Figure(
    reads={
        "gating": {
            "metrics": (
                "optimal_fresh_loss optimal_loss precision_diagonality second_moment_diagonality"
            ),
        },
        "prediction": {
            "metrics": "frozen_limit_fresh_loss frozen_limit_loss relu_fresh_loss",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Least-squares loss by gating scheme, and against how much pathways are coupled.

    Beside the schemes stand the gates of trained ReLU networks of the same task, and these
    networks.
    """
    cells = results.cells("gating")
    relu = [cell for cell in results.cells("prediction") if _task(cell) == _task(cells[0])]
    looks = [
        {"color": colour, "marker": style.marker(index)}
        for index, colour in enumerate(style.ordered(len(cells)))
    ]
    figure = Canvas(figsize=(style.COLUMN, 4.6))
    upper, lower = figure.add_gridspec(2, 1, height_ratios=(1.5, 1))
    losses = figure.add_subplot(upper)
    left, right = lower.subgridspec(1, 2)
    coupled = [figure.add_subplot(left)]
    coupled.append(figure.add_subplot(right, sharey=coupled[0]))
    coupled[1].tick_params(labelleft=False)
    _draw_losses(losses, cells, looks, relu)
    for ax, metric in zip(coupled, COUPLING, strict=True):
        for cell, look in zip(cells, looks, strict=True):
            share = float(cell.get("metrics", metric).mean("seed"))
            style.points(ax, share, cell.get("metrics", "optimal_fresh_loss"), **look)
        ax.set(xlabel="share between pathways", xlim=(-0.05, 1))
    _logarithmic(coupled[0].yaxis)
    coupled[0].set_ylabel("loss on fresh samples")
    titles = ["least squares by gates", *COUPLING.values()]
    style.letters([losses, *coupled], titles)
    entries = [
        style.entry("fresh samples", linestyle="", color="0.3", marker="o"),
        style.entry("the sample of the fit", linestyle="", color="0.3", marker="|"),
        style.entry("ReLU network, fresh samples", **frozen.RELU),
    ]
    style.legend(figure, entries, columns=2)
    return figure


def _task(cell: CellResults) -> dict[str, Any]:
    """The law of the samples, however many there are."""
    return cell.spec.dataset.model_dump(exclude={"samples", "seed"})


def _draw_losses(
    ax: Axes,
    cells: Sequence[CellResults],
    looks: Sequence[dict[str, Any]],
    relu: Sequence[CellResults],
) -> None:
    """Losses in rows, one for each scheme and for the gates of each ReLU network."""
    names = [frozen.scheme(frozen.gates(cell)) for cell in cells]
    rows: list[tuple[xr.DataArray, xr.DataArray, dict[str, Any]]] = [
        (
            cell.get("metrics", "optimal_loss"),
            cell.get("metrics", "optimal_fresh_loss"),
            look,
        )
        for cell, look in zip(cells, looks, strict=True)
    ]
    for cell in relu:
        names.append("of ReLU, at the end")
        fit, fresh = (
            gated.smallest(cell.get("metrics", f"frozen_limit_{loss}", gates_from="trained"))
            for loss in ("loss", "fresh_loss")
        )
        rows.append((fit, fresh, DERIVED))
        own = gated.smallest(cell.get("metrics", "relu_fresh_loss"))
        frozen.draw_relu(ax, own, across=True)
    for row, (fit, fresh, look) in enumerate(rows):
        style.points(ax, row, fit, across=True, **look | {"marker": "|", "markersize": 5})
        style.points(ax, row, fresh, across=True, **look)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlabel("loss")
    _logarithmic(ax.xaxis)


def _logarithmic(axis: Axis) -> None:
    """A logarithmic scale with few ticks."""
    setter = axis.axes.set_xscale if axis is axis.axes.xaxis else axis.axes.set_yscale
    setter("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(NullLocator())
