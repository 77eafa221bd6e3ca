r"""How long a mode takes against how strong it is.

"Speed of learning" of the summary of Saxe, McClelland and Ganguli (2013): from encoder and decoder
vectors that start equal, and perpendicular to those of other modes, each mode is a logistic
function of time. The rate at which a mode is learned is proportional to its strength, as the
summary concludes. The times that it writes in between, :math:`\log(s/\epsilon)/s` for each half,
are twice as long as the logistic function one line above them takes, which simulations follow.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.special import expit

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.modes import draw_strengths, label_modes
from neuralrace.figures.sweeps import smallest_scale_index
from neuralrace.results.cells import CellResults, Results

SHOWN = 5.0
"""Growth is drawn from minus to plus this logistic time."""
HALVES = ("half_time", "half_time_over_written", "second_half_over_written")


@Figure(
    layout="ab;cd",
    height=4.3,
    cf={"b": "logistic function", "c": "first bullet", "d": "bullets"},
    reads={
        "time_to_learn": {
            "trajectory": "mode_strength",
            "theory": "mode_strength",
            "metrics": (
                "half_time half_time_over_predicted half_time_over_written half_time_times_s "
                "logistic_rate second_half_over_written"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Theory, and the time in the summary."""
    theory = style.handle("logistic function", **style.THEORY)
    paper = style.handle(r"Saxe et al.: $\log(s/\epsilon)/s$", **style.PAPER)
    return [style.handle("simulation", color="0.3", **style.SIMULATION), theory, paper]


def panel_a(results: Results, ax: Axes) -> None:
    """Mode strengths from the smallest aligned start.

    Means of 3 runs; their range is narrower than the lines. Vectors that start equal, and
    perpendicular to those of other modes, stay so up to rounding error.
    """
    cell = results.cell("time_to_learn")
    draw_strengths(ax, cell, "aligned_modes", smallest_scale_index(cell))
    label_modes(ax, cell.strength)
    ax.set_title("Stronger modes are learned first")


def panel_b(results: Results, ax: Axes) -> None:
    """Share of its target that each mode has, against time from its half in units of :math:`1/2s`.

    Modes of all strengths and starts fall on one logistic function. The number is the largest
    distance of a fitted rate from :math:`2s`.
    """
    cell = results.cell("time_to_learn")
    share = cell.get("trajectory", "mode_strength").mean("seed") / cell.strength
    half = cell.get("metrics", "half_time").mean("seed")
    for mode, line in _ribbons(cell).items():
        for index in range(share.sizes["init_scale"]):
            at = {"init_scale": index, "mode": mode - 1}
            clock = 2 * float(cell.strength.sel(mode=mode)) * (cell.flow_time - half.isel(at))
            shown = abs(clock) < SHOWN
            ax.plot(clock[shown], share.isel(at)[shown], **line)
    fine = np.linspace(-SHOWN, SHOWN, 100)
    ax.plot(fine, expit(fine), **style.THEORY)
    off = float(abs(cell.get("metrics", "logistic_rate") - 1).max())
    ax.text(1, 0.45, f"rates are $2s$\nwithin {off:.1%}", fontsize=6.5, va="top")
    ax.set(xlabel="$2s(t - t_{1/2})$", ylabel="strength over target $u/s$", xlim=(-SHOWN, SHOWN))
    ax.set_title("All modes follow one logistic function")


def panel_c(results: Results, ax: Axes) -> None:
    r"""Time to half of each mode's target against its singular value, by init scale.

    It lies on the closed form :math:`\log(s/\epsilon - 1)/2s` (dashed), half of what the summary
    writes (dotted, for the smallest start). Thin, times in inverse proportion to :math:`s`; the
    number is the largest over the smallest :math:`s` times the time, from the smallest start.
    """
    cell = results.cell("time_to_learn")
    half, product = (cell.get("metrics", name) for name in ("half_time", "half_time_times_s"))
    predicted = (half / cell.get("metrics", "half_time_over_predicted")).mean("seed")
    written = (half / cell.get("metrics", "half_time_over_written")).mean("seed")
    spread = (product.max("mode") / product.min("mode")).mean("seed")
    s, last = cell.strength, half.mean("seed").isel(mode=-1)
    for index, props in enumerate(style.sequential_styles(half.sizes["init_scale"])):
        values = half.isel(init_scale=index).transpose("mode", ...)
        style.point_series(ax, s.values.tolist(), values, **props)
        ax.plot(s, predicted.isel(init_scale=index), **style.THEORY)
        scale = f"  scale {float(half['init_scale'][index]):g}"
        end = {"x": float(s[-1]), "y": float(last[index]), "va": "center", "fontsize": 6.5}
        ax.text(s=scale, color=props["color"], **end)
    smallest = smallest_scale_index(cell)
    ax.plot(s, written.isel(init_scale=smallest), **style.PAPER)
    ax.plot(s, predicted.isel(init_scale=smallest, mode=0) * s[0] / s, **style.GUIDE)
    ax.set(xscale="log", yscale="log", ylabel=r"time to $s/2$ (units of $\tau$)")
    ax.set_xlabel("singular value $s$")
    ax.set_xticks(s.values, [f"{x:g}" for x in s.values])
    ax.invert_xaxis()
    ax.minorticks_off()
    note = f"$s$ times time: equal within\na factor of {float(spread[smallest]):.2f}"
    ax.text(0.97, 0.04, note, transform=ax.transAxes, ha="right", fontsize=6.5)
    ax.set_title("Twice as strong, about twice as fast")


def panel_d(results: Results, ax: Axes) -> None:
    r"""Share of its target that each mode has, against time over :math:`\log(s/\epsilon)/s`.

    That time is what the summary writes for each half. From the smallest start, half is reached at
    half of it, and the end as long after that; dotted, a mode that takes what is written.
    """
    cell = results.cell("time_to_learn")
    at = {"init_scale": smallest_scale_index(cell)}
    share = (cell.get("trajectory", "mode_strength") / cell.strength).isel(at).mean("seed")
    half, first, second = (cell.get("metrics", name).isel(at) for name in HALVES)
    unit = (half / first).mean("seed")
    for mode, line in _ribbons(cell).items():
        clock = cell.flow_time / float(unit.sel(mode=mode))
        shown = clock < 2
        ax.plot(clock[shown], share.sel(mode=mode)[shown], **line)
    fine, logarithm = np.linspace(0, 2, 100), float((cell.strength * unit).mean())
    ax.plot(fine, expit(logarithm * (2 * fine - 1)), **style.THEORY)
    ax.plot(fine, expit(logarithm * (fine - 1)), **style.PAPER)
    ax.axhline(0.5, **style.GUIDE)
    note = f"first half {float(first.mean()):.3f}\nsecond half {float(second.mean()):.3f}"
    ax.text(1.98, 0.46, note, ha="right", va="top", fontsize=6.5)
    ax.set(xlabel=r"time over $\log(s/\epsilon)/s$", xlim=(0, 2))
    ax.set_ylabel("strength over target $u/s$")
    ax.set_title("Each half takes half the written time")


def _ribbons(cell: CellResults) -> dict[int, dict[str, Any]]:
    """Lines of modes that coincide: wide and dark for a strong mode, thin on top for a weak one."""
    colours = style.mode_colours(cell.strength)
    widths = np.linspace(7, 1.5, len(colours))
    return {
        mode: {"color": colour, "linewidth": width}
        for (mode, colour), width in zip(colours.items(), widths, strict=True)
    }
