r"""The phase plane of one mode, from unaligned vectors.

Encoder and decoder vector :math:`a` and :math:`b` of a mode that starts unaligned and does not
interfere with others. Figure 2 of Saxe, McClelland and Ganguli (2013) draws the plane of two
numbers :math:`a` and :math:`b` that follow :math:`\dot a = b(s - ab)`, :math:`\dot b = a(s - ab)`.
Vectors move in the same plane, if half the sum and half the difference of :math:`|a + b|` and
:math:`|a - b|` take the place of the two numbers: gradient flow keeps
:math:`|a + b||a - b|`, the difference of their squares, so that a mode moves along a hyperbola
until it is learned. An anonymous summary of the paper says that the vectors acquire the same
length; from starts that are not small they do not. Vectors that start equal stay equal, up to
rounding error.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from scipy.integrate import cumulative_simpson
from xarray import ufuncs

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.sweeps import finest, learning_rate
from neuralrace.results.cells import CellResults, Results
from neuralrace.results.gram import diagonal, vectors

LARGEST, SMALLER = 5.8, 0.7
"""Size of the strongest mode's markers in the plane, and that of each next one over the last."""
RUNS = (2, 4)
"""Number of runs of each mode that are drawn, from the smaller and from the larger start."""
KEPT = (0.3, 1.2, 2.4)
"""Sizes of the difference of squares along the guides."""
SAME = 0.025
"""Least difference between differences of squares of which both hyperbolas are drawn dashed."""
SIDE = 2.4
"""Half the side of the plane."""
CLEAR = 0.2
"""Distance of arrows from runs."""
ARROWS = 12
"""Arrows along a side of the plane."""
NOTE = {"fontsize": 6.5, "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 2}, "zorder": 5}
"""Text properties of notes in the plane, which stand on arrows."""


@Figure(
    layout="aab;aac",
    height=4.5,
    cf={"a": "Fig. 2"},
    reads={
        "unaligned": {
            "trajectory": "gram",
            "metrics": "final_gap log_ratio_slope product_drift",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Modes by strength."""
    theory = style.handle("gradient flow", **style.THEORY)
    return [*style.mode_handles(finest(results, "unaligned").strength), theory]


def panel_a(results: Results, ax: Axes) -> None:
    r"""Field of gradient flow (arrows), targets :math:`ab = s` (thick, grey) and single runs.

    Runs of all modes start at markers, two of each from the smaller init scale, one on each branch,
    and four from the larger one; markers are smaller for weaker modes, so that each is seen.
    Dashed, the hyperbolas that they keep, once where runs share one; some are drawn as a whole
    (thin). In units of :math:`\sqrt{|s|}`, and with the sign of :math:`b`
    changed where :math:`s < 0`, all modes share one field. The numbers :math:`a` and :math:`b` of a
    run are :math:`(|a + b| \pm |a - b|)/2`, the larger one for the vector that starts longer; the
    flow does not change if both change sign, and every second run is drawn so. Only starts on the
    line :math:`a = -b` never leave the origin. Numbers are the distance between both vectors at the
    end, over their length, mean over all runs and modes of a scale.
    """
    cell = finest(results, "unaligned")
    drawn, hyperbolas = [], []
    for index, (mode, colour) in enumerate(style.mode_colours(cell.strength).items()):
        size = LARGEST * SMALLER**index
        for scale, a, b in _runs(cell, mode):
            drawn.append(np.array([a, b]))
            ax.plot(a, b, color=colour, **style.SIMULATION)
            start = {"marker": style.marker(scale), "markersize": size, "zorder": 4}
            ax.plot(a[0], b[0], color=colour, **start)
            kept = float(a[0] ** 2 - b[0] ** 2)
            along = (a, np.sign(b[-1]) * np.sqrt(np.clip(a**2 - kept, 0, None)))
            other = (np.sign(a[-1]) * np.sqrt(np.clip(b**2 + kept, 0, None)), b)
            hyperbolas.append((kept, *(other if kept > 0 else along)))
    # The longest first: of runs on one hyperbola, whose dashes would merge into a line.
    shown: list[tuple[float, float]] = []
    for kept, a, b in sorted(hyperbolas, key=lambda each: -np.ptp(each[1:], axis=1).sum()):
        side = np.sign(a[-1])
        if not any(abs(kept - other) < SAME and side == its for other, its in shown):
            ax.plot(a, b, **style.THEORY)
            shown.append((kept, side))
    gaps = cell.get("metrics", "final_gap").mean(("seed", "mode"))
    handles = [
        style.handle(
            f"init scale {float(gap['init_scale']):g}: relative $|a - b|$ ends at {float(gap):.2f}",
            color="0.3", linestyle="", marker=style.marker(index),
        )
        for index, gap in enumerate(gaps)
    ]  # fmt: skip
    _draw_field(ax, np.concatenate(drawn, axis=1))
    box = {"frameon": True, "framealpha": 1, "edgecolor": "none", "handlelength": 1}
    ax.legend(handles=handles, loc=(0.41, 0.01), **box)
    note = "arrows: gradient flow\nthin: $a^2 - b^2$ constant\n$s < 0$: drawn with $-b$"
    style.note(ax, note, "upper left", **NOTE)
    ax.set(xlim=(-SIDE, SIDE), ylim=(-SIDE, SIDE), aspect="equal")
    ax.set(xlabel=r"encoder $a/\sqrt{|s|}$", ylabel=r"decoder $b/\sqrt{|s|}$")
    ax.set_title("Runs follow hyperbolas until $ab = s$")


def panel_b(results: Results, ax: Axes) -> None:
    r"""Difference over sum of the vectors (sum over difference where :math:`s < 0`) over time.

    From the smaller start. Dashed, its law of decay, :math:`-2\int(|s| - |a \cdot b|)dt` in the
    logarithm, integrated along the same runs. Means and ranges (thin) over 10 runs. Vectors that
    differ at the start still do at the end, which is the plateau.
    """
    cell = finest(results, "unaligned")
    time, sign = cell.flow_time, np.sign(cell.strength)
    total, difference = _sum_and_difference(cell, 0)
    ratio = (difference / total) ** sign
    rate = (abs(cell.strength) - sign * (total**2 - difference**2) / 4).transpose(*total.dims)
    axis = rate.get_axis_num("time")
    fall = rate.copy(data=cumulative_simpson(rate.values, x=time.values, axis=axis, initial=0))
    curves = ufuncs.log(ratio)
    theory = (curves.isel(time=0) - 2 * fall).mean("seed")
    for mode, colour in style.mode_colours(cell.strength).items():
        own = curves.sel(mode=mode)
        ax.plot(time, own.mean("seed"), color=colour, **style.SIMULATION)
        for edge in (own.min("seed"), own.max("seed")):  # bands of three modes would merge
            ax.plot(time, edge, color=colour, linewidth=0.6)
        ax.plot(time, theory.sel(mode=mode), **style.THEORY)
    ax.set(xlabel=style.FLOW_TIME, ylabel=r"$\log(|a - b|/|a + b|)$")
    ax.set_xlim(0, style.settling_time(curves, time))
    ax.set_ylim(ax.get_ylim()[0] - 1.5, None)
    slope = float(cell.get("metrics", "log_ratio_slope").mean())
    style.note(ax, f"slope over theory: {slope / 2:.3f}\nthin: range of 10 runs")
    style.note(ax, "plateaus: never quite equal", "lower right")
    ax.set_title("Vectors align at the rate of theory")


def panel_c(results: Results, ax: Axes) -> None:
    """Largest change of :math:`|a + b||a - b|` in a run, over its start, by learning rate.

    Gradient descent keeps it to first order in the step (thin, slope 1). Above, the same change of
    one of the two factors alone, of that which changes less: it is as large whatever the step.
    Means and ranges over 10 runs, from the smaller start; of one factor, means over all modes.
    """
    cells = results.cells("unaligned")
    rates = [learning_rate(cell) for cell in cells]
    drifts = [cell.get("metrics", "product_drift").isel(init_scale=0) for cell in cells]
    for mode, colour in style.mode_colours(cells[0].strength).items():
        own = [drift.sel(mode=mode) for drift in drifts]
        style.point_series(ax, rates, own, color=colour, marker=style.marker(0))
    alone = [_change_of_one(cell) for cell in cells]
    ax.plot(rates, alone, **style.GUIDE)
    first = [drift.isel(mode=0) for drift in drifts]
    style.slope_one(ax, rates, float(first[rates.index(max(rates))].mean()))
    style.loglog(ax, rates)
    ax.set(xlabel="learning rate", ylabel="largest relative change\nof $|a + b||a - b|$")
    ax.set_ylim(0.25 * min(float(drift.min()) for drift in drifts), 5 * max(alone))
    ax.text(min(rates), 1.15 * alone[0], "one factor alone", color="0.4", va="bottom")
    at = (min(rates), float(first[rates.index(min(rates))].mean()))
    ax.annotate("slope 1", at, (0, 8), textcoords="offset points", color="0.4")
    style.note(ax, "bars: range of 10 runs", "lower right")
    ax.set_title("Small steps conserve $|a + b||a - b|$")


def _draw_field(ax: Axes, runs: np.ndarray) -> None:
    """Arrows along gradient flow but near runs, branches of the target, hyperbolas, and the line
    that never leaves the origin.
    """
    a, b = np.meshgrid(*[np.linspace(-SIDE, SIDE, ARROWS)] * 2)
    near = np.hypot(a[..., None] - runs[0], b[..., None] - runs[1]).min(-1) < CLEAR
    a, b = a[~near], b[~near]
    speed = np.hypot(b, a) * abs(1 - a * b)
    # Lengths grow with the root of the speed, so that slow and fast parts are both seen.
    scale = (1 - a * b) / np.sqrt(np.where(speed > 0, speed, 1))
    arrows = {"color": "0.72", "width": 0.003, "scale": 60, "pivot": "mid", "zorder": 0.5}
    ax.quiver(a, b, scale * b, scale * a, **arrows)
    fine = np.geomspace(1 / SIDE, SIDE, 100)
    for side in (-1, 1):
        ax.plot(side * fine, side / fine, color="0.45", linewidth=2.5, zorder=1)
    ax.plot([-SIDE, SIDE], [SIDE, -SIDE], **style.GUIDE)
    faint: dict[str, Any] = style.GUIDE | {"color": "0.75"}
    wide = np.linspace(-1.1 * SIDE, 1.1 * SIDE, 100)
    for kept in KEPT:
        for side in (-1, 1):
            ax.plot(wide, side * np.sqrt(wide**2 + kept), **faint)
            ax.plot(side * np.sqrt(wide**2 + kept), wide, **faint)
    ax.text(0.56, 2.1, "learned: $ab = s$", **NOTE)
    ax.text(1.05, -1.45, "never learned: $a = -b$", **NOTE)


def _runs(cell: CellResults, mode: int) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Init scale (its position), a and b over time, in units of the root of the strength."""
    s = cell.strength.sel(mode=mode)
    encoder, decoder, _ = (diagonal(block).sel(mode=mode) for block in vectors(cell))
    runs = []
    for scale in range(encoder.sizes["init_scale"]):
        total, difference = (x.sel(mode=mode) for x in _sum_and_difference(cell, scale))
        for seed in range(min(RUNS[scale], total.sizes["seed"])):
            start = {"init_scale": scale, "seed": seed, "time": 0}
            half_sum, half_difference = (
                (total + way * difference).isel(seed=seed).values / np.sqrt(abs(float(s))) / 2
                for way in (1, -1)
            )
            pair = [half_sum, np.sign(float(s)) * half_difference]
            if encoder.isel(start) < decoder.isel(start):
                pair.reverse()
            first, second = ((-1) ** seed * x for x in pair)
            runs.append((scale, first, second))
    return runs


def _change_of_one(cell: CellResults) -> float:
    """Largest relative change of |a + b| or of |a - b|, whichever is less, from the smaller scale.

    Mean over runs and modes of the target.
    """
    total, difference = (
        abs(length / length.isel(time=0) - 1).max("time") for length in _sum_and_difference(cell, 0)
    )
    return float(ufuncs.fmin(total, difference).where(cell.strength != 0).mean())


def _sum_and_difference(cell: CellResults, scale: int) -> tuple[xr.DataArray, xr.DataArray]:
    """Lengths of a + b and a - b, by mode, from one init scale."""
    encoder, decoder, across = (diagonal(block).isel(init_scale=scale) for block in vectors(cell))
    total = ufuncs.sqrt(encoder + decoder + 2 * across)
    return total, ufuncs.sqrt((encoder + decoder - 2 * across).clip(min=0))
