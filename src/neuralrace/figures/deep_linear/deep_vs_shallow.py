"""What depth adds: the semantic hierarchy learned with and without a hidden layer.

From the smallest init scale. With a hidden layer the modes are learned one after the other, broad
distinctions first, each in a sigmoid; without, all follow one exponential, so that the time to half
of the target does not depend on the mode (Saxe, McClelland and Ganguli, 2013). The hierarchy is
that of Jarvis, Klein, Rosman and Saxe, figure 7. Simulations (means and ranges over seeds) lie
under the closed forms, with nothing fitted.
"""

import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.figures.modes import draw_strengths, equal_modes
from neuralrace.figures.sweeps import smallest_scale, smallest_scale_index
from neuralrace.results.cells import CellResults, Results

SOLUTIONS = {"semantic_deep": "aligned_modes", "semantic_shallow": "shallow_modes"}
"""The closed form of each network, by experiment."""
DISTINCTIONS = ("all items", "animals\nor plants", "which one\nof a class\n(2 modes)")
"""What the modes of the hierarchy tell, from the largest singular value."""
HALF = {"linestyle": "", "marker": "o", "markersize": 3, "color": "0.3", "zorder": 4}
HALF |= {"markerfacecolor": "white", "markeredgewidth": 0.7}
"""Dot at the time at which a mode is half learned."""


@Figure(
    layout="ab",
    height=2.7,
    reads={
        "semantic_deep semantic_shallow": {
            "trajectory": "mode_strength",
            "theory": "mode_strength",
            "metrics": "half_time half_time_spread later_share",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Lines and dots."""
    simulation = style.handle("simulation", color="0.3", **style.SIMULATION)
    theory = style.handle("closed form", **style.THEORY)
    return [simulation, style.BAND, theory, style.handle("half learned", **HALF)]


def panel_a(results: Results, ax: Axes) -> None:
    """Mode strengths of the network with a hidden layer, 10 runs.

    Two modes, which tell the items of a class apart, have the same singular value; strengths end at
    that over the variance of inputs, and share a circle. The number is the share of its target that
    a later mode has when one is half learned, the largest of all modes.
    """
    cell = _network(results, "semantic_deep", ax)
    later = float(_at(cell, "later_share").mean())
    _note(ax, f"when one is half learned,\nthe next is at most at {later:.0%}")
    ax.set_title("Hidden layer: broad distinctions first")


def panel_b(results: Results, ax: Axes) -> None:
    """Mode strengths of the network without one, on the same axis of time.

    The number is the slowest time to half over the fastest.
    """
    cell = _network(results, "semantic_shallow", ax)
    spread = float(_at(cell, "half_time_spread").mean())
    _note(ax, f"half times equal\nwithin {spread - 1:.1%}")
    ax.set_title("No hidden layer: all distinctions at once")


def _network(results: Results, experiment: str, ax: Axes) -> CellResults:
    """Draws the strengths of one network on the time axis of both."""
    cells = {name: results.cell(name) for name in SOLUTIONS}
    cell = cells[experiment]
    draw_strengths(ax, cell, SOLUTIONS[experiment], smallest_scale_index(cell))
    ends = []
    for name, theory in SOLUTIONS.items():
        solved = smallest_scale(cells[name].get("theory", "mode_strength", solution=theory))
        ends.append(style.settling_time(solved, cells[name].flow_time))
    half, modes = _at(cell, "half_time").mean("seed"), list(style.mode_colours(cell.target))
    for group in equal_modes(cell.target.sel(mode=modes).values):
        equal = {"mode": [modes[index] for index in group]}
        time, height = (float(x.sel(equal).mean()) for x in (half, cell.target / 2))
        ax.vlines(time, 0, height, **style.GUIDE)
        ax.plot(time, height, **HALF)
    ax.set_xlim(0, max(ends))
    colours = style.mode_colours(cell.target)
    by_value = {round(float(cell.target.sel(mode=mode)), 9): colours[mode] for mode in modes}
    label_ends(
        ax,
        [
            (height, name, colour)
            for name, (height, colour) in zip(DISTINCTIONS, by_value.items(), strict=False)
        ],
    )
    return cell


def _note(ax: Axes, note: str) -> None:
    ax.text(0.98, 0.9, note, transform=ax.transAxes, ha="right", va="top", fontsize=6.5)


def _at(cell: CellResults, metric: str) -> xr.DataArray:
    """A metric at the smallest init scale."""
    return smallest_scale(cell.get("metrics", metric))
