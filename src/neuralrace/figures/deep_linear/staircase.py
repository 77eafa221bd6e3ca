"""Singular modes learned one by one from small random weights.

The strength of each mode of a network with one hidden layer, as figure 3 of Saxe, McClelland and
Ganguli (2013) shows it, and the first point of an anonymous summary of the paper: correlations are
learned one by one, in the order of their strength. Simulations (means, bands over the range of
seeds) from small weights lie under closed forms that start from those of each run, with nothing
fitted. The smaller the weights at the start, the longer each mode waits and the further the stairs
are apart. The source prints no numbers; modes, sizes and scales are ours.
"""

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.modes import draw_strengths, label_modes, learning_end
from neuralrace.results.cells import CellResults, Results

LEAST = 1e-3
"""Lower end of the axis of the loss, over the initial loss."""
HALF = {"linestyle": "", "marker": "o", "markersize": 3, "color": "0.3", "zorder": 4}
HALF |= {"markerfacecolor": "white", "markeredgewidth": 0.7}
"""Dot at the time at which a mode is half learned."""


@Figure(
    layout="aab;aac;dde",
    height=4.9,
    widths=(1, 1, 1.05),
    heights=(1, 1, 1.25),
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
    """Simulation, theory, and the time in the summary."""
    simulation = style.handle("simulation", color="0.3", **style.SIMULATION)
    theory = style.handle("closed form", **style.THEORY)
    paper = style.handle(r"summary: $\log(s/\epsilon)/s$", **style.PAPER)
    return [simulation, style.BAND, theory, style.handle("half learned", **HALF), paper]


def panel_a(results: Results, ax: Axes) -> None:
    """Mode strengths from the smallest weights, 10 runs.

    Dots are where a mode is half learned, on average over runs. The number is the share of its
    target that a later mode has by then, the largest of all modes.
    """
    cell = results.cell("staircase")
    _modes(cell, 0, ax, "when one is half learned,\nthe next is at most at")
    label_modes(ax, cell.strength.where(cell.strength != 0, drop=True))
    ax.set_title("Small weights: one mode after another")


def panel_b(results: Results, ax: Axes) -> None:
    """The same from larger weights."""
    _modes(results.cell("staircase"), 1, ax, "next mode: at most")
    ax.tick_params(labelbottom=False)
    ax.set_xlabel("")
    ax.set_title("Larger weights: modes overlap")


def panel_c(results: Results, ax: Axes) -> None:
    """The same from the largest weights, where all modes start at once."""
    _modes(results.cell("staircase"), 2, ax, "next mode: at most")
    ax.set_title("Largest weights: all start at once")


def panel_d(results: Results, ax: Axes) -> None:
    """Training loss from all init scales, over that before training.

    Means and ranges over 10 runs. Thin lines are the loss when the strongest modes have been
    learned and nothing of the others. From the largest weights the last of the loss falls later
    than in the closed form.
    """
    cell = results.cell("staircase")
    loss, time = cell.get("trajectory", "loss"), cell.flow_time
    closed = cell.get("theory", "loss", solution="aligned_modes")
    first = loss.isel(time=0).mean("seed")
    power = np.sort(cell.strength.values**2)[::-1]
    left = 1 - np.cumsum(power) / power.sum()
    stairs = left[left > LEAST].tolist()
    for level in stairs:
        ax.axhline(level, **style.GUIDE)
    scales = loss["init_scale"].values
    ax.set(xlabel=style.FLOW_TIME, ylabel="loss (initial loss)", yscale="log")
    ax.set(xlim=(0, _end(cell)), ylim=(LEAST, 1.6))
    for scale, colour in zip(scales, style.greys(len(scales)), strict=True):
        at = {"init_scale": scale}
        style.over_seeds(ax, time, (loss / first).sel(at), color=colour)
        curve = (closed / first).sel(at).mean("seed")
        ax.plot(time, curve, **style.THEORY)
        low = float(time[int((curve < 2 * LEAST).argmax("time"))])
        name = f"init scale\n{scale:g}" if scale == scales[0] else f"{scale:g}"
        ax.annotate(name, (low, 2 * LEAST), (9, 0), textcoords="offset points", va="bottom")
    names = ("1 mode\nlearned", *(f"{count} modes" for count in range(2, len(stairs) + 1)))
    label_ends(ax, [(level, name, "0.4") for level, name in zip(stairs, names, strict=True)])
    ax.set_title("Small weights: loss falls in stairs")


def panel_e(results: Results, ax: Axes) -> None:
    """Time to half of each mode's target against its singular value, at each init scale.

    Means and ranges over 10 runs; dashed, the closed form from each run's weights; dotted, the time
    that the summary writes, for the smallest weights. The number is the largest distance from the
    closed form, from the smallest weights.
    """
    cell = results.cell("staircase")
    half = cell.get("metrics", "half_time")
    over = cell.get("metrics", "half_time_over_predicted")
    written = half / cell.get("metrics", "half_time_over_written")
    s = cell.strength.where(cell.strength != 0, drop=True)
    scales, ends = half["init_scale"].values, []
    for index, colour in enumerate(style.greys(len(scales))):
        at = {"init_scale": index, "mode": s["mode"].values - 1}
        by_mode = half.isel(at).transpose("mode", ...)
        props = {"color": colour, "marker": style.marker(index)}
        means = style.point_series(ax, s.values.tolist(), by_mode, **props)
        name = f"{scales[index]:g}"
        ends.append((means[0], f"init scale {name}" if index == 0 else name, colour))
        ax.plot(s, (half / over).isel(at).mean("seed"), **style.THEORY)
        if index == 0:
            summary = written.isel(at).mean("seed")
            ax.plot(s, summary, **style.PAPER)
            ends.append((float(summary[0]), f"summary, {name}", "0.35"))
    ax.set(xscale="log", yscale="log", xlabel="singular value $s$")
    ax.set_ylabel(r"time to $s/2$ (units of $\tau$)")
    ax.set_xticks(s.values, [f"{x:g}" for x in s.values])
    ax.minorticks_off()
    label_ends(ax, ends)
    off = float(abs(over.isel(init_scale=0) - 1).max())
    style.note(ax, f"init scale {scales[0]:g}:\ntheory within {off:.1%}")
    style.note(ax, "bars: range\nof 10 runs", "lower left")
    ax.set_title("Half times follow theory")


def _modes(cell: CellResults, index: int, ax: Axes, name: str) -> None:
    """Draws the modes from one init scale, and the share of a later mode, which has a name."""
    half = cell.get("metrics", "half_time").isel(init_scale=index).mean("seed")
    later = cell.get("metrics", "later_share").isel(init_scale=index)
    ax.vlines(half, 0, cell.strength / 2, **style.GUIDE)
    draw_strengths(ax, cell, "aligned_modes", index)
    ax.plot(half, cell.strength / 2, **HALF)
    ax.set_xlim(0, _end(cell))
    scale, share = float(later["init_scale"]), float(later.mean("seed"))
    note = f"init scale {scale:g}\n{name} {share:.0%}"
    # Between the lines of the two strongest modes.
    height = float(np.sort(cell.strength.values)[-2:].mean())
    ax.text(0.98 * _end(cell), height, note, ha="right", va="center", fontsize=6.5)


def _end(cell: CellResults) -> float:
    """The time at which all modes have been learned from the smallest weights."""
    smallest = cell.get("theory", "mode_strength", solution="aligned_modes").isel(init_scale=0)
    return learning_end(cell, smallest)
