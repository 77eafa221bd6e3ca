"""Layer norms, their product and its bound in a linear network with two layers.

Basu, Mukherjee and Vasudevan, fig. 1 (i), in our colours: both layers grow together, the product of
the weights comes to the target, and the product of their norms stays below the bound of eq. 17. The
paper does not print the scale of the start, the law of the targets or the learning rate. What it
reads off is not all found here: layers come closer together as they grow (b), as the difference of
their squares is what gradient flow conserves, and the bound with the quoted constants holds, but
not closely (c), as the least ratio of the product to the strength is set by the start (d).
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.growth_bound import QUOTED_KAPPA1, QUOTED_KAPPA2

LAYERS = dict(zip((1, 2), style.sequential(2), strict=True))
PRODUCT: dict[str, Any] = {"color": style.categorical(2)}
NORMS: dict[str, Any] = {"color": style.categorical(3), "linestyle": style.LINES[3]}
GAP: dict[str, Any] = {"color": style.categorical(0)}


@Figure(
    layout="aaabb;cccdd",
    height=4.3,
    cf={"a": "Fig. 1 (i)", "c": "eq. 17", "d": "sec. 4"},
    reads={
        "growth": {
            "trajectory": "imbalance_trace layer_norm",
            "theory": "layer_norm",
            "metrics": (
                "kappa1_as_written kappa2 layer_strength norm_product "
                "norm_product_over_quoted_bound product_norm quoted_strength_bound strength_bound"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Norms, bounds and theory."""
    return [
        *(style.handle(f"$|W_{layer}|$", color=colour) for layer, colour in LAYERS.items()),
        style.handle("$|W_2W_1|$", **PRODUCT),
        style.handle("$|W_1||W_2|$", **NORMS),
        style.handle(r"$|\Sigma^{yx}|$", **style.GUIDE),
        style.BAND,
        style.handle("theory", **style.THEORY),
        style.handle("Basu et al.", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Frobenius norms of both layers, of their product, and the product of their norms, in the run
    whose layers start as far apart as in the median one; growth in the title is a mean over seeds.
    The bound that the paper draws (dotted) leaves at the top; c shows all of it.
    """
    cell = _cell(results)
    time, norms = cell.flow_time, cell.get("trajectory", "layer_norm").isel(init_scale=0)
    run = {"seed": style.median_seed(_gap(norms).isel(time=0))}
    for layer, colour in LAYERS.items():
        ax.plot(time, norms.sel(run | {"layer": layer}), color=colour, linewidth=1.2)
    product, factors, quoted = (
        cell.get("metrics", name).isel(init_scale=0)
        for name in ("product_norm", "norm_product", "quoted_strength_bound")
    )
    ax.plot(time, product.sel(run), **PRODUCT)
    ax.plot(time, factors.sel(run), **NORMS)
    target = float(np.linalg.norm(cell.data.sigma_yx))
    ax.axhline(target, **style.GUIDE)
    ax.plot(time, quoted.sel(run), **style.PAPER)
    top = 1.3 * float(factors.sel(run).max())
    ax.set(xlabel=style.FLOW_TIME, ylabel="Frobenius norm", xlim=(0, _end(norms, time)))
    ax.set_ylim(0, top if np.isfinite(top) else None)
    growth = norms.isel(time=-1) - norms.isel(time=0)
    by = " and ".join(f"{float(growth.sel(layer=layer).mean()):.2f}" for layer in LAYERS)
    share = float((product.isel(time=-1) / target).mean())
    ax.set_title(f"Norms grow by {by}, their product to {share:.0%} of the target")


def panel_b(results: Results, ax: Axes) -> None:
    r"""Gap of the two norms over that at the start. Dashed is :math:`|\mathrm{tr}\,C|` of the start
    over the sum of the norms under gradient flow. The paper calls the layers equidistant (dotted).
    """
    cell = _cell(results)
    time, norms = cell.flow_time, cell.get("trajectory", "layer_norm").isel(init_scale=0)
    gap = _gap(norms)
    trace = abs(cell.get("trajectory", "imbalance_trace").isel(init_scale=0, time=0, pair=0))
    total = cell.get("theory", "layer_norm").isel(init_scale=0).sum("layer", skipna=False)
    start = gap.isel(time=0)
    style.over_seeds(ax, time, gap / start, **GAP)
    ax.plot(time, (trace / total / start).mean("seed"), **style.THEORY)
    ax.axhline(1, **style.PAPER)
    ax.set(xlabel=style.FLOW_TIME, ylabel="gap of norms over its start", ylim=(0, None))
    ax.set_xlim(0, _end(norms, time))
    end = float((gap.isel(time=-1) / start).mean())
    ax.set_title(f"Their gap ends at {end:.0%} of its start")


def panel_c(results: Results, ax: Axes) -> None:
    """The product of the norms and its bounds: with the constants of the run (dashed), and with
    those that the paper quotes (dotted), which it calls close.
    """
    cell = _cell(results)
    time = cell.flow_time
    factors, bound, quoted, over = (
        cell.get("metrics", name).isel(init_scale=0)
        for name in (
            "norm_product",
            "strength_bound",
            "quoted_strength_bound",
            "norm_product_over_quoted_bound",
        )
    )
    style.over_seeds(ax, time, factors, **NORMS)
    ax.plot(time, bound.mean("seed"), **style.THEORY)
    ax.plot(time, quoted.mean("seed"), **style.PAPER)
    ax.set(xlabel=style.FLOW_TIME, ylabel="product of norms", yscale="log")
    ax.set_xlim(0, _end(factors, time))
    end = float((factors / quoted).isel(time=-1).mean())
    ax.set_title(f"At most {float(over.max()):.0%} of the quoted bound, {end:.0%} at the end")


def panel_d(results: Results, ax: Axes) -> None:
    r"""What the constants of eq. 17 are the least of: :math:`|\Sigma|/|P|` (broken) for
    :math:`\kappa_1` and :math:`|P|/U` (full) for :math:`\kappa_2`, with the product :math:`P =
    W_2W_1` and the strength :math:`U`; dotted are the values that the paper reads.
    """
    cell = _cell(results)
    time, target = cell.flow_time, np.linalg.norm(cell.data.sigma_yx)
    product = cell.get("metrics", "product_norm").isel(init_scale=0)
    strength = cell.get("metrics", "layer_strength").isel(init_scale=0)
    ratio: dict[str, Any] = {"color": style.categorical(4), "linestyle": style.LINES[1]}
    style.over_seeds(ax, time, target / product, **ratio, label=r"$|\Sigma|/|P|$")
    style.over_seeds(ax, time, product / strength, **PRODUCT, label="$|P|/U$")
    for value in (QUOTED_KAPPA1, QUOTED_KAPPA2):
        ax.axhline(value, **style.PAPER)
    ax.legend(loc="upper right")
    ax.set(xlabel=style.FLOW_TIME, ylabel="ratio", yscale="log", xlim=(0, _end(product, time)))
    least = [
        float(cell.get("metrics", name).isel(init_scale=0).mean())
        for name in ("kappa1_as_written", "kappa2")
    ]
    ax.set_title(f"Least {least[0]:.2f}, {least[1]:.2f}; read {QUOTED_KAPPA1:g}, {QUOTED_KAPPA2:g}")


def _cell(results: Results) -> CellResults:
    """The network with the fewest layers."""
    return min(results.cells("growth"), key=lambda cell: len(cell.spec.layered.hidden))


def _gap(norms: xr.DataArray) -> xr.DataArray:
    return abs(norms.sel(layer=2) - norms.sel(layer=1))


def _end(curve: xr.DataArray, time: xr.DataArray) -> float:
    """The time at which the mean curve has settled."""
    return style.settling_time(curve.mean("seed"), time)
