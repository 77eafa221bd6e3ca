"""What depth does to the growth bound, and to growth.

Basu, Mukherjee and Vasudevan, fig. 1 (iii), draw the bound of eq. 17 at two, three and four layers,
all from the same layer norms and with the constants that they read off the network with two. The
deeper the bound, the sharper it rises, and from the start that they print the sooner; from smaller
weights it waits longer the deeper it is (a). The constants of two layers do not bound four, which
the paper does not say; those of a run bound it at every depth (b). Networks are not their bound:
from the printed entry variance those of more than two layers wait for a larger share of the time
(c, d); from that of Glorot and Bengio none waits, and from both the largest rate grows with depth
(e). The paper does not print the factor of the variance; here it is 1.
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
from neuralrace.metrics.values import crossing_time
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
LABELS = (
    {2: (0.3, 0.5), 3: (0.55, 0.5), 4: (0.8, 0.5)},
    {2: (0.3, 0.02), 3: (0.7, 0.02), 4: (0.5, 0.75)},
)
"""Height and place, as a share of the time axis, of the label of each bound, by start."""
RISEN = np.linspace(0.0, 0.999, 500)
"""Points of a bound, as shares of the way from its start to its plateau."""
NETWORK = style.SIMULATION | {"alpha": 0.8}
"""Properties of curves of networks, which are told apart in grey too."""
LOW = 0.1
"""Share of the target up to which a network waits."""
HIGH = 0.9
"""Share of the target at which the time axis of networks ends."""
RATES: dict[str, dict[str, Any]] = {
    "growth": {"color": style.categorical(0), "marker": "o"},
    "growth_standard": {"color": style.categorical(1), "marker": "s"},
}
"""Lines of entry variances, by experiment."""
SHIFTS = {"growth": -0.04, "growth_standard": 0.04}
"""How far they stand beside a number of layers, so that bars are apart, by experiment."""
CONSTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "quoted_strength_bound": ("quoted\nconstants", {"color": "0.2", "marker": "s"}),
    "strength_bound": ("constants\nof the run", {"color": "0.5", "marker": "o"}),
}
"""Constants of the bound, and properties of their line, by metric."""


@Figure(
    layout="aaaab;aaaab;ccccd;cccce",
    height=4.9,
    widths=(1, 1, 1, 1, 2.2),
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
    },
)
def legend(results: Results) -> style.Handles:
    """Bounds, which are named at the lines, and networks."""
    return [
        style.handle("bound with quoted constants", **style.THEORY),
        *(
            style.handle(f"network: {layers} layers", color=colour, **NETWORK)
            for layers, colour in COLOURS.items()
        ),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """The bound over its plateau at each depth, from the norms of the median start of 60 with two
    layers, at the printed variance and from a tenth of the weights. Constants are those that the
    paper quotes.
    """
    left, right = style.split(ax, 1, 2, sharey=True)[0]
    _bounds(networks(results, "growth")[0], 0, left, "deepest first", LABELS[0])
    _bounds(results.cell("small_weights"), -1, right, "deepest last", LABELS[1])
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
    style.note(ax, "above 1: bound broken", "upper left")
    style.note(ax, "bars: range of 60 runs", "lower left")
    ax.set(yscale="log", ylabel="strength over bound at the end")
    ax.set_ylim(0.5 * ax.get_ylim()[0], max(5, ax.get_ylim()[1]))
    label_ends(ax, names)
    ax.set_title("Quoted constants fail with depth")


def panel_c(results: Results, ax: Axes) -> None:
    """Norm of the product of all weights over that of the target, from both entry variances, over
    the time to nine tenths of the target. Of 60 runs at each depth it is that of the median waiting
    (as in d), or, where none waits, of the median time until a tenth of the target is left. From
    the variance of Glorot and Bengio networks start above a tenth of the target, so that none
    waits, though the product may shrink at first.
    """
    parts = style.split(ax, 1, 2, sharey=True)[0]
    for part, (experiment, variance) in zip(parts, VARIANCES.items(), strict=True):
        for cell in networks(results, experiment):
            at, layers = unit_scale(cell), depth(cell)
            waiting, needed = (
                cell.get("metrics", name).isel(at) for name in ("plateau_share", "convergence_time")
            )
            run = {"seed": style.median_seed(waiting if (waiting > 0).any() else needed)}
            product = cell.get("metrics", "product_norm").isel(at).sel(run)
            share = product / np.linalg.norm(cell.data.sigma_yx)
            risen = float(crossing_time(share, xr.DataArray(HIGH), cell.flow_time))
            clock = cell.flow_time / (risen or np.nan)
            part.plot(clock, share, color=COLOURS.get(layers, "0.6"), **NETWORK)
        part.axhline(LOW, **style.GUIDE)
        part.set(xlabel=f"time / time to {HIGH:.0%}", xlim=(0, 1), ylim=(0, 1.05))
        part.set_title(f"variance: {variance}", loc="center")
    parts[0].set_ylabel(r"$|\prod W|$ over $|\Sigma^{yx}|$")
    parts[1].tick_params(labelleft=False)
    style.note(parts[0], f"waiting: below {LOW:.0%}", "lower right")
    style.note(parts[1], f"all start above {LOW:.0%}", "lower right")
    style.note(parts[0], "curves: median\nrun of 60", "upper left")
    ax.set_title("Only the printed variance makes networks wait")


def panel_d(results: Results, ax: Axes) -> None:
    """Waiting by depth, from both entry variances: the time below a tenth of the target over the
    time to nine tenths, where steady growth has 1/9. Means and ranges over 60 runs.
    """
    ends = _by_depth(results, ax, "plateau_share")
    ax.axhline(1 / 9, **style.GUIDE)
    ends.append((1 / 9, "steady growth", "0.4"))
    ax.set(ylabel="waiting /\ntime to 90%", ylim=(-0.02, 1.15 * ax.get_ylim()[1]))
    label_ends(ax, ends)
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.tick_params(labelbottom=False)
    style.note(ax, "bars: range\nof 60 runs", "upper left")
    ax.set_title("Printed variance: more than two layers wait")


def panel_e(results: Results, ax: Axes) -> None:
    """Largest growth rate by depth, in targets per time; means and ranges over 60 runs.

    Lines are as in d.
    """
    _by_depth(results, ax, "peak_growth")
    ax.set(xlabel="layers", ylabel="largest rate", ylim=(0, 1.15 * ax.get_ylim()[1]))
    style.note(ax, "lines as in d", "upper left")
    ax.set_title("The largest rate grows with depth")


def _by_depth(results: Results, ax: Axes, metric: str) -> list[tuple[float, str, Any]]:
    """Draws a metric against the number of layers, with a line for each entry variance.

    Returns:
        The end, the name and the colour of each line.
    """
    names: list[tuple[float, str, Any]] = []
    for experiment, variance in VARIANCES.items():
        cells = networks(results, experiment)
        depths = list(map(depth, cells))
        values = [cell.get("metrics", metric).isel(unit_scale(cell)) for cell in cells]
        beside = [layers + SHIFTS[experiment] for layers in depths]
        means = style.point_series(ax, beside, values, **RATES[experiment])
        ax.plot(beside, means, linewidth=1.2, color=RATES[experiment]["color"])
        names.append((means[-1], variance.replace(" and ", "\nand "), RATES[experiment]["color"]))
    ax.set(xticks=depths, xlim=(min(depths) - 0.3, max(depths) + 0.3))
    return names


def _end(cell: CellResults, metric: str) -> xr.DataArray:
    """A metric over time from the init scale of 1, at the end of training."""
    return cell.get("metrics", metric).isel(unit_scale(cell)).isel(time=-1)


def _bounds(
    cell: CellResults, index: int, ax: Axes, finding: str, labels: dict[int, tuple[float, float]]
) -> None:
    """Draws the quoted bound at each depth, from the median start of one init scale."""
    norms = cell.get("trajectory", "layer_norm").isel(init_scale=index, time=0)
    norms = norms + cell.get("metrics", "norm_gap_delta").isel(init_scale=index)
    start = norms.max("layer")
    start = float(start.sel(seed=style.median_seed(start)))
    target = float(np.linalg.norm(cell.data.sigma_yx))
    curves = {}
    for layers in DEPTHS:
        law = GrowthLaw(layers, QUOTED_KAPPA1, QUOTED_KAPPA2, target)
        u0, plateau = start**layers, float(law.plateau)
        strength = u0 + RISEN * (plateau - u0)
        time = fastest_time(strength, u0, law)
        ax.plot([*time, 10 * time[-1]], [*strength / plateau, 1], **style.THEORY)
        curves[layers] = time, strength / plateau
    end = max(float(time[-1]) for time, _ in curves.values())
    for layers, (height, place) in labels.items():
        time, curve = curves[layers]
        ax.annotate(
            f"{layers} layers", (float(np.interp(height, curve, time)), height),
            (place * end, height), va="center",
            arrowprops={"arrowstyle": "-|>", "mutation_scale": 6, "color": "0.4", "linewidth": 0.6},
        )  # fmt: skip
    ax.set(xlabel=r"time (units of $\tau$)", xlim=(0, end), ylim=(0, 1.05))
    ax.set_title(f"weights \u00d7 {float(norms['init_scale']):g}: {finding}", loc="center")
