"""What Glorot initialisation makes of the layer norms and of their imbalance.

Basu, Mukherjee and Vasudevan, corollary 2.3, have no figure of it. They state that the expected gap
of layer norms is zero (the diagonal in a), and infer it from a vanishing expected imbalance
:math:`C`. Layers of one draw have unequal norms, and the expected square of :math:`C` is positive,
for which there is a formula (b). What is equal under the entry variance that the proof writes,
:math:`1/(n_{l-1} n_l)`, are the expected squared norms; under that of Glorot and Bengio,
:math:`2/(n_{l-1}+n_l)`, layers of different shape differ in these too. Nor is :math:`C` small
against the matrices that it is the difference of (c).
"""

from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.layers import VARIANCES, networks, unit_scale
from neuralrace.figures.sweeps import layer_widths
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.balance import expected_imbalance, glorot_squared_norm

COLOURS = {"product": style.categorical(0), "standard": style.categorical(1)}
NAMES = {"product": "$1/(n_{l-1}n_l)$, as printed", "standard": "$2/(n_{l-1}+n_l)$, as cited"}
"""Entry variance by its name in the initialiser."""
EXPECTED: dict[str, Any] = {"color": "black", "marker": "+", "markersize": 8, "linestyle": ""}
EXPECTED |= {"zorder": 4}
MEAN: dict[str, Any] = {"marker": "^", "markersize": 5, "linestyle": ""}


@Figure(
    layout="abc",
    height=2.7,
    widths=(1.1, 1.2, 0.8),
    cf={"a": "cor. 2.3"},
    reads={
        "glorot_moments": {
            "metrics": "initial_imbalance_squared initial_norm_gap initial_squared_norm",
        },
        "growth growth_standard": {
            "metrics": "initial_relative_imbalance",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Entry variances."""
    return [
        style.handle(f"variance {NAMES[variance]}", color=COLOURS[variance], linewidth=4)
        for variance, _ in _cells(results)
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Norms of both layers in 4,000 draws of either variance, and the root of the expected squared
    norms (crosses). The gap is the mean distance of the two norms; the paper expects all draws on
    the diagonal.
    """
    for variance, cell in _cells(results):
        first, second = (
            cell.get("metrics", "initial_squared_norm").isel(init_scale=0, layer=layer) ** 0.5
            for layer in (0, 1)
        )
        dots: dict[str, Any] = {"color": COLOURS[variance], "alpha": 0.3, "markeredgewidth": 0}
        ax.plot(first, second, ".", markersize=1.6, rasterized=True, **dots)
        below, above = (value**0.5 for value in _expected(cell)[:2])
        ax.plot([below], [above], **EXPECTED)
        gap = float(_first(cell, "initial_norm_gap").mean())
        # Above the cloud of the smaller norms, as there is no room below.
        left = variance == "product"
        x, y = (0.08, float(second.max()) + 0.05) if left else (below, float(second.min()) - 0.05)
        place: dict[str, Any] = (
            {"ha": "left", "va": "bottom"} if left else {"ha": "center", "va": "top"}
        )
        text = f"mean $||W_1| - |W_2||$\n= {gap:.2f}"
        ax.text(x, y, text, color=COLOURS[variance], **place)
    high = max(ax.get_xlim()[1], ax.get_ylim()[1])
    ax.plot([0, high], [0, high], **style.PAPER)
    ax.set(xlim=(0, high), ylim=(0, high), xlabel="$|W_1|$", ylabel="$|W_2|$")
    names = {"root of expected square": EXPECTED, "Basu et al.: equal": style.PAPER}
    ax.legend(handles=[style.handle(name, **props) for name, props in names.items()])
    ax.set_title("Norms of a draw are unequal")


def panel_b(results: Results, ax: Axes) -> None:
    """Squared norm of the imbalance of the same draws, its mean (triangles), and the formula for
    it (dashed).
    """
    squares = {cell: _first(cell, "initial_imbalance_squared") for _, cell in _cells(results)}
    ends = [float(end) for values in squares.values() for end in (values.min(), values.max())]
    bins = np.geomspace(min(ends), max(ends), 60).tolist()
    for variance, cell in _cells(results):
        values = squares[cell].dropna("seed").values
        ax.hist(values, bins, color=COLOURS[variance], alpha=0.55)
        (first, second, *_), (below, mid, above, *_) = _expected(cell), layer_widths(cell)
        ax.axvline(expected_imbalance(first, second, below, mid, above), **style.THEORY)
        mean = MEAN | {"color": COLOURS[variance], "clip_on": False, "zorder": 5}
        ax.plot([float(values.mean())], [0], **mean)
    ax.set(
        xscale="log",
        xlabel=r"$|C|_F^2$,  $C = W_2^\top W_2 - W_1W_1^\top$",
        ylabel="draws",
        ylim=(0, 1.3 * ax.get_ylim()[1]),
    )
    ax.legend(
        handles=[
            style.handle("mean", color="0.3", **MEAN),
            style.handle("formula", **style.THEORY),
        ],
        loc="upper center",
    )
    ax.set_title("The mean of $|C|_F^2$ follows a formula")


def panel_c(results: Results, ax: Axes) -> None:
    r"""Norm of :math:`C` over the sum of those of :math:`W_2^\top W_2` and :math:`W_1W_1^\top`, in
    60 starts of the network with two layers, with the median; the paper expects it near zero.
    """
    ax.set(
        ylim=(-0.02, 1),
        xlim=(-0.6, 1.6),
    )
    ax.set_ylabel(r"$|C|_F\,/\,(|W_2^\top W_2|_F + |W_1W_1^\top|_F)$")
    for column, (experiment, variance) in enumerate(zip(VARIANCES, COLOURS, strict=True)):
        cell = networks(results, experiment)[0]
        share = (
            cell.get("metrics", "initial_relative_imbalance").isel(unit_scale(cell)).isel(pair=0)
        )
        style.single_runs(ax, column, share, 0.3, color=COLOURS[variance], marker="o", markersize=2)
    ax.axhline(0, **style.PAPER)
    ax.text(0.5, 0.02, "Basu et al.", color=style.PAPER["color"], ha="center")
    style.note(ax, "bars: median\nof 60 starts", "upper left")
    ax.set_xticks(range(2), ["printed", "cited"])
    ax.set_xlabel("entry variance")
    ax.set_title("$C$ is not small")


def _first(cell: CellResults, metric: str) -> xr.DataArray:
    """A metric of the first pair of layers, (seed)."""
    return cell.get("metrics", metric).isel(init_scale=0, pair=0)


def _cells(results: Results) -> list[tuple[str, CellResults]]:
    """Cells with their entry variance, the printed one first."""
    by_variance = {cell.spec.init.variance: cell for cell in results.cells("glorot_moments")}
    return [(name, by_variance[name]) for name in COLOURS if name in by_variance]


def _expected(cell: CellResults) -> list[float]:
    """Expected squared norm of each layer."""
    scale = float(cell.metrics["init_scale"][0])
    standard = cell.spec.init.variance == "standard"
    pairs = pairwise(layer_widths(cell))
    return [scale**2 * (glorot_squared_norm(*pair) if standard else 1.0) for pair in pairs]
