"""Encoder and decoder vectors align, grow, and repel those of other modes.

"Summary of the dynamics" in an anonymous text on Saxe, McClelland and Ganguli (2013), from small
random weights on a diagonal task with positive and negative strengths: the vectors of a mode
quickly align, to the same or the opposite direction as the strength has its sign; they acquire the
same length, and end with the root of the strength; and modes that are learned push all other
vectors into the space that is perpendicular to their own. The source makes these points in words
and prints no numbers.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from xarray import ufuncs

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.modes import learning_end
from neuralrace.results.cells import CellResults, Results
from neuralrace.results.gram import diagonal, vectors

LEARNED = 0.99
"""A mode is learned if its strength is at least this share of its target."""
MARKED = 16
"""Times at which decoder vectors are marked."""
NOTE: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": 6.5}
RUN: dict[str, Any] = {"color": "0.35", "markersize": 2, "marker": "o", "alpha": 0.6}
"""Dots of single runs."""


@Figure(
    layout="abc;dde",
    height=4.2,
    heights=(1, 1.1),
    cf={"a": "2nd point", "b": "1st point", "c": "3rd point", "d": "4th point", "e": "4th point"},
    reads={
        "alignment": {
            "trajectory": "gram mode_strength",
            "metrics": (
                "alignment_over_growth final_overlap growth_time initial_overlap "
                "overlap_of_others overlap_with_learned"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Simulation and theory; modes are named in b and c."""
    simulation = style.handle("mean of 40 runs", color="0.3", **style.SIMULATION)
    theory = style.handle("theory", **style.THEORY)
    run = style.handle("one run", linestyle="", **RUN)
    return [simulation, style.BAND, theory, run, style.handle("median", color="0.2", linewidth=1.2)]


def panel_a(results: Results, ax: Axes) -> None:
    """Cosine between the encoder and the decoder vector of each mode.

    It goes to 1 where the strength is positive and to -1 where it is negative. A circle is where
    the mode has grown to half its target. Means and ranges over 40 runs. The number is the time to
    a cosine of 0.9 over the time to half of the target, the largest of all modes and runs.
    """
    cell = results.cell("alignment")
    encoder, decoder, across = (diagonal(block) for block in _blocks(cell))
    cosine = across / ufuncs.sqrt(encoder * decoder)
    grown = cell.get("metrics", "growth_time").isel(init_scale=0).mean("seed")
    for mode, props in _styles(cell).items():
        style.over_seeds(ax, cell.flow_time, cosine.sel(mode=mode), **props)
        sign = np.sign(float(cell.strength.sel(mode=mode)))
        ax.plot(float(grown.sel(mode=mode)), sign, **_dot(props))
    for sign in (-1, 1):
        ax.axhline(sign, **style.THEORY)
    ax.set(xlabel=style.FLOW_TIME, ylabel="cosine", yticks=(-1, 0, 1))
    ax.set_xlim(0, _end(cell))
    share = float(cell.get("metrics", "alignment_over_growth").max())
    note = f"circles: half grown\ncosine of 0.9 by {share:.0%}\nof that time"
    ax.text(_end(cell), 0, note, **NOTE)
    ax.set_title("Vectors align first")


def panel_b(results: Results, ax: Axes) -> None:
    """Strength of each mode over its target.

    Modes take their turn by the size of the strength, whatever its sign.
    """
    cell = results.cell("alignment")
    share = cell.get("trajectory", "mode_strength").isel(init_scale=0) / cell.target
    for mode, props in _styles(cell).items():
        label = f"$s = {float(cell.strength.sel(mode=mode)):g}$"
        style.over_seeds(ax, cell.flow_time, share.sel(mode=mode), label=label, **props)
    ax.set(xlabel=style.FLOW_TIME, ylabel="strength over target", xlim=(0, _end(cell)))
    ax.legend(loc="lower right", handlelength=0.8, labelspacing=0.1)
    ax.set_title("Larger $|s|$ is learned first")


def panel_c(results: Results, ax: Axes) -> None:
    """Lengths of encoder vectors (lines) and of decoder vectors (circles, means over runs).

    Both grow alike, to the root of the strength, by which modes are named.
    """
    cell = results.cell("alignment")
    encoder, decoder, _ = (diagonal(block) for block in _blocks(cell))
    time, ends = cell.flow_time, []
    every = max(len(time) // MARKED, 1)
    for mode, props in _styles(cell).items():
        style.over_seeds(ax, time, ufuncs.sqrt(encoder.sel(mode=mode)), **props)
        length = ufuncs.sqrt(decoder.sel(mode=mode)).mean("seed")
        ax.plot(time[::every], length[::every], **_dot(props))
        strength = float(cell.strength.sel(mode=mode))
        ax.axhline(np.sqrt(abs(strength)), **style.THEORY)
        ends.append((np.sqrt(abs(strength)), f"$s = {strength:g}$", props["color"]))
    ax.set(xlabel=style.FLOW_TIME, ylabel="length of vectors", xlim=(0, _end(cell)))
    style.note(ax, "lines: encoder\ncircles: decoder", "lower right")
    label_ends(ax, ends)
    ax.set_title(r"Both end at length $\sqrt{|s|}$")


def panel_d(results: Results, ax: Axes) -> None:
    """Cosines between the encoder vectors (rows) and decoder vectors (columns) in one run.

    Of median cosine between the modes that are not learned. Modes stand in the order of their
    strength; at the start, when the first mode is learned, and at the end. Once a mode is learned,
    its row and column are empty but for itself.
    """
    cell = results.cell("alignment")
    order = list(_styles(cell))
    run = style.median_seed(cell.get("metrics", "overlap_of_others").isel(init_scale=0))
    encoder, decoder, across = (
        block.sel(seed=run, mode=order, other_mode=order) for block in _blocks(cell)
    )
    squares = diagonal(encoder) * diagonal(decoder).rename(mode="other_mode")
    cosine = (across / ufuncs.sqrt(squares)).transpose("time", "mode", "other_mode")
    share = cell.get("trajectory", "mode_strength").isel(init_scale=0).sel(seed=run) / cell.target
    learned = (share.sel(mode=order) >= LEARNED).any("mode")
    moments = {"start": 0, "first mode learned": int(learned.argmax("time")), "end": -1}
    names = [f"${float(cell.strength.sel(mode=mode)):g}$" for mode in order]
    frames = style.split(ax, 1, len(moments), wspace=0.1)[0]
    for frame, (moment, index) in zip(frames, moments.items(), strict=True):
        rows = names if frame is frames[0] else ()
        shades = style.heat(frame, cosine.values[index], -1, 1, rows)
        frame.set_xticks(range(len(names)), names)
        frame.set_xlabel("decoder of mode $s$")
        frame.set_title(moment, loc="center")
    frames[0].set_ylabel("encoder of mode $s$")
    bar = ax.figure.colorbar(shades, ax=frames.tolist(), ticks=(-1, 0, 1), pad=0.02)
    bar.ax.set_title("cosine", loc="left")
    ax.set_title("Learned modes repel all others")


def panel_e(results: Results, ax: Axes) -> None:
    """Largest size of a cosine between vectors of different modes, in each of 40 runs.

    Before training; when the first mode is learned, between its vectors and all others, and between
    the two modes that have grown least; and at the end. Bars are medians.
    """
    cell = results.cell("alignment")
    columns = {
        "start": "initial_overlap",
        "learned\nmode": "overlap_with_learned",
        "last two\nmodes": "overlap_of_others",
        "end": "final_overlap",
    }
    ax.update_datalim([(0, 0)])
    for column, metric in enumerate(columns.values()):
        values = cell.get("metrics", metric).isel(init_scale=0)
        style.single_runs(ax, column, values, 0.3, **RUN)
    style.named_columns(ax, columns)
    above = {"xycoords": ax.get_xaxis_transform(), "ha": "center", "va": "bottom", "fontsize": 6.5}
    bracket = {"arrowstyle": "-[, widthB=5.2, lengthB=0.5", "linewidth": 0.7}
    ax.annotate(
        "when the first\nmode is learned", (1.5, 0.68), (0, 8), textcoords="offset points",
        arrowprops=bracket, **above,
    )  # fmt: skip
    ax.set(ylabel="largest |cosine| between modes", ylim=(-0.03, None))
    ax.set_title("Unlearned modes still overlap")


def _blocks(cell: CellResults) -> list[xr.DataArray]:
    """Inner products by mode at the first init scale."""
    return [block.isel(init_scale=0) for block in vectors(cell)]


def _end(cell: CellResults) -> float:
    """The time at which all modes have grown."""
    return learning_end(
        cell, cell.get("trajectory", "mode_strength").isel(init_scale=0) / cell.target
    )


def _dot(props: dict[str, Any]) -> dict[str, Any]:
    dot = {"marker": "o", "markersize": 3, "markerfacecolor": "white", "zorder": 4}
    return props | dot | {"linestyle": ""}


def _styles(cell: CellResults) -> dict[int, dict[str, Any]]:
    """Line of each mode: darker for a stronger mode."""
    s = cell.strength
    ranked = [mode for mode in s.sortby(-abs(s))["mode"].values.tolist() if s.sel(mode=mode) != 0]
    return {
        mode: {"color": colour}
        for mode, colour in zip(ranked, style.sequential(len(ranked)), strict=True)
    }
