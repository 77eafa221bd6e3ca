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
RUNS = 4
"""Number of runs that are drawn."""
RULES = {"sum of norms": "decay_over_sum", "larger norm": "decay_over_larger"}
"""Metrics of the decay, by the squared norms that it is divided by."""


@Figure(
    layout="abc;def",
    height=3.9,
    cf={
        "a": "last equation",
        "b": "last paragraph",
        "d": "last paragraph",
        "e": "second-order effects",
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
    """Simulation, the rule of the equation and that of the prose."""
    return [
        style.handle("simulation", color=style.categorical(0)),
        style.BAND,
        style.handle("theory", **style.THEORY),
        style.handle("Saxe et al., prose: larger norm", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Rate at which the logarithm of the cosine between two vectors falls.

    It follows the sum of their squared norms, and leaves the larger one as the second mode is
    learned.
    """
    cell = results.cell("interference_pair")
    gram, time = _gram(cell), cell.flow_time
    share = _share(gram, cosines(gram.values))
    lasting = share > FLOOR
    rate = -ufuncs.log(share).differentiate("flow_time")
    norms = diagonal(gram)
    style.over_seeds(ax, time, rate.where(lasting), color=style.categorical(0))
    ax.plot(time, norms.sum("mode").mean("seed"), **style.THEORY)
    ax.plot(time, norms.max("mode").mean("seed"), **style.PAPER)
    s = cell.strength.values
    ax.set(xlabel=style.FLOW_TIME, ylabel=r"decay rate $-d\log\epsilon_{ij}/dt$")
    ax.set_xlim(0, style.settling_time(norms, time))
    reached = float(rate.where(lasting).max("time").mean("seed"))
    ax.set_title(f"The rate comes to {reached:.2f}, the sum of {s[0]:g} and {s[1]:g}")


def panel_b(results: Results, ax: Axes) -> None:
    """Cosine over its start in the same runs, with what both rules make of the simulated norms."""
    cell = results.cell("interference_pair")
    gram, time = _gram(cell), cell.flow_time
    style.over_seeds(ax, time, _share(gram, cosines(gram.values)), color=style.categorical(0))
    first, larger = (
        _share(gram, first_order_interference(time.values, gram.values, rate))
        for rate in ("sum", "larger")
    )
    ax.plot(time, first.mean("seed"), **style.THEORY)
    ax.plot(time, larger.mean("seed"), **style.PAPER)
    ax.set(xlabel=style.FLOW_TIME, ylabel=r"$\epsilon_{ij}(t)/\epsilon_{ij}(0)$", yscale="log")
    lasting = (first > FLOOR).any("seed")
    ax.set(ylim=(FLOOR, 1.6), xlim=(0, float(time[lasting].max())))
    off = float(cell.get("metrics", "first_order_error").mean())
    ax.set_title(f"Integrated, the sum is off by {off:.1%}")


def panel_c(results: Results, ax: Axes) -> None:
    """Measured decay over what each rule gives, for equal and unequal strengths.

    In the sum it is one constant; in the larger norm it falls from twice to once.
    """
    cells = _pairs(results)
    over = {
        rule: [cell.get("metrics", metric).isel(init_scale=0, mode_pair=0) for cell in cells]
        for rule, metric in RULES.items()
    }
    for index, (rule, values) in enumerate(over.items()):
        props = {"color": style.categorical(index), "marker": style.marker(index)}
        style.point_series(ax, range(len(values)), values, label=rule, **props)
    ax.axhline(1, **style.THEORY)
    ax.legend(title="measured in", loc="upper right")
    ax.set_xticks(range(len(cells)), [_strengths(cell) for cell in cells])
    ax.set(xlabel="strengths of the two modes", ylabel="measured decay over rule")
    ax.set(xlim=(-0.5, len(cells) - 0.5), ylim=(0, 2.4))
    means = [float(value.mean()) for value in over["larger norm"]]
    ax.set_title(f"In the larger norm, {means[0]:.1f} to {means[-1]:.1f}")


def panel_d(results: Results, ax: Axes) -> None:
    """Angle between two vectors of which one alone grows, as a share of its way to 90 degrees.

    Beside it, the squared norm of that one over its end: the angle opens when the norm gets big.
    """
    cell = _pairs(results)[-1]
    gram, time = _gram(cell), cell.flow_time
    angle = ufuncs.arccos(abs(_strongest(gram, cosines(gram.values))))
    closed = angle.isel(time=0, drop=True)
    opened = (angle - closed) / (np.pi / 2 - closed)
    norm = diagonal(gram).isel(mode=0)
    style.over_seeds(ax, time, opened, color=style.categorical(0), label="angle")
    grown = norm / norm.isel(time=-1, drop=True)
    style.over_seeds(ax, time, grown, color=style.categorical(1), linestyle="-.", label="$|W_i|^2$")
    ax.legend(loc="center right")
    ax.set(xlabel=style.FLOW_TIME, ylabel="share of the way")
    ax.set_xlim(0, style.settling_time(opened, time))
    before, after = (
        float(cell.get("metrics", f"fall_{side}_growth").mean()) for side in ("before", "after")
    )
    ax.set_title(f"Log cosine falls by {before:.1f} before growth, {after:.1f} after")


def panel_e(results: Results, ax: Axes) -> None:
    """Largest distance of each cosine from the first-order law, over its start.

    Dots are pairs of modes and seeds, bars medians. Of two modes there is nothing of second order;
    among many the law misses far more.
    """
    many = results.cell("interference_many")
    cells = [*_pairs(results), many]
    medians = []
    dots = {"marker": "o", "markersize": 1.5, "color": style.categorical(0)}
    for position, cell in enumerate(cells):
        errors = cell.get("metrics", "first_order_error")
        medians.append(style.single_runs(ax, position, errors, 0.35, **dots))
    count = int((many.strength != 0).sum())
    ax.set_xticks(range(len(cells)), [*map(_strengths, cells[:-1]), f"{count} modes"])
    ax.set(yscale="log", xlabel="strengths", ylabel="error of first order\n(initial cosine)")
    ratio = medians[-1] / max(medians[:-1])
    ax.set_title(f"Among {count} modes it misses {ratio:.0f} times as much")


def panel_f(results: Results, ax: Axes) -> None:
    """Cosine between the two weakest of many modes, in single runs.

    Dashed, the exact solution; thin, the first-order law.
    """
    cell = results.cell("interference_many")
    gram, time = _gram(cell), cell.flow_time
    solved = _solved(cell)
    weakest = {"mode": -2, "other_mode": -1}
    law = gram.copy(data=first_order_interference(time.values, gram.values)).isel(weakest)
    simulated = gram.copy(data=cosines(gram.values)).isel(weakest)
    exact = solved.copy(data=cosines(solved.values)).isel(weakest)
    runs = min(RUNS, simulated.sizes["seed"])
    for run, colour in enumerate(style.sequential(runs)):
        ax.plot(time, law.isel(seed=run), **style.GUIDE)
        ax.plot(time, simulated.isel(seed=run), color=colour)
        ax.plot(time, exact.isel(seed=run), **style.THEORY)
    ax.set(xlabel=style.FLOW_TIME, ylabel=r"cosine $\epsilon_{ij}$")
    ax.set_xlim(0, style.settling_time(exact, time))
    off = float(cell.get("metrics", "mode_error_sup", solution="tied").max())
    ax.set_title(f"Exact: modes within {off:.1%}")


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
