"""What depth does to the growth bound, and to growth.

Basu, Mukherjee and Vasudevan, fig. 1 (iii), draw the bound of eq. 17 at two, three and four layers,
all from the same layer norms and with the constants that they read off the network with two. The
deeper the bound, the sharper it rises, and from the start that they print the sooner; from smaller
weights it waits longer the deeper it is (a). The constants of two layers do not bound four, which
the paper does not say; those of a run bound it at every depth (b). Networks are not their bound:
from the printed entry variance deeper ones wait longer, and come to the target later (c); from that
of Glorot and Bengio neither holds, and from both the largest rate grows with depth (d). The paper
does not print the factor of the variance; here it is 1.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.layers import VARIANCES, depth, networks, unit_scale
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.growth_bound import (
    QUOTED_KAPPA1,
    QUOTED_KAPPA2,
    GrowthLaw,
    fastest_time,
)

DEPTHS = (2, 3, 4)
COLOURS: dict[int, style.Colour] = dict(zip(DEPTHS, style.sequential(len(DEPTHS)), strict=True))
"""Colours by number of layers."""
REACHED: dict[str, Any] = {"marker": "o", "markersize": 5, "linestyle": "", "zorder": 4}
"""Mark of the time at which a tenth of the target is left."""
RISEN = np.linspace(0.0, 0.999, 500)
"""Points of a bound, as shares of the way from its start to its plateau."""
LOW = 0.1
"""Share of the target up to which a network waits."""
NOTE: dict[str, Any] = {"ha": "right", "va": "bottom", "color": "0.4", "fontsize": 6.5}
RATES: dict[str, dict[str, Any]] = {
    "growth": {"color": style.categorical(0), "marker": "o"},
    "growth_standard": {"color": style.categorical(1), "marker": "s"},
}
"""Lines of entry variances, by experiment."""
CONSTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "quoted_strength_bound": ("quoted\nconstants", {"color": "0.2", "marker": "s"}),
    "strength_bound": ("constants\nof the run", {"color": "0.5", "marker": "o"}),
}
"""Constants of the bound, and properties of their line, by metric."""


@Figure(
    layout="aab;ccd",
    height=4.8,
    heights=(1.0, 1.1),
    cf={"a": "Fig. 1 (iii)", "b": "eq. 17"},
    reads={
        "growth": {
            "trajectory": "layer_norm",
            "metrics": (
                "convergence_time layer_strength norm_gap_delta peak_growth plateau_share "
                "product_norm quoted_strength_bound strength_bound"
            ),
        },
        "growth_standard": {
            "trajectory": "layer_norm",
            "metrics": "convergence_time peak_growth plateau_share product_norm",
        },
        "small_weights": {
            "trajectory": "layer_norm",
            "metrics": "norm_gap_delta",
        },
        "other_shapes": {
            "trajectory": "linear_map",
            "metrics": "convergence_time",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Depths, and the mark of the networks."""
    depths = [
        style.handle("1 layer", **style.GUIDE),
        *(style.handle(f"{layers} layers", color=colour) for layers, colour in COLOURS.items()),
    ]
    return [*depths, style.handle(f"{LOW:.0%} left to learn", color="0.3", **REACHED)]


def panel_a(results: Results, ax: Axes) -> None:
    """The bound over its plateau at each depth, from the norms of the median start of 60 with two
    layers, at the printed variance and from a tenth of the weights. Constants are those that the
    paper quotes.
    """
    left, right = style.split(ax, 1, 2, sharey=True)[0]
    _bounds(networks(results, "growth")[0], 0, left, "deepest first")
    _bounds(results.cell("small_weights"), -1, right, "deepest last")
    left.set_ylabel("bound over its plateau")
    right.tick_params(labelleft=False)
    ax.set_title("Bounds: deeper is sharper, not always sooner")


def panel_b(results: Results, ax: Axes) -> None:
    """The strength that theorem 3 bounds over its bound at the end of training, with the constants
    that the paper quotes from two layers and with those of the run. Above the line the curve is no
    bound. A strength is the largest layer norm, and the largest gap between two, to the power of
    the depth. Means and ranges over 60 runs.
    """
    cells = networks(results, "growth")
    depths = list(map(depth, cells))
    ax.set(xlabel="layers", xticks=depths, xlim=(min(depths) - 0.3, max(depths) + 0.3))
    names: list[tuple[float, str, style.Colour | str]] = []
    for bound, (name, props) in CONSTANTS.items():
        ends = [_end(cell, "layer_strength") / _end(cell, bound) for cell in cells]
        means = style.point_series(ax, depths, ends, markersize=6, **props)
        ax.plot(depths, means, color=props["color"], linewidth=1.2)
        names.append((means[-1], name, props["color"]))
    ax.axhline(1, **style.GUIDE)
    ax.text(min(depths) - 0.2, 1.2, "above: no bound")
    ax.set(yscale="log", ylabel="strength over bound at the end")
    ax.set_ylim(None, max(5, ax.get_ylim()[1]))
    label_ends(ax, names)
    ax.set_title("Quoted constants fail at depth 4")


def panel_c(results: Results, ax: Axes) -> None:
    """Norm of the product of all weights over that of the target, from both entry variances: of 60
    runs at each depth, that which needs the median time until a tenth of the target is left. One
    layer is of the printed variance.
    """
    parts = style.split(ax, 1, 2, sharey=True, sharex=True)[0]
    end = 0.0
    for part, (experiment, variance) in zip(parts, VARIANCES.items(), strict=True):
        single = [cell for cell in results.cells("other_shapes") if depth(cell) == 1]
        for cell in [*single, *networks(results, experiment)]:
            at = unit_scale(cell)
            needed = cell.get("metrics", "convergence_time").isel(at)
            run = {"seed": style.median_seed(needed)}
            share = _product(cell).isel(at).sel(run) / np.linalg.norm(cell.data.sigma_yx)
            time, reached = cell.flow_time.values, float(needed.sel(run))
            line = {"color": COLOURS[depth(cell)]} if depth(cell) > 1 else style.GUIDE
            part.plot(time, share, **line)
            if np.isfinite(reached):
                height = float(np.interp(reached, time, share.values))
                part.plot([reached], [height], color=line["color"], **REACHED)
                end = max(end, 1.1 * reached)
        part.axhline(LOW, **style.GUIDE)
        part.set(xlabel=r"time (units of $\tau$)", ylim=(0, None))
        part.set_title(f"variance: {variance}", loc="center")
        part.label_outer()
    parts[0].set(ylabel=r"$|\prod W|$ over $|\Sigma^{yx}|$", xlim=(0, end or None))
    note = f"waiting: below {LOW:.0%}"
    parts[1].text(0.98, LOW + 0.02, note, transform=parts[1].get_yaxis_transform(), ha="right")
    ax.set_title("Only the printed variance makes deep networks wait")


def panel_d(results: Results, ax: Axes) -> None:
    """Waiting and growth by depth, from both entry variances: the time below a tenth of the target
    over the time to nine tenths, where steady growth has 1/9; and the largest growth rate, in
    targets per time. Means over 60 runs.
    """
    above, below = style.split(ax, 2, 1, sharex=True)[:, 0]
    for part, metric in ((above, "plateau_share"), (below, "peak_growth")):
        names: list[tuple[float, str, Any]] = []
        for experiment, variance in VARIANCES.items():
            cells = networks(results, experiment)
            depths = list(map(depth, cells))
            means = [_mean(cell, metric) for cell in cells]
            part.plot(depths, means, linewidth=1.2, **RATES[experiment])
            names.append((means[-1], variance, RATES[experiment]["color"]))
        part.set(xticks=depths, xlim=(min(depths) - 0.3, max(depths) + 0.3))
        part.set_ylim(0, 1.15 * part.get_ylim()[1])
        label_ends(part, names)
    above.axhline(1 / 9, **style.GUIDE)
    above.text(0.98, 1 / 9, "steady growth", transform=above.get_yaxis_transform(), **NOTE)
    above.set_ylabel("time waiting")
    above.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    above.label_outer()
    below.set(xlabel="layers", ylabel="largest rate")
    ax.set_title("The largest rate grows with depth")


def _end(cell: CellResults, metric: str) -> xr.DataArray:
    """A metric over time from the init scale of 1, at the end of training."""
    return cell.get("metrics", metric).isel(unit_scale(cell)).isel(time=-1)


def _mean(cell: CellResults, metric: str) -> float:
    """A metric from the init scale of 1, the mean over runs."""
    return float(cell.get("metrics", metric).isel(unit_scale(cell)).mean())


def _bounds(cell: CellResults, index: int, ax: Axes, finding: str) -> None:
    """Draws the quoted bound at each depth, from the median start of one init scale."""
    norms = cell.get("trajectory", "layer_norm").isel(init_scale=index, time=0)
    norms = norms + cell.get("metrics", "norm_gap_delta").isel(init_scale=index)
    start = norms.max("layer")
    start = float(start.sel(seed=style.median_seed(start)))
    target = float(np.linalg.norm(cell.data.sigma_yx))
    end = 0.0
    for layers in DEPTHS:
        law = GrowthLaw(layers, QUOTED_KAPPA1, QUOTED_KAPPA2, target)
        u0, plateau = start**layers, float(law.plateau)
        strength = u0 + RISEN * (plateau - u0)
        time = fastest_time(strength, u0, law)
        ax.plot(
            [*time, 10 * time[-1]],
            [*strength / plateau, 1],
            color=COLOURS[layers],
        )
        end = max(end, float(time[-1]))
    ax.set(xlabel=r"time (units of $\tau$)", xlim=(0, end or None), ylim=(0, 1.05))
    ax.set_title(f"weights \u00d7 {float(norms['init_scale']):g}: {finding}", loc="center")


def _product(cell: CellResults) -> xr.DataArray:
    """Norm of the product of all weights."""
    if depth(cell) > 1:
        return cell.get("metrics", "product_norm")
    total = cell.get("trajectory", "linear_map")
    return (total**2).sum(("output", "input"), skipna=False) ** 0.5
