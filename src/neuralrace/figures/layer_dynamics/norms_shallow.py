"""Layer norms of a linear network with two layers, and the bound on their growth.

Basu, Mukherjee and Vasudevan, fig. 1 (i), in its colours: both layers grow together, the product of
the weights comes to the target, and the product of the norms stays below the bound of eq. 17 (a).
The paper does not print the scale of the start, the law of the targets or the learning rate. What
it reads off is not all found here: layers come closer together as they grow (b), as the difference
of their squares is what gradient flow conserves, and the bound is far above the product of norms
once they grow. Of the constants of the bound, one is as read, and one is smaller (c).
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.layers import label, line, networks
from neuralrace.results.cells import Results
from neuralrace.theory.growth_bound import QUOTED_KAPPA1, QUOTED_KAPPA2

FIRST, SECOND, PRODUCT, NORMS, TARGET = (style.categorical(index) for index in (0, 1, 2, 3, 4))
"""Colours of the paper: norms of both layers, of their product, their product, and the target."""
TICKS = (0.5, 1, 2, 5, 10, 20)
"""Ticks of the norms."""
LEAST: dict[str, Any] = {"marker": "o", "markersize": 4, "clip_on": False, "zorder": 4}
"""Dot at the least of a curve."""


@Figure(
    layout="aab;aac",
    height=4.0,
    cf={"a": "Fig. 1 (i)", "c": "sec. 4"},
    reads={
        "growth": {
            "trajectory": "imbalance_trace layer_norm",
            "theory": "layer_norm",
            "metrics": "layer_strength norm_product product_norm quoted_strength_bound",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Simulation, theory and what the paper reads."""
    return [
        style.handle("simulation", color="0.4", **style.SIMULATION),
        style.BAND,
        style.handle("theory", **style.THEORY),
        style.handle("Basu et al., from Fig. 1", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Frobenius norms of both layers, of their product, and the product of their norms, in the run
    whose layers start as far apart as in the median one; dashed is the bound of eq. 17, with the
    constants that the paper quotes. The axis is logarithmic, as the bound is far above the norms.
    """
    cell = networks(results, "growth")[0]
    time, norms = cell.flow_time, cell.get("trajectory", "layer_norm").isel(init_scale=0)
    run = {"seed": style.median_seed(_gap(norms).isel(time=0))}
    product, factors, bound = (
        cell.get("metrics", name).isel(init_scale=0).sel(run)
        for name in ("product_norm", "norm_product", "quoted_strength_bound")
    )
    end = _end(norms, time)
    last = {"time": int(np.searchsorted(time.values, end)) - 1}
    first, second = (norms.sel(run | {"layer": layer}) for layer in (1, 2))
    target = float(np.linalg.norm(cell.data.sigma_yx))
    ax.axhline(target, color=TARGET, linewidth=0.8)
    ax.plot(time, bound, **style.THEORY)
    ends: list[tuple[float, str, Any]] = [
        (target, r"$|\Sigma^{yx}|$", TARGET),
        (float(bound.isel(last)), "bound,\neq. 17", "black"),
    ]
    for curve, colour, name, width in (
        (second, SECOND, "$|W_2|$ (wide)", 4.5),
        (first, FIRST, "$|W_1|$ (thin)", 1.5),
        (product, PRODUCT, "$|W_2W_1|$", 3),
        (factors, NORMS, "$|W_1||W_2|$", 3),
    ):
        ax.plot(time, curve, **line(colour, width))
        ends.append((float(curve.isel(last)), name, colour))
    ax.set(xlabel=style.FLOW_TIME, ylabel="Frobenius norm", xlim=(0, end))
    ax.set(yscale="log", ylim=(None, 1.4 * max(target, float(bound.max()))))
    ax.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    ax.minorticks_off()
    label_ends(ax, ends)
    ax.set_title("Both layers grow together, below the bound")


def panel_b(results: Results, ax: Axes) -> None:
    r"""Gap of the two norms over that at the start, mean and range over 60 runs. Dashed is
    :math:`|\mathrm{tr}\,C|` of the start over the sum of the norms under gradient flow. The paper
    calls the layers equidistant (dotted).
    """
    cell = networks(results, "growth")[0]
    time, norms = cell.flow_time, cell.get("trajectory", "layer_norm").isel(init_scale=0)
    gap = _gap(norms)
    trace = abs(cell.get("trajectory", "imbalance_trace").isel(init_scale=0, time=0, pair=0))
    flow = cell.get("theory", "layer_norm", solution="flow").isel(init_scale=0)
    total = flow.sum("layer", skipna=False)
    start = gap.isel(time=0)
    style.over_seeds(ax, time, gap / start, color="0.4")
    ax.plot(time, (trace / total / start).mean("seed"), **style.THEORY)
    ax.axhline(1, **style.PAPER)
    ax.set(xlabel=style.FLOW_TIME, ylabel="gap $||W_2| - |W_1||$ / start", ylim=(0, None))
    ax.set_xlim(0, _end(norms, time))
    label(ax, _end(norms, time), 1, "Basu et al.", "0.35")
    ax.set_title("They mostly come closer as they grow")


def panel_c(results: Results, ax: Axes) -> None:
    r"""What the constants of eq. 17 are the least of: :math:`|\Sigma^{yx}|/|P|` for
    :math:`\kappa_1` and :math:`|P|/U` for :math:`\kappa_2`, with the product :math:`P = W_2W_1` and
    the strength :math:`U`, the square of the largest norm and the gap; mean and range over 60 runs.
    Dots are the least of the means; dotted are the values that the paper reads.
    """
    cell = networks(results, "growth")[0]
    time, target = cell.flow_time, np.linalg.norm(cell.data.sigma_yx)
    product = cell.get("metrics", "product_norm").isel(init_scale=0)
    strength = cell.get("metrics", "layer_strength").isel(init_scale=0)
    end = _end(product, time)
    for ratio, colour, name, quoted in (
        (target / product, "0.2", r"$|\Sigma^{yx}|/|P|$", QUOTED_KAPPA1),
        (product / strength, "0.5", "$|P|/U$", QUOTED_KAPPA2),
    ):
        props: dict[str, Any] = {"color": colour}
        style.over_seeds(ax, time, ratio, **props)
        ax.axhline(quoted, **style.PAPER)
        mean = ratio.where(time <= end).mean("seed")
        least = mean.isel(time=int(mean.argmin("time")))
        at = (float(least["flow_time"]), float(least))
        ax.plot(*at, color=colour, **LEAST)
        up = quoted == QUOTED_KAPPA1
        place = {"ha": "right", "va": "bottom"} if up else {"ha": "left", "va": "top"}
        shift = (-2, 5) if up else (5, -3)
        constant = rf"$\kappa_{1 if up else 2}$, least: {at[1]:.2f}"
        style.note_at(ax, constant, at, shift, color=colour, **place)
        beside, shift = (0.15 * end, (8, 3)) if up else (end, (-2, -8))
        place["ha"] = "left" if up else "right"
        height = float(np.interp(beside, time, ratio.mean("seed")))
        style.note_at(ax, name, (beside, height), shift, color=colour, **place)
        label(ax, end, quoted, f"Basu et al.: {quoted:g}", "0.35", 3 if up else -3)
    style.note(ax, "$P = W_2W_1$, $U$: strength", "lower right")
    ax.set(xlabel=style.FLOW_TIME, ylabel="ratio", yscale="log", xlim=(0, end), ylim=(0.02, 30))
    ax.set_title(r"$\kappa_2$ is smaller than Basu et al. read")


def _gap(norms: xr.DataArray) -> xr.DataArray:
    return abs(norms.sel(layer=2) - norms.sel(layer=1))


def _end(curve: xr.DataArray, time: xr.DataArray) -> float:
    """The time at which the mean curve has settled."""
    return style.settling_time(curve.mean("seed"), time)
