"""What depth does to the growth bound, and to growth.

Basu, Mukherjee and Vasudevan, fig. 1 (iii), draw the bound of eq. 17 at two, three and four layers,
all from the same layer norms and with the constants that they read off the network with two. The
deeper the bound, the sharper it rises, and from the start that they print the sooner; from smaller
weights it waits longer the deeper it is (a). The constants of two layers do not bound four, which
the paper does not say; those of a run bound it at every depth (b). Networks are not their bound:
from the printed entry variance deeper ones grow in phases and come to the target later; from that
of Glorot and Bengio neither holds (c, d). The paper does not print the factor of the variance; here
it is 1.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.layers import VARIANCES, depth, line, networks, unit_scale
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.growth_bound import (
    QUOTED_KAPPA1,
    QUOTED_KAPPA2,
    GrowthLaw,
    fastest_time,
)

COLOURS: dict[int, style.Colour | str] = {1: "0.5"} | dict(
    zip((2, 3, 4), style.sequential(3), strict=True)
)
"""Colours by number of layers."""
LINES = {1: "-", 2: "-", 3: style.LINES[1], 4: style.LINES[3]}
"""Line styles by number of layers."""
RISEN = np.linspace(0.0, 0.999, 500)
"""Points of a bound, as shares of the way from its start to its plateau."""
LOW = 0.1
"""Share of the target up to which growth is a plateau."""
THIN: dict[str, Any] = {"linewidth": 0.8, "alpha": 1}
"""Lines of bounds with the constants of a run."""


@Figure(
    layout="aab;ccd",
    height=4.7,
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
    """Depths."""
    return [
        *(
            style.handle(
                f"{layers} layer{'s' * (layers > 1)}", color=colour, linestyle=LINES[layers]
            )
            for layers, colour in COLOURS.items()
        ),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """The bound over its plateau at each depth, from the norms of the median start of 60 with two
    layers, at the printed variance and from a tenth of the weights. Constants are those that the
    paper quotes.
    """
    left, right = style.split(ax, 1, 2, sharey=True)[0]
    _bounds(networks(results, "growth")[0], 0, left)
    _bounds(results.cell("small_weights"), -1, right)
    left.set_ylabel("bound over its plateau")
    right.tick_params(labelleft=False)
    ax.set_title("Deeper bounds rise sharper, sooner from large weights")


def panel_b(results: Results, ax: Axes) -> None:
    """The strength that theorem 3 bounds over its bound, with the constants that the paper quotes
    (thick) and with those of the run (thin), of the run of the median largest ratio. A strength is
    the largest layer norm, and the largest gap between two, to the power of the depth. Above 1 the
    curve is no bound.
    """
    ends = []
    for cell in networks(results, "growth"):
        strength, quoted, bound = (
            cell.get("metrics", name).isel(init_scale=0)
            for name in ("layer_strength", "quoted_strength_bound", "strength_bound")
        )
        end = (strength / quoted).isel(time=-1)
        run, look = {"seed": style.median_seed(end)}, _look(cell)
        ax.plot(cell.flow_time, (strength / quoted).sel(run), **look)
        ax.plot(cell.flow_time, (strength / bound).sel(run), **look | THIN)
        ends.append(style.settling_time(strength.sel(run), cell.flow_time))
    ax.axhline(1, **style.GUIDE)
    ax.set(yscale="log", xlim=(0, max(ends)), xlabel=r"time (units of $\tau$)")
    ax.set(ylabel="strength over bound", ylim=(None, max(4, ax.get_ylim()[1])))
    ax.text(0.98, 0.97, "above 1: not a bound", transform=ax.transAxes, ha="right", va="top")
    ax.text(0.98, 0.03, "thin: constants of the run", transform=ax.transAxes, ha="right")
    ax.set_title("Quoted constants fail at depth 4")


def panel_c(results: Results, ax: Axes) -> None:
    """Norm of the product of all weights over that of the target, from both entry variances: of 60
    runs at each depth, that which needs the median time until a tenth of the target is left
    (circles). One layer is of the printed variance. Below the line growth is a plateau. Numbers are
    the time there over the time to nine tenths, means over the runs; steady growth has 1/9.
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
            part.plot(time, share, **_look(cell, 2.2))
            if np.isfinite(reached):
                height = float(np.interp(reached, time, share.values))
                part.plot([reached], [height], "o", color=COLOURS[depth(cell)], zorder=4)
                end = max(end, 1.1 * reached)
        part.axhline(LOW, **style.GUIDE)
        spent = {
            depth(cell): float(cell.get("metrics", "plateau_share").isel(unit_scale(cell)).mean())
            for cell in networks(results, experiment)
        }
        known = [f"{layers} layers {mean:.0%}" for layers, mean in spent.items() if mean >= 0]
        head = f"time below {LOW:.0%}:" if any(spent.values()) else f"never below {LOW:.0%}"
        note = "\n".join([head, *known] if any(spent.values()) else [head])
        part.text(0.98, LOW + 0.02, note, ha="right", transform=part.get_yaxis_transform())
        part.set(xlabel=r"time (units of $\tau$)", ylim=(0, None))
        part.set_title(f"variance: {variance}", loc="center")
        part.label_outer()
    parts[0].set(ylabel=r"$|\prod W|$ over $|\Sigma^{yx}|$", xlim=(0, end or None))
    ax.set_title("Only the printed variance gives phases")


def panel_d(results: Results, ax: Axes) -> None:
    """Largest growth rate, in targets per time, from both variances (circles as printed, squares
    of Glorot and Bengio). Means and ranges over 60 runs.
    """
    for shift, marker, experiment in zip((-0.12, 0.12), "os", VARIANCES, strict=True):
        for cell in networks(results, experiment):
            layers = depth(cell)
            values = cell.get("metrics", "peak_growth").isel(unit_scale(cell))
            look = {"color": COLOURS[layers], "marker": marker, "markersize": 5}
            style.points(ax, layers + shift, values, **look)
    ax.set(xlabel="layers", ylabel="largest rate (targets per time)", ylim=(0, None))
    ax.set(xticks=[2, 3, 4], xlim=(1.6, 4.4))
    handles = [
        style.handle(name, color="0.3", marker=marker, linestyle="")
        for name, marker in zip(VARIANCES.values(), "os", strict=True)
    ]
    ax.legend(handles=handles, loc="upper left", handlelength=1)
    ax.set_title("Depth speeds growth either way")


def _bounds(cell: CellResults, index: int, ax: Axes) -> None:
    """Draws the quoted bound at each depth, from the median start of one init scale."""
    norms = cell.get("trajectory", "layer_norm").isel(init_scale=index, time=0)
    norms = norms + cell.get("metrics", "norm_gap_delta").isel(init_scale=index)
    start = norms.max("layer")
    start = float(start.sel(seed=style.median_seed(start)))
    target = float(np.linalg.norm(cell.data.sigma_yx))
    end = 0.0
    for layers in (2, 3, 4):
        law = GrowthLaw(layers, QUOTED_KAPPA1, QUOTED_KAPPA2, target)
        u0, plateau = start**layers, float(law.plateau)
        strength = u0 + RISEN * (plateau - u0)
        time = fastest_time(strength, u0, law)
        ax.plot(
            [*time, 10 * time[-1]],
            [*strength / plateau, 1],
            color=COLOURS[layers],
            linestyle=LINES[layers],
        )
        end = max(end, float(time[-1]))
    ax.set(xlabel=r"time (units of $\tau$)", xlim=(0, end or None), ylim=(0, 1.05))
    ax.set_title(f"start, weights \u00d7 {float(norms['init_scale']):g}", loc="center")


def _look(cell: CellResults, width: int | float = 3) -> dict[str, Any]:
    """Properties of the simulated line of a network."""
    layers = depth(cell)
    return line(COLOURS[layers], width) | {"linestyle": LINES[layers]}


def _product(cell: CellResults) -> xr.DataArray:
    """Norm of the product of all weights."""
    if depth(cell) > 1:
        return cell.get("metrics", "product_norm")
    total = cell.get("trajectory", "linear_map")
    return (total**2).sum(("output", "input"), skipna=False) ** 0.5
