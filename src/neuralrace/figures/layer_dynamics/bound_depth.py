"""What depth does to the growth bound, and to growth.

Basu, Mukherjee and Vasudevan, fig. 1 (iii), draw the bound of eq. 17 at two, three and four layers,
all from the same layer norms and with the constants that they read off the network with two. The
deeper the bound, the sharper it rises, and from the start that they print the sooner (a); from
smaller weights it waits longer the deeper it is (c). Networks are not their bound: deeper ones grow
faster once they do, but come to the target later (b, e). Nor do the constants of two layers bound
four, which the paper does not say; those that are computed from a run bound it at every depth (d).
Lines are of one start or run, the median one. The paper does not print how large the weights are at
the start, beyond a factor; here it is 1.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.growth_bound import (
    QUOTED_KAPPA1,
    QUOTED_KAPPA2,
    GrowthLaw,
    fastest_time,
)

DEPTHS = (2, 3, 4)
COLOURS: dict[int, style.Colour] = dict(zip(DEPTHS, style.sequential(len(DEPTHS)), strict=True))
RISEN = np.linspace(0.0, 0.999, 500)
"""Points of a bound, as shares of the way from its start to its plateau."""
DOTTED = {"linestyle": style.PAPER["linestyle"], "linewidth": 1.6}
"""The paper's bounds, in the colours of their depths."""


@Figure(
    layout="aabbcc;ddddee",
    height=4.4,
    heights=(1.0, 1.25),
    cf={"a": "Fig. 1 (iii)", "d": "eq. 17"},
    reads={
        "growth": {
            "trajectory": "layer_norm",
            "metrics": (
                "bound_time convergence_time layer_strength norm_gap_delta peak_growth "
                "plateau_share product_norm quoted_strength_bound strength_bound "
                "strength_over_bound strength_over_quoted_bound"
            ),
        },
        "small_weights": {
            "trajectory": "layer_norm",
            "metrics": "bound_time norm_gap_delta",
        },
        "other_shapes": {
            "trajectory": "linear_map",
            "metrics": "convergence_time",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Depths and bounds."""
    return [
        *(style.handle(f"{depth} layers", color=colour) for depth, colour in COLOURS.items()),
        style.handle("1 layer", **style.GUIDE),
        style.handle("Basu et al.: bound, quoted constants", **style.PAPER),
        style.handle("bound, constants of the run", **style.THEORY),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """The bound over its plateau, from the norms of the median start at the printed variance.
    Constants are those that the paper quotes.
    """
    _bounds(_networks(results)[0], 0, ax)


def panel_b(results: Results, ax: Axes) -> None:
    """What networks do from the same variance: the norm of the product of all weights. Of the runs
    at each depth, that which needs the median time; one layer for comparison.
    """
    depths, times, end = [], [], 0.0
    shallow = [cell for cell in results.cells("other_shapes") if _depth(cell) == 1]
    for cell in [*shallow, *_networks(results)]:
        depth, needed = _depth(cell), cell.get("metrics", "convergence_time").isel(init_scale=0)
        share = _product(cell).isel(init_scale=0) / np.linalg.norm(cell.data.sigma_yx)
        share = share.sel(seed=style.median_seed(needed))
        props: dict[str, Any] = {"color": COLOURS[depth]} if depth in COLOURS else style.GUIDE
        ax.plot(cell.flow_time, share, **props)
        end = max(end, style.settling_time(share, cell.flow_time))
        depths.append(depth)
        times.append(float(needed.median()))
    ax.set(xlabel=style.FLOW_TIME, ylabel=r"$|\prod W|$ over $|\Sigma^{yx}|$", xlim=(0, end))
    ax.set_title(
        f"Within a tenth of the target after {_listed(times)} with {_listed(depths, 'd')} layers"
    )


def panel_c(results: Results, ax: Axes) -> None:
    """The bound over its plateau from smaller weights, where deeper ones wait longer."""
    _bounds(results.cell("small_weights"), -1, ax)


def panel_d(results: Results, ax: Axes) -> None:
    """The strength that theorem 3 bounds, of the median run at each depth, and both bounds. A
    strength is the largest layer norm, and the largest gap between two, to the power of the depth.
    Where it is above a curve, that is no bound.
    """
    cells = _networks(results)
    worst, holds = [], []
    for cell, inner in zip(cells, style.split(ax, 1, len(cells), sharey=True)[0], strict=True):
        over = cell.get("metrics", "strength_over_quoted_bound").isel(init_scale=0)
        run = {"init_scale": 0, "seed": list(over["seed"].values).index(style.median_seed(over))}
        time, depth = cell.flow_time, _depth(cell)
        strength, quoted, bound = (
            cell.get("metrics", name).isel(run)
            for name in ("layer_strength", "quoted_strength_bound", "strength_bound")
        )
        inner.plot(time, strength, color=COLOURS[depth])
        inner.plot(time, quoted, **style.PAPER)
        inner.plot(time, bound, **style.THEORY)
        holds.append(float(cell.get("metrics", "strength_over_bound").isel(init_scale=0).max()))
        worst.append(float(over.median()))
        inner.set(yscale="log", xlabel=r"time (units of $\tau$)", ylabel="strength")
        inner.set_xlim(0, style.settling_time(strength, time))
        inner.set_title(f"{depth} layers", loc="center")
        inner.label_outer()
    ax.set_title(
        f"Strength at most {_listed(worst, '.2f')} of the quoted bound, "
        f"{max(holds):.2f} of that of the run"
    )


def panel_e(results: Results, ax: Axes) -> None:
    """Largest growth rate of the product of all weights over the target, and length of its plateau:
    the latter is the time below 10% of the target over that to 90%; with steady growth it is 1/9
    (grey). Markers are means, bars ranges over seeds.
    """
    measures = {"peak_growth": "peak rate", "plateau_share": "plateau"}
    cells = _networks(results)
    peaks = []
    for (name, label), inner in zip(
        measures.items(), style.split(ax, len(measures), sharex=True)[:, 0], strict=True
    ):
        for cell in cells:
            depth = _depth(cell)
            values = cell.get("metrics", name).isel(init_scale=0)
            style.points(inner, depth, values, color=COLOURS[depth], marker="o")
            peaks += [float(values.mean())] * (name == "peak_growth")
        inner.set(ylabel=label, xticks=DEPTHS, xlim=(1.6, 4.4), ylim=(0, None))
        inner.label_outer()
    inner.axhline(1 / 9, **style.GUIDE)
    inner.set_xlabel("layers")
    ax.set_title(f"Peak rates {_listed(peaks, '.1f')} targets a unit")


def _bounds(cell: CellResults, index: int, ax: Axes) -> None:
    """Draws the quoted bound at each depth, from the median start of one init scale."""
    norms = cell.get("trajectory", "layer_norm").isel(init_scale=index, time=0)
    norms = norms + cell.get("metrics", "norm_gap_delta").isel(init_scale=index)
    start = norms.max("layer")
    start = float(start.sel(seed=style.median_seed(start)))
    target = float(np.linalg.norm(cell.data.sigma_yx))
    end = 0.0
    for depth, colour in COLOURS.items():
        law = GrowthLaw(depth, QUOTED_KAPPA1, QUOTED_KAPPA2, target)
        u0, plateau = start**depth, float(law.plateau)
        strength = u0 + RISEN * (plateau - u0)
        time = fastest_time(strength, u0, law)
        ax.plot([*time, 10 * time[-1]], [*strength / plateau, 1], color=colour, **DOTTED)
        end = max(end, float(time[-1]))
    times = cell.get("metrics", "bound_time").isel(init_scale=index).median("seed")
    ax.set(xlabel=style.FLOW_TIME, ylabel="bound over its plateau", xlim=(0, end or None))
    scale = f"init scale {float(norms['init_scale']):g}"
    ax.text(0.97, 0.06, scale, transform=ax.transAxes, ha="right")
    ax.set_title(f"Bounds at 90% after {_listed(times.values, '.2f')}")


def _networks(results: Results) -> list[CellResults]:
    """Networks of the depths in `DEPTHS`, shallowest first."""
    cells = sorted(results.cells("growth"), key=_depth)
    return [cell for cell in cells if _depth(cell) in DEPTHS]


def _depth(cell: CellResults) -> int:
    return len(cell.spec.layered.hidden) + 1


def _product(cell: CellResults) -> xr.DataArray:
    """Norm of the product of all weights."""
    if _depth(cell) > 1:
        return cell.get("metrics", "product_norm")
    total = cell.get("trajectory", "linear_map")
    return (total**2).sum(("output", "input"), skipna=False) ** 0.5


def _listed(values: Sequence[int | float] | np.ndarray, form: str = ".2g") -> str:
    return ", ".join(f"{value:{form}}" for value in values)
