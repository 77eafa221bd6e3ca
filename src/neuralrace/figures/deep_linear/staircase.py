"""Singular modes learned one by one from small random weights.

The strength of each mode of a network with one hidden layer, as figure 3 of Saxe, McClelland and
Ganguli (2013) shows it, and the first point of the summary: correlations are learned one by one, in
the order of their strength. Simulations (means, bands over the range of seeds) lie under closed
forms that start from the initial weights of each run, with nothing fitted. The smaller the weights
at the start, the longer each mode waits and the further the stairs are apart. The source prints no
numbers; modes, sizes and scales are ours.
"""

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.modes import draw_strengths, learning_end
from neuralrace.results.cells import CellResults, Results

LEAST = 1e-3
"""Lower end of the axis of the loss, over the initial loss."""
HALF = {"linestyle": "", "marker": "o", "markersize": 3, "color": "0.3", "zorder": 4}
HALF |= {"markerfacecolor": "white", "markeredgewidth": 0.7}
"""Dot at the time at which a mode is half learned."""


@Figure(
    layout="abc;dde",
    height=3.9,
    cf={"a": "Fig. 3, left", "e": "first bullet"},
    reads={
        "staircase": {
            "trajectory": "loss mode_strength",
            "theory": "loss mode_strength",
            "metrics": "half_time half_time_over_predicted half_time_over_written later_share",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Modes by singular value, and lines."""
    theory = style.handle("closed form", **style.THEORY)
    paper = style.handle(r"Saxe et al.: $\log(s/\epsilon)/s$", **style.PAPER)
    return [*style.mode_handles(results.cell("staircase").strength), style.BAND, theory, paper]


def panel_a(results: Results, ax: Axes) -> None:
    """Mode strengths from the smallest weights.

    Dots are where a mode is half learned, on average over seeds; later modes, on the thin line
    below, have hardly begun.
    """
    _modes(results.cell("staircase"), 0, ax)


def panel_b(results: Results, ax: Axes) -> None:
    """The same from larger weights."""
    _modes(results.cell("staircase"), 1, ax)


def panel_c(results: Results, ax: Axes) -> None:
    """The same from the largest weights, where all modes start at once."""
    _modes(results.cell("staircase"), 2, ax)


def panel_d(results: Results, ax: Axes) -> None:
    """Training loss from all init scales, over that before training.

    Thin lines are the loss when the strongest modes have been learned and nothing of the others.
    """
    cell = results.cell("staircase")
    loss, time = cell.get("trajectory", "loss"), cell.flow_time
    closed = cell.get("theory", "loss", solution="aligned_modes")
    first = loss.isel(time=0).mean("seed")
    power = np.sort(cell.strength.values**2)[::-1]
    left = 1 - np.cumsum(power) / power.sum()
    plateaus = left[left > LEAST]
    for level in plateaus:
        ax.axhline(level, **style.GUIDE)
    style.over_scales(ax, time, loss / first, closed / first)
    ax.legend(title="init scale", loc="upper right", frameon=True, framealpha=1, edgecolor="none")
    end = cell.get("theory", "mode_strength", solution="aligned_modes").isel(init_scale=0)
    ax.set(xlabel=style.FLOW_TIME, ylabel="loss (initial loss)", yscale="log")
    ax.set(xlim=(0, learning_end(cell, end)), ylim=(LEAST, 1.6))
    ax.set_title(f"The loss falls in stairs: {len(plateaus)} plateaus between the modes")


def panel_e(results: Results, ax: Axes) -> None:
    """Time to half of each mode's target against its singular value, at each init scale.

    Dashed, the closed form from each run's weights; dotted, the time that the summary writes.
    """
    cell = results.cell("staircase")
    half = cell.get("metrics", "half_time")
    over = cell.get("metrics", "half_time_over_predicted")
    written = half / cell.get("metrics", "half_time_over_written")
    s = cell.strength.where(cell.strength != 0, drop=True)
    for index, props in enumerate(style.sequential_styles(half.sizes["init_scale"])):
        at = {"init_scale": index, "mode": s["mode"].values - 1}
        by_mode = half.isel(at).transpose("mode", ...)
        style.point_series(ax, s.values.tolist(), by_mode, **props)
        ax.plot(s, (half / over).isel(at).mean("seed"), **style.THEORY)
        ax.plot(s, written.isel(at).mean("seed"), **style.PAPER)
    ax.set(xscale="log", yscale="log", xlabel="singular value $s$")
    ax.set_ylabel(r"time to $s/2$ (units of $\tau$)")
    ax.set_xticks(s.values, [f"{x:g}" for x in s.values])
    ax.minorticks_off()
    off = float(abs(over.isel(init_scale=0) - 1).max())
    ax.set_title(f"Small weights: within {off:.1%} of the closed form")


def _modes(cell: CellResults, index: int, ax: Axes) -> None:
    half = cell.get("metrics", "half_time").isel(init_scale=index).mean("seed")
    later = cell.get("metrics", "later_share").isel(init_scale=index)
    smallest = cell.get("theory", "mode_strength", solution="aligned_modes").isel(init_scale=0)
    ax.vlines(half, 0, cell.strength / 2, **style.GUIDE)
    draw_strengths(ax, cell, "aligned_modes", index)
    ax.plot(half, cell.strength / 2, **HALF)
    ax.set_xlim(0, learning_end(cell, smallest))
    scale, share = float(later["init_scale"]), float(later.mean("seed"))
    ax.set_title(f"Scale {scale:g}: the next mode is at {share:.0%} when one is at half")
