r"""How long a mode takes against how strong it is.

"Speed of learning" of an anonymous summary of Saxe, McClelland and Ganguli (2013): from encoder and
decoder vectors that start equal, and perpendicular to those of other modes, each mode is a logistic
function of time. The rate at which a mode is learned is proportional to its strength, as the
summary concludes. The times that it writes in between, :math:`\log(s/\epsilon)/s` for each half,
are twice as long as the logistic function one line above them takes, which simulations follow.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from scipy.special import expit

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.modes import draw_strengths, label_modes
from neuralrace.figures.sweeps import smallest_scale_index
from neuralrace.results.cells import Results

SHOWN = 5.0
"""Growth is drawn from minus to plus this logistic time."""
END = 1.7
"""Growth is drawn until this time, in units of the summary's."""
DOTS = 12
"""Number of dots of each mode on the common curve."""
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
    paper = style.handle(r"summary: $\log(s/\epsilon)/s$", **style.PAPER)
    line = style.SIMULATION | {"color": "0.3", "marker": "o"}
    simulation = style.handle("simulation (lines, marks)", **line)
    return [simulation, theory, paper]


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

    Modes of all strengths (colours as in a) and starts fall on one logistic function. Dots are
    means of 3 runs, those of each mode at times between the others'. The number is the largest
    distance of a fitted rate from :math:`2s`.
    """
    cell = results.cell("time_to_learn")
    share = cell.get("trajectory", "mode_strength").mean("seed") / cell.strength
    half = cell.get("metrics", "half_time").mean("seed")
    for index in range(share.sizes["init_scale"]):
        at = {"init_scale": index}
        clock = 2 * cell.strength * (cell.flow_time - half.isel(at))
        _dots(ax, clock, share.isel(at), (-SHOWN, SHOWN))
    fine = np.linspace(-SHOWN, SHOWN, 100)
    ax.plot(fine, expit(fine), **style.THEORY)
    off = float(abs(cell.get("metrics", "logistic_rate") - 1).max())
    ax.text(1, 0.45, f"rates are $2s$\nwithin {off:.1%}", fontsize=6.5, va="top")
    ax.set(xlabel="$2s(t - t_{1/2})$", ylabel="strength over target $u/s$", xlim=(-SHOWN, SHOWN))
    ax.set_title("All modes lie on one logistic curve")


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
    s, smallest = cell.strength, smallest_scale_index(cell)
    scales, ends = half["init_scale"].values, []
    for index, colour in enumerate(style.greys(len(scales))):
        values = half.isel(init_scale=index).transpose("mode", ...)
        props = {"color": colour, "marker": style.marker(index)}
        means = style.point_series(ax, s.values.tolist(), values, **props)
        name = f"{scales[index]:g}"
        ends.append((means[0], f"init scale {name}" if index == smallest else name, colour))
        ax.plot(s, predicted.isel(init_scale=index), **style.THEORY)
    ax.plot(s, written.isel(init_scale=smallest), **style.PAPER)
    # Above the line of the smallest start, which it would else meet at its end.
    inverse = 1.3 * predicted.isel(init_scale=smallest, mode=0) * s[0] / s
    ax.plot(s, inverse, **style.GUIDE)
    ends.append((float(inverse[0]), r"$\propto 1/s$", "0.5"))
    style.note(ax, f"dotted: summary for {scales[smallest]:g}")
    ax.set(xscale="log", yscale="log", ylabel=r"time to $s/2$ (units of $\tau$)")
    ax.set_xlabel("singular value $s$")
    ax.set_xticks(s.values, [f"{x:g}" for x in s.values])
    ax.minorticks_off()
    label_ends(ax, ends)
    equal = f"$s$ times time is equal\nwithin a factor of {float(spread[smallest]):.2f}"
    style.note(ax, f"init scale {scales[smallest]:g}:\n{equal}", "lower left")
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
    _dots(ax, cell.flow_time / unit, share, (0, END))
    fine, logarithm = np.linspace(0, END, 100), float((cell.strength * unit).mean())
    ax.plot(fine, expit(logarithm * (2 * fine - 1)), **style.THEORY)
    ax.plot(fine, expit(logarithm * (fine - 1)), **style.PAPER)
    ax.axhline(0.5, **style.GUIDE)
    style.name_level(ax, 0.5, "half")
    shares = f"first half {float(first.mean()):.3f},\nsecond {float(second.mean()):.3f} of"
    note = f"{shares}\nthe summary's time"
    ax.text(0.99 * END, 0.46, note, ha="right", va="top", fontsize=6.5)
    ax.set(xlabel=r"time over $\log(s/\epsilon)/s$", xlim=(0, END))
    ax.set_ylabel("$u/s$ (as in b)")
    ax.set_title("Each half takes half the summary's time")


def _dots(
    ax: Axes, clock: xr.DataArray, share: xr.DataArray, ends: tuple[int | float, int | float]
) -> None:
    """Dots of all modes on their common curve, each mode at times between those of the others.

    Args:
        ax: axes to draw on.
        clock: rescaled time, (time, mode).
        share: strengths over their targets, (time, mode).
        ends: first and last time that is shown.
    """
    colours = style.mode_colours(share.isel(time=-1))
    step = (ends[1] - ends[0]) / DOTS
    for number, (mode, colour) in enumerate(colours.items()):
        own, curve = clock.sel(mode=mode).values, share.sel(mode=mode).values
        at = np.arange(ends[0] + step * number / len(colours), ends[1], step)
        at = at[(at >= own[0]) & (at <= own[-1])]
        dots = {"color": colour, "marker": "o", "markersize": 4, "linestyle": ""}
        ax.plot(at, np.interp(at, own, curve), **dots)
