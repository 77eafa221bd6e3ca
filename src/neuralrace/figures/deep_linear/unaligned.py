r"""One unaligned mode: what is conserved, and what decays.

Encoder and decoder vector :math:`a` and :math:`b` of a mode that starts unaligned and does not
interfere with others. In their sum :math:`p = a + b` and difference :math:`m = a - b`, gradient
flow keeps :math:`|p||m|`, so that a mode moves along a hyperbola until it is learned; figure 2 of
Saxe, McClelland and Ganguli (2013) draws the same plane, turned, for vectors along one line. And
:math:`\log(|m|/|p|)` falls at the rate :math:`2(s - a \cdot b)`: alignment before growth. The
summary says that the vectors acquire the same length; from starts that are not small they do not.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from scipy.integrate import cumulative_simpson
from xarray import ufuncs

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.modes import draw_modes
from neuralrace.figures.sweeps import finest, learning_rate
from neuralrace.results.cells import CellResults, Results
from neuralrace.results.gram import diagonal, vectors

RUNS = 3
"""Number of runs that are drawn."""


@Figure(
    layout="abc;ddd",
    height=4.2,
    heights=(1.6, 1),
    cf={"a": "Fig. 2", "d": "assumptions"},
    reads={
        "unaligned": {
            "trajectory": "gram",
            "metrics": "final_gap largest_gap log_ratio_slope product_drift",
        },
        "interference_many time_to_learn": {"metrics": "largest_gap largest_overlap"},
    },
)
def legend(results: Results) -> style.Handles:
    """Modes by strength."""
    theory = style.handle("gradient flow", **style.THEORY)
    return [*style.mode_handles(finest(results, "unaligned").strength), style.BAND, theory]


def panel_a(results: Results, ax: Axes) -> None:
    r"""Lengths of :math:`m` and :math:`p` in single runs, from dots on.

    Dashed, the hyperbolas of constant :math:`|p||m|`; thin, :math:`|p|^2 - |m|^2 = 4s`, where
    :math:`a \cdot b = s` and the mode is learned. Runs that end on an axis end with equal (or
    opposite) vectors. The gap is :math:`|m|`, or :math:`|p|` where :math:`s < 0`, over the length
    of the vectors.
    """
    cell = finest(results, "unaligned")
    paths = [
        _sum_and_difference(cell, scale) for scale in range(cell.trajectory.sizes["init_scale"])
    ]
    longest = 1.05 * max(float(length.max()) for path in paths for length in path)
    fine = np.linspace(0, longest, 200)
    for mode, colour in style.mode_colours(cell.strength).items():
        s = float(cell.strength.sel(mode=mode))
        end = np.sqrt(fine**2 + 4 * abs(s))
        ax.plot(*((fine, end) if s > 0 else (end, fine)), **style.GUIDE)
        for total, difference in paths:
            for run in range(min(RUNS, total.sizes["seed"])):
                p, m = (length.sel(mode=mode).isel(seed=run) for length in (total, difference))
                ax.plot(m, p, color=colour)
                ax.plot(m[0], p[0], color=colour, marker="o", linestyle="")
                way = np.geomspace(float(m.min()), float(m.max()), 40)
                ax.plot(way, float(p[0] * m[0]) / way, **style.THEORY)
    ax.set(xlim=(0, longest), ylim=(0, longest), aspect="equal")
    ax.set(xlabel="difference $|m| = |a - b|$", ylabel="sum $|p| = |a + b|$")
    gap = cell.get("metrics", "final_gap").mean(("seed", "mode"))
    ends = ", ".join(f"{float(x):.2f} (scale {float(x['init_scale']):g})" for x in gap)
    ax.set_title(f"Gap at the end: {ends}")


def panel_b(results: Results, ax: Axes) -> None:
    """Logarithm of the length of :math:`m` over that of :math:`p`, from the smaller start.

    Dashed, its law of decay, integrated along the same run.
    """
    cell = finest(results, "unaligned")
    time = cell.flow_time
    total, difference = _sum_and_difference(cell, 0)
    across = (total**2 - difference**2) / 4
    ratio = ufuncs.log(difference / total)
    rate = (cell.strength - across).transpose(*across.dims)
    axis = rate.get_axis_num("time")
    fall = rate.copy(data=cumulative_simpson(rate.values, x=time.values, axis=axis, initial=0))
    law = ratio.isel(time=0) - 2 * fall
    draw_modes(ax, cell, ratio, law)
    ax.set(
        xlabel=style.FLOW_TIME,
        ylabel=r"$\log(|m|/|p|)$",
        xlim=(0, style.settling_time(ratio, time)),
    )
    slope = float(cell.get("metrics", "log_ratio_slope").mean())
    ax.set_title(rf"It falls by {slope:.3f} times $\int(s - a\cdot b)dt$")


def panel_c(results: Results, ax: Axes) -> None:
    """Largest change of :math:`|p||m|` in a run, over its start, by learning rate.

    What is left is the error of gradient descent, of first order (thin, slope 1). Above, the
    largest gap between the vectors, which changes whatever the step.
    """
    cells = results.cells("unaligned")
    rates = [learning_rate(cell) for cell in cells]
    drifts = [cell.get("metrics", "product_drift").isel(init_scale=0) for cell in cells]
    for index, (mode, colour) in enumerate(style.mode_colours(cells[0].strength).items()):
        own = [drift.sel(mode=mode) for drift in drifts]
        style.point_series(ax, rates, own, color=colour, marker=style.marker(index))
    gaps = [cell.get("metrics", "largest_gap").isel(init_scale=0).mean() for cell in cells]
    ax.plot(rates, gaps, **style.GUIDE)
    first = [drift.isel(mode=0) for drift in drifts]
    style.slope_one(ax, rates, float(first[rates.index(max(rates))].mean()))
    style.loglog(ax, rates)
    ax.set(xlabel="learning rate", ylabel="change of $|p||m|$ (share)")
    ax.text(min(rates), float(gaps[0]), "largest gap", color="0.4", va="bottom")
    drift = float(first[rates.index(min(rates))].mean())
    ax.set_title(f"Change of $|p||m|$: {drift:.1%} at the finest")


def panel_d(results: Results, ax: Axes) -> None:
    """What an equal and perpendicular (aligned) start keeps at any time.

    The largest cosine between vectors of different modes, and the largest distance (gap) of encoder
    from decoder vector over their length. Beside them, vectors that start equal and not
    perpendicular (tied), and the gap at the end of those that start unequal.
    """
    kept, tied = results.cell("time_to_learn"), results.cell("interference_many")
    loose = finest(results, "unaligned")
    rows = {
        "cosine, aligned": kept.get("metrics", "largest_overlap").max("init_scale"),
        "cosine, tied": tied.get("metrics", "largest_overlap").max("init_scale"),
        "gap, aligned": kept.get("metrics", "largest_gap").max(("init_scale", "mode")),
        "gap, tied": tied.get("metrics", "largest_gap").max(("init_scale", "mode")),
        "gap, unequal": loose.get("metrics", "final_gap").max(("init_scale", "mode")),
    }
    for row, (name, values) in enumerate(rows.items()):
        kind = name.rpartition(" ")[2]
        colour = style.categorical(("aligned", "tied", "unequal").index(kind))
        style.points(ax, row, values, across=True, color=colour, marker=style.marker(row))
    ax.set_yticks(range(len(rows)), list(rows))
    ax.invert_yaxis()
    ax.set(xscale="log", xlabel="largest at any time", xlim=(None, 3))
    cosine, gap = (float(rows[f"{what}, aligned"].max()) for what in ("cosine", "gap"))
    ax.set_title(f"Cosines stay within {cosine:.0e} of 0, gaps within {gap:.0e}")


def _sum_and_difference(cell: CellResults, scale: int) -> tuple[xr.DataArray, xr.DataArray]:
    """Lengths of p = a + b and m = a - b, by mode, from one init scale."""
    encoder, decoder, across = (diagonal(block).isel(init_scale=scale) for block in vectors(cell))
    total = ufuncs.sqrt(encoder + decoder + 2 * across)
    return total, ufuncs.sqrt((encoder + decoder - 2 * across).clip(min=0))
