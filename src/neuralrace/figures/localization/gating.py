"""Which gates leave the least loss: overlapping ones, of those that were tried.

Loss of the least-squares weights by gating scheme, each on five samples of its own. One row is for
the gates of trained ReLU networks of the same task, frozen, after infinite time. The notes guess
that the best precision matrix would be maximally diagonal, as tilings have it. Tilings do couple no
pathways, neither in the second moment A nor in its inverse, and random half-spaces leave half of
the loss of the best tiling that was tried. Without gates nothing is learned. Equations 12, 14 and
15 of the notes agree up to rounding error; eq. 17 as printed, with products of means in the place
of second moments, leaves no loss for any gates. Rows are sorted by loss.
"""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from neuralrace.extensions.registry import Figure
from neuralrace.figures import frozen_gates, style
from neuralrace.figures.diagrams import gate_handles
from neuralrace.figures.receptive_fields import final_fields
from neuralrace.figures.sweeps import metric
from neuralrace.metrics.gates.gating_loss import sampled
from neuralrace.networks.gates.tiling import Tiling
from neuralrace.results.cells import CellResults, Results

SAMPLES = 60
"""Number of samples whose gates are drawn."""
OTHER: dict[str, Any] = {"color": style.COLOURS["gated"], "marker": "o", "markersize": 4.5}
TILING: dict[str, Any] = OTHER | {"marker": "s", "markerfacecolor": "white"}
"""Markers of tilings, of which one gate is open at a time, and of other gates."""
DERIVED: dict[str, Any] = {
    "color": style.COLOURS["relu"],
    "marker": "*",
    "markersize": 11,
    "markeredgecolor": "white",
    "markeredgewidth": 0.8,
}
"""Marker of the gates of ReLU networks."""

Gates = Float[np.ndarray, "pathway sample"]


@Figure(
    layout="abc",
    height=3.8,
    widths=(1.1, 1.0, 1.0),
    cf={"a": "eq. 16", "b": "eq. 12", "c": "sec. 3.3"},
    reads={
        "gating": {"metrics": "optimal_fresh_loss precision_diagonality"},
        "prediction": {
            "trajectory": "weight_1",
            "metrics": "frozen_limit_fresh_loss relu_fresh_loss",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Gates, and the ReLU network."""
    return [
        *gate_handles(),
        style.handle("tilings", linestyle="", **TILING),
        style.handle("other gates", linestyle="", **OTHER),
        style.handle("ReLU network itself", **frozen_gates.RELU),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Gates :math:`g_k(x)` of each scheme: pathways from top to bottom, samples from left to right.

    Samples are in the order of the first pathway that is open, so that a tiling is a staircase.
    """
    shown = [*map(_gates, _cells(results)), *map(_relu_gates, _relu(results))]
    ax.set_title("Tilings open one pathway at a time")
    names = [*_names(results), *["ReLU, at the end"] * len(_relu(results))]
    ax = style.named_rows(ax, (f"  {name}".replace(", ", ",\n") for name in names))
    rows = len(shown)
    for row, gates in enumerate(shown):
        ends = (0, SAMPLES, row + 0.42, row - 0.42)
        ax.imshow(gates, cmap="gray", vmin=0, vmax=1, extent=ends, interpolation="nearest")
        frame = {"fill": False, "edgecolor": "0.2", "linewidth": 0.5, "clip_on": False}
        ax.add_patch(Rectangle((0, row - 0.42), SAMPLES, 0.84, **frame))
    ax.set(aspect="auto", xlim=(0, SAMPLES), ylim=(rows - 0.5, -0.5), xlabel="samples")
    ax.set_xticks([1, SAMPLES])
    ax.tick_params(axis="y", length=0)
    ax.spines[["left", "bottom"]].set_visible(False)


def panel_b(results: Results, ax: Axes) -> None:
    """Loss on fresh samples by scheme, in the rows of a; the line is the ReLU network itself.

    Bars are ranges of five samples. The star is for the gates of the ReLU network at the end of its
    training, frozen, after infinite time.
    """
    ax.set_title("Of those tried, half-spaces lose least")
    shown, relu = _shown(results), _relu(results)
    ax = style.named_rows(ax, [""] * (len(shown) + len(relu)))
    for row, (cell, props) in enumerate(shown):
        style.points(ax, row, _fresh_loss(cell), across=True, **props)
    for row, cell in enumerate(relu, start=len(shown)):
        loss = metric(cell, "frozen_limit_fresh_loss", gates_from="trained")
        mean = style.points(ax, row, loss, across=True, **DERIVED)
        ax.annotate("its final gates,\nfrozen", (mean, row), (7, 0), textcoords="offset points",
                    color=DERIVED["color"], fontsize=6.5, va="center")  # fmt: skip
        frozen_gates.draw_relu(ax, metric(cell, "relu_fresh_loss"), across=True)
    for row in range(len(shown) + len(relu)):
        ax.axhline(row, color="0.92", linewidth=0.6, zorder=0)
    _logarithmic(ax.xaxis)
    ax.set(xlabel="loss on fresh samples", ylim=(len(shown) + len(relu) - 0.5, -0.5))
    ax.tick_params(axis="y", length=0)
    between = {"ha": "right", "va": "center", "transform": ax.get_yaxis_transform()}
    ax.text(0.99, 0.5, "bars: range\nof samples", color=OTHER["color"], fontsize=6.5, **between)


def panel_c(results: Results, ax: Axes) -> None:
    """Loss by the share of squared entries of the precision, A's inverse, that join two pathways.

    A single gate that is always on joins none, and is left out; for the gates of the ReLU network
    the precision was not measured, and the line is its loss.
    """
    for (cell, props), name in zip(_shown(results), _names(results), strict=True):
        if frozen_gates.gates(cell).count(cell.spec.dataset) == 1:
            continue
        share = float(cell.get("metrics", "precision_diagonality").mean("seed"))
        loss = style.points(ax, share, _fresh_loss(cell), **props)
        ax.annotate(
            name, (share, loss), (5, 0), textcoords="offset points", va="center", fontsize=6.5
        )
    for cell in _relu(results):
        frozen_gates.draw_relu(ax, metric(cell, "relu_fresh_loss"))
    _logarithmic(ax.yaxis)
    ax.set(
        xlabel="precision between pathways (0: diagonal)",
        xlim=(-0.03, 0.95),
        ylabel="loss on fresh samples",
    )
    ax.set_title("A diagonal precision is not best")


def _cells(results: Results) -> list[CellResults]:
    """Cells by scheme, that of the least loss first."""
    return sorted(results.cells("gating"), key=lambda cell: float(_fresh_loss(cell).mean()))


def _shown(results: Results) -> list[tuple[CellResults, dict[str, Any]]]:
    """Cells by scheme, with their markers."""
    return [
        (cell, TILING if isinstance(frozen_gates.gates(cell), Tiling) else OTHER)
        for cell in _cells(results)
    ]


def _names(results: Results) -> list[str]:
    """Names of the schemes."""
    return [frozen_gates.scheme_name(frozen_gates.gates(cell)) for cell in _cells(results)]


def _gates(cell: CellResults) -> Gates:
    """Gates on the first samples of a cell, with those of each pathway together."""
    x, gating = sampled(cell.spec, 0), frozen_gates.gates(cell)
    return _in_order(gating.gates(x)[:, :SAMPLES])


def _relu_gates(cell: CellResults) -> Gates:
    """Gates of a ReLU network at the end of its first run, on its first samples."""
    weights = final_fields(cell).isel(seed=0).values
    return _in_order((weights @ cell.data.x[:SAMPLES].T > 0).astype(float))


def _in_order(gates: Gates) -> Gates:
    """Samples in the order of the first pathway that is open."""
    return gates[:, np.argsort(gates.argmax(axis=0), kind="stable")]


def _fresh_loss(cell: CellResults) -> xr.DataArray:
    """Loss of the least-squares weights on fresh samples, (seed)."""
    return cell.get("metrics", "optimal_fresh_loss")


def _relu(results: Results) -> list[CellResults]:
    """ReLU networks on the same task, with any number of samples."""

    def law(cell: CellResults) -> dict[str, Any]:
        return cell.spec.dataset.model_dump(exclude={"samples", "seed"})

    task = law(results.cells("gating")[0])
    return [cell for cell in results.cells("prediction") if law(cell) == task]


def _logarithmic(axis: Axis) -> None:
    """Makes an axis logarithmic, with few ticks."""
    setter = axis.axes.set_xscale if axis is axis.axes.xaxis else axis.axes.set_yscale
    setter("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(NullLocator())
