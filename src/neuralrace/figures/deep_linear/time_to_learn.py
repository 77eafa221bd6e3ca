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
from neuralrace.figures.modes import draw_strengths
from neuralrace.figures.sweeps import smallest_scale_index
from neuralrace.results.cells import CellResults, Results

SHOWN = 5.0
"""Growth is drawn from minus to plus this logistic time."""
MARKED = 12
"""Number of dots of a mode on the logistic function."""
HALVES = ("half_time", "half_time_over_written", "second_half_over_written")


@Figure(
    layout="aabbcc;dddeee",
    height=3.9,
    cf={
        "b": "logistic function",
        "c": "first bullet",
        "d": "bullets",
        "e": "last sentence",
    },
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
    """Init scales, theory, and the time in the summary."""
    styles = _styles(results.cell("time_to_learn"))
    scales = [
        style.handle(f"scale {scale:g}", linestyle="none", **props)
        for scale, props in styles.items()
    ]
    theory = style.handle("logistic function", **style.THEORY)
    paper = style.handle(r"Saxe et al.: $\log(s/\epsilon)/s$", **style.PAPER)
    return [*scales, theory, paper]


def panel_a(results: Results, ax: Axes) -> None:
    """Mode strengths from the smallest aligned start.

    The range over seeds is narrower than the lines.
    """
    cell = results.cell("time_to_learn")
    draw_strengths(ax, cell, "aligned_modes", smallest_scale_index(cell))
    colours = style.mode_colours(cell.strength)
    for mode in (min(colours), max(colours)):
        s = float(cell.strength.sel(mode=mode))
        end = {"x": ax.get_xlim()[1], "y": s, "va": "center", "fontsize": 6.5}
        ax.text(s=f" $s$ = {s:g}", color=colours[mode], **end)
    ax.set_title(f"{len(cell.strength)} modes grow one by one, each to its $s$")


def panel_b(results: Results, ax: Axes) -> None:
    """Share of its target that each mode has, against time from its half in units of :math:`1/2s`.

    Modes of all strengths and starts fall on one logistic function.
    """
    cell = results.cell("time_to_learn")
    share = cell.get("trajectory", "mode_strength").mean("seed") / cell.strength
    half = cell.get("metrics", "half_time").mean("seed")
    rate = cell.get("metrics", "logistic_rate")
    marked = np.linspace(-SHOWN, SHOWN, MARKED)
    for index, props in enumerate(_styles(cell).values()):
        for mode, s in enumerate(cell.strength.values):
            centre = float(half.isel(init_scale=index, mode=mode))
            clock = 2 * s * (cell.flow_time.values - centre)
            at = np.unique(np.searchsorted(clock, marked).clip(max=len(clock) - 1))
            shares = share.isel(init_scale=index, mode=mode).values[at]
            ax.plot(clock[at], shares, linestyle="none", **{**props, "markersize": 2})
    fine = np.linspace(-SHOWN, SHOWN, 100)
    ax.plot(fine, expit(fine), **style.THEORY)
    ax.set(xlabel="$2s(t - t_{1/2})$", ylabel="strength over target $u/s$", xlim=(-SHOWN, SHOWN))
    off = float(abs(rate - 1).max())
    ax.set_title(f"All modes on one curve, of rate $2s$ within {off:.1%}")


def panel_c(results: Results, ax: Axes) -> None:
    r"""Time to half of each mode's target against the inverse of its singular value.

    It lies on the closed form :math:`\log(s/\epsilon - 1)/2s` (dashed), half of what the summary
    writes (dotted).
    """
    cell = results.cell("time_to_learn")
    half = cell.get("metrics", "half_time")
    over = cell.get("metrics", "half_time_over_written")
    predicted = (half / cell.get("metrics", "half_time_over_predicted")).mean("seed")
    written = (half / over).mean("seed")
    inverse = (1 / cell.strength).values
    for index, props in enumerate(_styles(cell).values()):
        for mode, x in enumerate(inverse):
            style.points(ax, float(x), half.isel(init_scale=index, mode=mode), **props)
        ax.plot(inverse, predicted.isel(init_scale=index), **style.THEORY)
        ax.plot(inverse, written.isel(init_scale=index), **style.PAPER)
    ax.set(xscale="log", yscale="log", ylabel=r"time to $s/2$ (units of $\tau$)")
    ax.set_xlabel("inverse singular value $1/s$")
    ax.set_xticks(inverse, [f"{x:.2g}" for x in inverse])
    ax.minorticks_off()
    ax.set_title(f"Time to half: {float(over.mean()):.2f} of the summary's")


def panel_d(results: Results, ax: Axes) -> None:
    r"""Share of its target that each mode has, against time over :math:`\log(s/\epsilon)/s`.

    That time is what the summary writes for each half. From the smallest start half is reached at
    0.5, and the end as long after that; dotted, a mode that takes what is written.
    """
    cell = results.cell("time_to_learn")
    at = {"init_scale": smallest_scale_index(cell)}
    share = (cell.get("trajectory", "mode_strength") / cell.strength).isel(at).mean("seed")
    half, first, second = (cell.get("metrics", name).isel(at) for name in HALVES)
    unit = (half / first).mean("seed")
    for mode, colour in style.mode_colours(cell.strength).items():
        clock = cell.flow_time / float(unit.sel(mode=mode))
        ax.plot(clock[clock < 2], share.sel(mode=mode)[clock < 2], color=colour)
    fine, logarithm = np.linspace(0, 2, 100), float((cell.strength * unit).mean())
    ax.plot(fine, expit(logarithm * (2 * fine - 1)), **style.THEORY)
    ax.plot(fine, expit(logarithm * (fine - 1)), **style.PAPER)
    ax.axhline(0.5, **style.GUIDE)
    ax.set(
        xlabel=r"time over $\log(s/\epsilon)/s$", ylabel="strength over target $u/s$", xlim=(0, 2)
    )
    ratio = float((second / first).mean())
    ax.set_title(f"Each half takes {float(first.mean()):.2f}; their ratio is {ratio:.3f}")


def panel_e(results: Results, ax: Axes) -> None:
    """Time to half of each mode's target times its strength, over the mean of all modes.

    It is flat where the rate is proportional to the strength, as it is the more the smaller the
    start; thin, a rate proportional to the root of the strength.
    """
    cell = results.cell("time_to_learn")
    product = cell.get("metrics", "half_time_times_s")
    s = cell.strength.values
    over = product / product.mean("mode")
    for index, props in enumerate(_styles(cell).values()):
        for mode, x in enumerate(s):
            style.points(ax, float(x), over.isel(init_scale=index, mode=mode), **props)
    ax.axhline(1, **style.GUIDE)
    roots = np.sqrt(s) / np.sqrt(s).mean()
    ax.plot(s, roots, **style.GUIDE)
    ax.text(s[1], roots[1], r"rate as $\sqrt{s}$ ", color="0.4", ha="right", fontsize=6.5)
    ax.set(xscale="log", ylim=(0.5, 1.7), xlabel="singular value $s$")
    ax.set_ylabel("$s$ times time to $s/2$\n(mean over modes)")
    ax.set_xticks(s, [f"{x:g}" for x in s])
    ax.minorticks_off()
    off = float(abs(over.isel(init_scale=smallest_scale_index(cell)) - 1).max())
    ax.set_title(f"Rates are as $s$, within {off:.0%} from the smallest start")


def _styles(cell: CellResults) -> dict[float, dict[str, Any]]:
    """Colour and marker of each init scale."""
    scales = cell.trajectory["init_scale"].values.tolist()
    return dict(zip(scales, style.sequential_styles(len(scales)), strict=True))
