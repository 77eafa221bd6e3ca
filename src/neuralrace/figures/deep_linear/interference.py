"""How fast modes cease to interfere.

"Speed of lowering interference" of an anonymous summary of Saxe, McClelland and Ganguli (2013),
whose author calls it speculation of their own, not of the paper. Encoder and decoder are tied, and
the vectors of modes start with cosines between them. By the summary's equation a cosine decays at
the sum of the two squared norms, up to second-order effects; its prose says, at a rate proportional
to the larger of the two. Simulations follow the sum: the larger norm has no one constant. Among
many modes products of cosines take over where a cosine is small, which the exact solution of the
matrix equation includes.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from xarray import ufuncs

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.metrics.linear.interference import READ_UNTIL
from neuralrace.results.cells import CellResults, Results
from neuralrace.results.gram import diagonal, vectors
from neuralrace.theory.tied import cosines, first_order_interference

FLOOR = 1e-3
"""Smaller shares of the initial cosine are not drawn."""
WEAKEST = {"mode": -2, "other_mode": -1}
"""Position of the two weakest modes."""
BLUE = style.categorical(0)
SIMULATED = style.SIMULATION | {"color": BLUE, "linewidth": 4.0}
SHADE = {"color": "0.9", "linewidth": 0, "zorder": 0}


@Figure(
    layout="aa;bc",
    height=4.8,
    cf={"a": "last equation", "b": "last paragraph", "c": "second-order"},
    reads={
        "interference_pair": {
            "trajectory": "gram",
            "metrics": "decay_over_larger",
        },
        "interference_strengths": {
            "trajectory": "gram",
            "metrics": "decay_over_larger fall_after_growth fall_before_growth",
        },
        "interference_many": {
            "trajectory": "gram",
            "theory": "gram",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Simulation and theory."""
    return [
        style.handle("simulation: mean, range (c: one run)", **SIMULATED),
        style.handle("theory", **style.THEORY),
        style.handle("summary, where it differs", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Rate at which the logarithm of the cosine between two vectors falls.

    For equal and unequal strengths of the two modes. The rate is drawn until the cosine is a
    thousandth of its start. Dashed, the sum of the squared norms, as the summary's equation has it;
    dotted, the larger one, as its prose has it; means and ranges over 20 runs. The number is the
    decay until the cosine has fallen to :math:`e^{-2}`, 0.14 of its start, over the integral of the
    larger one until then, mean over runs. It is less than the sum over the larger one at the end
    (in brackets), as one vector grows before the other.
    """
    cells = _pairs(results)
    frames = style.split(ax, 1, len(cells), sharex=True, sharey=True, wspace=0.06)[0]
    ends = []
    for frame, cell in zip(frames, cells, strict=True):
        gram, time = _gram(cell), cell.flow_time
        share = _share(gram, cosines(gram.values))
        lasting = share > FLOOR
        rate = -ufuncs.log(share.where(lasting)).differentiate("flow_time")
        norms = diagonal(gram)
        style.over_seeds(frame, time, rate, **SIMULATED)
        frame.plot(time, norms.sum("mode").mean("seed"), **style.THEORY)
        frame.plot(time, norms.max("mode").mean("seed"), **style.PAPER)
        ends.append(float(time[lasting.any("seed")].max()))
        frame.set_xlabel(style.FLOW_TIME)
        strengths = " and ".join(f"{s:g}" for s in cell.strength.values)
        frame.set_title(f"strengths {strengths}", loc="center")
        larger = float(cell.get("metrics", "decay_over_larger").mean())
        both = float(cell.strength.sum() / cell.strength.max())
        rate = f"{larger:.2f} \u00d7 larger squared norm"
        note = f"mean rate =\n{rate}\n({both:.3g} when both have grown)"
        style.note(frame, note, "lower right", fontsize=style.RC_PARAMS["font.size"])
    end = max(ends)
    norms = diagonal(_gram(cells[0])).where(cells[0].flow_time <= end).mean("seed").max("time")
    for value, name in (
        (norms.sum("mode"), "summary, equation:\nsum of squared norms"),
        (norms.max("mode"), "summary, prose:\nlarger squared norm"),
    ):
        at = (0.99 * end, float(value))
        frames[0].annotate(name, at, (0, 5), textcoords="offset points", ha="right")
    frames[0].set(ylabel="decay rate of the cosine", ylim=(0, 1.3 * frames[0].get_ylim()[1]))
    frames[0].set_xlim(0, end)
    until = f"drawn until the cosine is {FLOOR:g} of\nits start, mean rates until {READ_UNTIL:.2f}"
    style.note(frames[-1], until)
    ax.set_title("Cosines decay at the sum of squared norms")


def panel_b(results: Results, ax: Axes) -> None:
    """Cosine between two vectors of which one alone grows, over its start, strengths 2 and 0.2.

    Means and ranges over 20 runs; dashed, decay at the sum of the squared norms. The thin line is
    where the squared norm of that one is at half its end. Numbers are by which factor
    the cosine falls until then, and in as long a time after (shaded), means of logarithms.
    """
    cell = _pairs(results)[-1]
    gram, time = _gram(cell), cell.flow_time
    share = _share(gram, cosines(gram.values))
    style.over_seeds(ax, time, share, **SIMULATED)
    predicted = _share(gram, first_order_interference(time.values, gram.values))
    ax.plot(time, predicted.mean("seed"), **style.THEORY)
    norm = diagonal(gram).isel(mode=0)
    grown = (norm / norm.isel(time=-1, drop=True)).mean("seed")
    half = float(time[int((grown > 0.5).argmax("time"))])
    ax.axvline(half, **style.GUIDE)
    ax.axvspan(half, 2 * half, **SHADE)
    low = 0.5 * float(share.where(time <= 2 * half).min())
    for x, side, name in ((0.5, "before", "before"), (1.5, "after", "after")):
        fall = float(np.exp(cell.get("metrics", f"fall_{side}_growth").mean()))
        ax.text(x * half, 1.25 * low, f"{name}: falls\n{fall:.1f}-fold", ha="center", va="bottom")
    ax.annotate("one vector\nhalf grown", (half, 1.1), (4, 0), textcoords="offset points", va="top")
    strengths = " and ".join(f"{s:g}" for s in cell.strength.values)
    ax.text(0.5 * half, 0.35, f"strengths {strengths}", ha="center")
    ax.set(yscale="log", ylim=(low, 1.25), xlim=(0, 2 * half))
    ax.set(xlabel=style.FLOW_TIME, ylabel="cosine over its start")
    ax.set_yticks([0.1, 1], ["0.1", "1"])
    ax.set_title("Cosines fall once one vector has grown")


def panel_c(results: Results, ax: Axes) -> None:
    """Cosine between the two weakest of six modes, in two of 20 runs.

    They are those whose largest distance from the summary's equation (dotted) is the largest and
    the median. The exact solution (dashed) has second-order effects. Numbers are that distance, in
    units of the cosine; on the left, its median with two modes, of strengths 2 and 1, where there
    is nothing of second order.
    """
    cell = results.cell("interference_many")
    time, solved = cell.flow_time, _solved(cell)
    simulated, law, off = _weakest(cell)
    exact = solved.copy(data=cosines(solved.values)).isel(WEAKEST)
    ranked = np.argsort(np.nan_to_num(off.values))
    for run, rank, up in ((ranked[len(ranked) // 2], "median", 1), (ranked[-1], "worst", -1)):
        at = {"seed": int(run)}
        ax.plot(time, simulated.isel(at), **SIMULATED)
        ax.plot(time, exact.isel(at), **style.THEORY)
        ax.plot(time, law.isel(at), **style.PAPER)
        line = law.isel(at)
        half = int((abs(line) < 0.5 * abs(line.isel(time=0))).argmax("time"))
        ax.annotate(
            f"{rank} run: equation\n(dotted) off by\nup to {float(off.isel(at)):.1g}",
            (float(time[half]), float(line[half])), (20, 4 * up), textcoords="offset points",
            va="bottom" if up > 0 else "top",
        )  # fmt: skip
    *_, two = _weakest(results.cell("interference_pair"))
    text = f"with two modes:\noff by {float(two.median()):.1g} (median)"
    style.note_at(ax, text, (0, 0), (6, 0), va="center")
    ax.set(xlabel=style.FLOW_TIME, ylabel="cosine")
    ax.set_xlim(0, style.settling_time(exact, time))
    ax.set_title("Six modes: the summary's equation is off")


def _gram(cell: CellResults) -> xr.DataArray:
    """Inner products of the tied vectors, (seed, time, mode, other_mode)."""
    gram = vectors(cell)[0].isel(init_scale=0)
    return gram.transpose("seed", "time", "mode", "other_mode")


def _weakest(cell: CellResults) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Cosine of the two weakest modes, simulated and by the summary's equation, (seed, time), and
    their largest distance, (seed).
    """
    gram = _gram(cell)
    simulated = gram.copy(data=cosines(gram.values)).isel(WEAKEST)
    law = gram.copy(data=first_order_interference(cell.flow_time.values, gram.values)).isel(WEAKEST)
    return simulated, law, abs(law - simulated).max("time")


def _solved(cell: CellResults) -> xr.DataArray:
    """Inner products by the exact solution, (seed, time, mode, other_mode)."""
    gram = cell.get("theory", "gram").isel(init_scale=0)
    first = slice(0, len(cell.modes))
    encoder = gram.isel(vector=first, other_vector=first)
    encoder = encoder.rename(vector="mode", other_vector="other_mode")
    return encoder.transpose("seed", "time", "mode", "other_mode")


def _strongest(gram: xr.DataArray, values: np.ndarray) -> xr.DataArray:
    """The entry of the two strongest modes, with the other dimensions of `gram`."""
    return gram.copy(data=values).isel(mode=0, other_mode=1, drop=True)


def _share(gram: xr.DataArray, values: np.ndarray) -> xr.DataArray:
    """The entry of the two strongest modes over its initial value."""
    strongest = _strongest(gram, values)
    return strongest / strongest.isel(time=0, drop=True)


def _pairs(results: Results) -> list[CellResults]:
    """Cells of two modes, from equal to most different strengths."""
    cells = [*results.cells("interference_pair"), *results.cells("interference_strengths")]
    return sorted(cells, key=lambda cell: float(cell.strength.max() / cell.strength.min()))
