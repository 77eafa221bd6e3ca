"""How fast modes cease to interfere.

"Speed of lowering interference" of the summary of Saxe, McClelland and Ganguli (2013), which calls
it speculation: encoder and decoder are tied, and the vectors of modes start with cosines between
them. By the summary's equation a cosine decays at the sum of the two squared norms, up to
second-order effects; its prose says, at a rate proportional to the larger of the two. Simulations
follow the sum: the larger norm has no one constant. Among many modes products of cosines
take over where a cosine is small, which the exact solution of the matrix equation includes.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from xarray import ufuncs

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.results.cells import CellResults, Results
from neuralrace.results.gram import diagonal, vectors
from neuralrace.theory.tied import cosines, first_order_interference

FLOOR = 1e-3
"""Smaller shares of the initial cosine are not drawn."""
RULES = ("sum", "larger")
"""Squared norms of two vectors that give the decay of their cosine."""
BLUE = style.categorical(0)
EXACT = {"color": "black", "linewidth": 0.8, "zorder": 3}


@Figure(
    layout="aaaabb;ccddee",
    height=3.9,
    cf={
        "a": "last equation",
        "b": "last paragraph",
        "c": "last paragraph",
        "d": "second-order",
    },
    reads={
        "interference_pair": {
            "trajectory": "gram",
            "metrics": "decay_over_larger decay_over_sum first_order_error",
        },
        "interference_strengths": {
            "trajectory": "gram",
            "metrics": (
                "decay_over_larger decay_over_sum fall_after_growth fall_before_growth "
                "first_order_error"
            ),
        },
        "interference_many": {
            "trajectory": "gram",
            "theory": "gram",
            "metrics": "first_order_error mode_error_sup",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Simulation, the rule of the equation, that of the prose, and the exact solution."""
    return [
        style.handle("simulation", color=BLUE, **style.SIMULATION),
        style.BAND,
        style.handle("sum of squared norms", **style.THEORY),
        style.handle("Saxe et al.: larger", **style.PAPER),
        style.handle("e: exact solution", **EXACT),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Rate at which the logarithm of the cosine between two vectors falls.

    For equal and unequal strengths of the two modes. Lines are the mean of 20 runs; the rate is
    drawn until the cosine is a thousandth of its start. Numbers are the whole decay over the
    integral of each rule: it is one constant in the sum, and falls from twice to once in the larger
    norm.
    """
    cells = _pairs(results)
    frames = style.split(ax, 1, len(cells), sharey=True, wspace=0.06)[0]
    for frame, cell in zip(frames, cells, strict=True):
        gram, time = _gram(cell), cell.flow_time
        share = _share(gram, cosines(gram.values))
        lasting = share > FLOOR
        rate = -ufuncs.log(share.where(lasting)).differentiate("flow_time")
        norms = diagonal(gram)
        style.over_seeds(frame, time, rate, color=BLUE)
        frame.plot(time, norms.sum("mode").mean("seed"), **style.THEORY)
        frame.plot(time, norms.max("mode").mean("seed"), **style.PAPER)
        frame.set_xlim(0, float(time[lasting.any("seed")].max()))
        frame.set_title(f"$s$ = {' and '.join(f'{s:g}' for s in cell.strength.values)}")
        over = [float(cell.get("metrics", f"decay_over_{rule}").mean()) for rule in RULES]
        note = f"decay over\nsum: {over[0]:.2f}\nlarger: {over[1]:.2f}"
        frame.text(0.97, 0.05, note, transform=frame.transAxes, ha="right", fontsize=6.5)
    frames[0].set(ylabel=r"decay rate $-d\log\epsilon_{ij}/dt$", ylim=(0, None))
    frames[len(frames) // 2].set_xlabel(style.FLOW_TIME)
    ax.set_title("Cosines decay at the sum of squared norms")


def panel_b(results: Results, ax: Axes) -> None:
    """Cosine over its start for strengths 2 and 1, with both rules from the simulated norms."""
    cell = results.cell("interference_pair")
    gram, time = _gram(cell), cell.flow_time
    style.over_seeds(ax, time, _share(gram, cosines(gram.values)), color=BLUE)
    first, larger = (
        _share(gram, first_order_interference(time.values, gram.values, rule)) for rule in RULES
    )
    ax.plot(time, first.mean("seed"), **style.THEORY)
    ax.plot(time, larger.mean("seed"), **style.PAPER)
    ax.set(xlabel=style.FLOW_TIME, ylabel=r"$\epsilon_{ij}(t)/\epsilon_{ij}(0)$", yscale="log")
    lasting = (first > FLOOR).any("seed")
    ax.set(ylim=(FLOOR, 1.6), xlim=(0, float(time[lasting].max())))
    ax.set_title("Larger norm fails")


def panel_c(results: Results, ax: Axes) -> None:
    """Angle between two vectors of which one alone grows, as a share of its way to 90 degrees.

    Beside it, the squared norm of that one over its end. Numbers are by how much the logarithm of
    the cosine falls before the norm is at half its end, and in as long a time after. Means and
    ranges over 20 runs, strengths 2 and 0.2.
    """
    cell = _pairs(results)[-1]
    gram, time = _gram(cell), cell.flow_time
    angle = ufuncs.arccos(abs(_strongest(gram, cosines(gram.values))))
    closed = angle.isel(time=0, drop=True)
    opened = (angle - closed) / (np.pi / 2 - closed)
    norm = diagonal(gram).isel(mode=0)
    grown = norm / norm.isel(time=-1, drop=True)
    for curve, colour, line in ((opened, BLUE, "-"), (grown, style.categorical(1), "-.")):
        style.over_seeds(ax, time, curve, color=colour, linestyle=line)
    half = float(time[int((grown.mean("seed") > 0.5).argmax("time"))])
    ax.axvline(half, **style.GUIDE)
    before, after = (
        float(cell.get("metrics", f"fall_{side}_growth").mean()) for side in ("before", "after")
    )
    end = style.settling_time(opened, time)
    ax.text(half, 1.1, f"$-{before:.1f}$  ", ha="right", fontsize=6.5)
    ax.text(half, 1.1, rf"  $-{after:.1f}$ in $\log\epsilon_{{ij}}$", fontsize=6.5)
    ax.text(0.6 * end, 0.6, "angle", color=BLUE, fontsize=6.5)
    ax.text(half - 0.02 * end, 0.6, "$|W_i|^2$", color="0.3", ha="right", fontsize=6.5)
    ax.set(xlabel=style.FLOW_TIME, ylabel="share of the way", xlim=(0, end), ylim=(-0.03, 1.2))
    ax.set_title("Angles open with growth")


def panel_d(results: Results, ax: Axes) -> None:
    """Largest distance of each cosine from the first-order equation, over its start.

    Medians, quartiles and ranges over all pairs of modes in 20 runs. Of two modes there is nothing
    of second order.
    """
    many = results.cell("interference_many")
    cells = [*_pairs(results), many]
    count = int((many.strength != 0).sum())
    errors = [ufuncs.log10(cell.get("metrics", "first_order_error")) for cell in cells]
    low = int(np.floor(min(float(error.min()) for error in errors)))
    high = int(np.ceil(max(float(error.max()) for error in errors)))
    ax.boxplot(
        [error.values[np.isfinite(error.values)] for error in errors],
        positions=range(len(errors)),
        widths=0.5,
        whis=(0, 100),
        patch_artist=True,
        boxprops={"facecolor": (*BLUE, 0.4), "linewidth": 0.6},
        medianprops={"color": "black", "linewidth": 1.2},
        whiskerprops={"color": BLUE},
        capprops={"color": BLUE},
    )
    ax.set_ylim(low, high)
    ax.set_yticks(range(low, high + 1), [f"$10^{{{power}}}$" for power in range(low, high + 1)])
    style.named_columns(ax, [*map(_strengths, cells[:-1]), f"{count} modes"])
    ax.set(xlabel="strengths", ylabel="error of the sum\n(initial cosine)")
    ax.set_title("Large among many modes")


def panel_e(results: Results, ax: Axes) -> None:
    """Cosine between the two weakest of six modes, in two of 20 runs.

    They are those whose distance from the first-order equation (dashed) is the largest and the
    median. The exact solution (full) has second-order effects. The number is the largest distance
    of a mode from the exact solution, over all runs.
    """
    cell = results.cell("interference_many")
    gram, time = _gram(cell), cell.flow_time
    solved = _solved(cell)
    weakest = {"mode": -2, "other_mode": -1}
    law = gram.copy(data=first_order_interference(time.values, gram.values)).isel(weakest)
    simulated = gram.copy(data=cosines(gram.values)).isel(weakest)
    exact = solved.copy(data=cosines(solved.values)).isel(weakest)
    ranked = np.argsort(np.nan_to_num(abs(law - simulated).max("time").values))
    for run in {int(ranked[-1]), int(ranked[len(ranked) // 2])}:
        ax.plot(time, simulated.isel(seed=run), color=BLUE, **style.SIMULATION)
        ax.plot(time, exact.isel(seed=run), **EXACT)
        ax.plot(time, law.isel(seed=run), **style.THEORY)
    ax.set(xlabel=style.FLOW_TIME, ylabel=r"cosine $\epsilon_{ij}$")
    ax.set_xlim(0, style.settling_time(exact, time))
    off = float(cell.get("metrics", "mode_error_sup", solution="tied").max())
    note = f"modes within {off:.1%}\nof the exact solution"
    ax.text(0.98, 0.05, note, transform=ax.transAxes, ha="right", fontsize=6.5)
    ax.set_title("The exact solution holds")


def _gram(cell: CellResults) -> xr.DataArray:
    """Inner products of the tied vectors, (seed, time, mode, other_mode)."""
    gram = vectors(cell)[0].isel(init_scale=0)
    return gram.transpose("seed", "time", "mode", "other_mode")


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


def _strengths(cell: CellResults) -> str:
    return ", ".join(f"{s:g}" for s in cell.strength.values)
