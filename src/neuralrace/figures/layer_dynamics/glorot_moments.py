"""What Glorot initialisation makes of the layer norms and of their imbalance.

Basu, Mukherjee and Vasudevan, corollary 2.3, have no figure of it. They state that the expected gap
of layer norms is zero, and infer it from a vanishing expected imbalance :math:`C`. The gap of a
draw is positive (a), and so is the expected square of :math:`C` (b), for which there is a formula.
What vanishes with the entry variance that the proof writes, :math:`1/(n_{l-1} n_l)`, is the
difference of the expected squared norms; with that of Glorot and Bengio, :math:`2/(n_{l-1}+n_l)`,
layers of different shape differ in these too (c). Nor is :math:`C` small against the matrices that
it is the difference of (d).
"""

from itertools import pairwise
from typing import Any

import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.sweeps import layer_widths
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.balance import expected_imbalance, glorot_squared_norm

STYLES = {
    "product": {"color": style.categorical(0), "marker": "o"},
    "standard": {"color": style.categorical(1), "marker": "s"},
}
NAMES = {"product": "$1/(n_{l-1}n_l)$", "standard": "$2/(n_{l-1}+n_l)$"}
"""Entry variance by its name in the initialiser."""


@Figure(
    layout="abcd",
    height=2.4,
    cf={"a": "cor. 2.3"},
    reads={
        "glorot_moments": {
            "metrics": "initial_imbalance_squared initial_norm_gap initial_squared_norm",
        },
        "growth": {
            "metrics": "initial_relative_imbalance",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Entry variances and expectations."""
    return [
        *(
            style.handle(f"variance {NAMES[cell.spec.init.variance]}", **_props(cell))
            for cell in _cells(results)
        ),
        style.handle("expected", **style.THEORY),
        style.handle("Basu et al.: expected", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Gap between the norms of the first two layers over draws of the printed variance, and its
    mean (full line).
    """
    gap = _first(_printed(results), "initial_norm_gap")
    _spread(ax, gap, _props(_printed(results))["color"])
    ax.axvline(0, **style.PAPER)
    ax.set(xlabel=r"gap of norms $||W_2|-|W_1||$")
    ax.set_title(f"Gap {float(gap.mean()):.2f} on average")


def panel_b(results: Results, ax: Axes) -> None:
    """Squared norm of the imbalance over the same draws, its mean, and the formula for it."""
    cell = _printed(results)
    squares = _first(cell, "initial_imbalance_squared")
    (first, second, *_), (below, mid, above, *_) = _expected(cell), layer_widths(cell)
    expected = expected_imbalance(first, second, below, mid, above)
    _spread(ax, squares, _props(cell)["color"])
    ax.axvline(expected, **style.THEORY)
    ax.axvline(0, **style.PAPER)
    ax.set(xlabel="$|C|_F^2$")
    ax.set_title(f"Mean {float(squares.mean()):.3f}, formula {expected:.3f}")


def panel_c(results: Results, ax: Axes) -> None:
    """Squared norms of the layers at both entry variances; markers are means over draws, bars their
    ranges, and dashes the expectation.
    """
    cells = _cells(results)
    for index, cell in enumerate(cells):
        squares = cell.get("metrics", "initial_squared_norm").isel(init_scale=0)
        for layer, value in zip(squares["layer"].values, _expected(cell), strict=True):
            at = layer + 0.24 * (index - (len(cells) - 1) / 2)
            style.points(ax, at, squares.sel(layer=layer), **_props(cell))
            ax.plot([at - 0.1, at + 0.1], [value, value], **style.THEORY)
    layers = squares["layer"].values
    ax.set(xlabel="layer", ylabel="$|W|_F^2$", ylim=(0, None), xticks=layers)
    ax.set_xlim(layers[0] - 0.5, layers[-1] + 0.5)
    ratios = [_expected(cell)[0] / _expected(cell)[1] for cell in cells]
    ax.set_title("First over second: " + ", ".join(f"{ratio:.2g}" for ratio in ratios))


def panel_d(results: Results, ax: Axes) -> None:
    r"""Norm of :math:`C` over the sum of those of :math:`W_2^\top W_2` and :math:`W_1W_1^\top`,
    over starts of the network with two layers; the paper expects it near zero.
    """
    cell = min(results.cells("growth"), key=lambda cell: len(cell.spec.layered.hidden))
    share = _first(cell, "initial_relative_imbalance")
    _spread(ax, share, _props(cell)["color"])
    ax.axvline(0, **style.PAPER)
    ax.set(xlabel="$|C|_F$ over the norms")
    ax.set_title(f"$C$ is {float(share.mean()):.0%} of its parts")


def _spread(ax: Axes, values: xr.DataArray, colour: tuple[float, float, float]) -> None:
    """Draws a histogram, and the mean as a line."""
    values = values.dropna("seed")
    sns.histplot(values.values, stat="density", color=colour, alpha=0.45, linewidth=0, ax=ax)
    ax.axvline(float(values.mean()) if values.size else np.nan, color=colour)
    ax.set_ylabel("density")


def _first(cell: CellResults, metric: str) -> xr.DataArray:
    """A metric of the first pair of layers, (seed)."""
    return cell.get("metrics", metric).isel(init_scale=0, pair=0)


def _cells(results: Results) -> list[CellResults]:
    """Cells by entry variance, the printed one first."""
    by_variance = {cell.spec.init.variance: cell for cell in results.cells("glorot_moments")}
    return [by_variance[variance] for variance in STYLES if variance in by_variance]


def _printed(results: Results) -> CellResults:
    return _cells(results)[0]


def _props(cell: CellResults) -> dict[str, Any]:
    return STYLES[cell.spec.init.variance]


def _expected(cell: CellResults) -> list[float]:
    """Expected squared norm of each layer."""
    scale = float(cell.metrics["init_scale"][0])
    standard = cell.spec.init.variance == "standard"
    pairs = pairwise(layer_widths(cell))
    return [scale**2 * (glorot_squared_norm(*pair) if standard else 1.0) for pair in pairs]
