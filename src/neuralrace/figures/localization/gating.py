"""Which gates leave the least loss: overlapping ones, of those that were tried.

Loss of the least-squares weights by gating scheme, each on samples of its own; one row is for the
gates of trained ReLU networks of the same task with these frozen, after infinite time. The notes
guess that the best precision matrix would be maximally diagonal, as tilings have it. Tilings do
couple no pathways, and random half-spaces leave half of the loss of the best tiling that was tried.
Equations 12, 14 and 15 of the notes agree; eq. 17 as printed, with products of means in the place
of second moments, is the same for all gates.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from neuralrace.extensions.registry import Figure
from neuralrace.figures import frozen_gates, style
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results

EQUATION = {"color": "black", "marker": "x", "markersize": 3.5}
"""Marker of closed forms."""
DERIVED = {"color": style.categorical(3), "marker": "*", "markersize": 5}


@Figure(
    layout="ab;cd",
    height=4.0,
    heights=(1.15, 1.0),
    cf={"a": "eq. 12", "b": "eqs. 15, 17", "c": "sec. 3.3", "d": "sec. 3.3"},
    reads={
        "gating": {
            "metrics": (
                "equation_loss optimal_fresh_loss optimal_loss precision_diagonality "
                "second_moment_diagonality"
            ),
        },
        "prediction": {
            "metrics": "frozen_limit_fresh_loss frozen_limit_loss relu_fresh_loss",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Samples, and the ReLU network."""
    return [
        style.handle("fresh samples", linestyle="", color="0.3", marker="o"),
        style.handle("the sample of the fit", linestyle="", color="0.3", marker="|"),
        style.handle("ReLU network, fresh samples", **frozen_gates.RELU),
        style.handle("eqs. 14 and 15", linestyle="", **EQUATION),
        style.handle("notes, eq. 17 as printed", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Least loss by scheme and of the gates of ReLU networks; the line is these networks."""
    shown, relu = _shown(results), _relu(results)
    losses = [float(cell.get("metrics", "optimal_fresh_loss").mean("seed")) for cell, _ in shown]
    least = int(np.nanargmin(losses))
    ax.set_title(f"Least: {losses[least]:.3f}, by {_names(results)[least]}")
    ax = style.named_rows(ax, [*_names(results), *["of ReLU, at the end"] * len(relu)])
    rows: list[tuple[xr.DataArray, xr.DataArray, dict[str, Any]]] = [
        (cell.get("metrics", "optimal_loss"), cell.get("metrics", "optimal_fresh_loss"), props)
        for cell, props in shown
    ]
    for cell in relu:
        fit, fresh = (
            metric(cell, f"frozen_limit_{loss}", gates_from="trained")
            for loss in ("loss", "fresh_loss")
        )
        rows.append((fit, fresh, DERIVED))
        frozen_gates.draw_relu(ax, metric(cell, "relu_fresh_loss"), across=True)
    for row, (fit, fresh, props) in enumerate(rows):
        style.points(ax, row, fit, across=True, **props | {"marker": "|", "markersize": 5})
        style.points(ax, row, fresh, across=True, **props)
    _logarithmic(ax.xaxis)
    ax.set_xlabel("least loss")


def panel_b(results: Results, ax: Axes) -> None:
    """Mean-squared error by equation: of the residuals (12, coloured), and from moments."""
    printed = []
    rows = style.named_rows(ax, _names(results))
    for row, (cell, props) in enumerate(_shown(results)):
        loss = cell.get("metrics", "equation_loss")
        style.points(rows, row, loss.sel(equation="12"), across=True, **props)
        for equation in ("14", "15"):
            style.points(rows, row, loss.sel(equation=equation), across=True, **EQUATION)
        printed.append(float(loss.sel(equation="17").mean("seed")))
    rows.plot(printed, range(len(printed)), **style.PAPER)
    rows.set(xlabel="mean-squared error", xlim=(-0.03, None))
    largest = np.abs(printed).max()
    ax.set_title(f"Eq. 17 as printed: {largest:.2f} or less, for all gates")


def panel_c(results: Results, ax: Axes) -> None:
    """Loss by the share of squared entries of A that couple pathways; markers are those of a."""
    share = _coupling(results, ax, "second_moment_diagonality")
    ax.set_title(f"Least loss at {share:.2f} in $A$")


def panel_d(results: Results, ax: Axes) -> None:
    """The same of its inverse, the precision; tilings couple none."""
    share = _coupling(results, ax, "precision_diagonality")
    ax.set_title(f"Least loss at {share:.2f} in the precision $A^+$")


def _shown(results: Results) -> list[tuple[CellResults, dict[str, Any]]]:
    """Cells by scheme, with their markers."""
    return style.styled(results.cells("gating"))


def _names(results: Results) -> list[str]:
    """Names of the schemes."""
    return [frozen_gates.scheme_name(frozen_gates.gates(cell)) for cell in results.cells("gating")]


def _relu(results: Results) -> list[CellResults]:
    """ReLU networks on the same task, with any number of samples."""

    def law(cell: CellResults) -> dict[str, Any]:
        return cell.spec.dataset.model_dump(exclude={"samples", "seed"})

    task = law(results.cells("gating")[0])
    return [cell for cell in results.cells("prediction") if law(cell) == task]


def _coupling(results: Results, ax: Axes, name: str) -> float:
    """Draws loss on fresh samples against a share of entries; returns that of the least loss."""
    points = []
    for cell, props in _shown(results):
        share = float(cell.get("metrics", name).mean("seed"))
        loss = style.points(ax, share, cell.get("metrics", "optimal_fresh_loss"), **props)
        points.append((loss, share))
    _logarithmic(ax.yaxis)
    ax.set(xlabel="share of squared entries between pathways", xlim=(-0.05, 1))
    ax.set_ylabel("loss on fresh samples")
    return min(points)[1]


def _logarithmic(axis: Axis) -> None:
    """Makes an axis logarithmic, with few ticks."""
    setter = axis.axes.set_xscale if axis is axis.axes.xaxis else axis.axes.set_yscale
    setter("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(NullLocator())
