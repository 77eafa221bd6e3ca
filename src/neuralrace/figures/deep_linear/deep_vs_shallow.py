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
from neuralrace.figures.modes import equal_modes
from neuralrace.figures.sweeps import smallest_scale
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

    Two modes, which tell the items of a class apart, have the same singular value, and share a line
    and a band; strengths end at that value over the variance of inputs. The number is the share of
    its target that a later mode has when one is half learned, the largest of all modes.
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
    solved = {
        name: smallest_scale(cells[name].get("theory", "mode_strength", solution=theory))
        for name, theory in SOLUTIONS.items()
    }
    ends = [style.settling_time(curves, cells[name].flow_time) for name, curves in solved.items()]
    simulated = smallest_scale(cell.get("trajectory", "mode_strength")).rename(seed="run")
    half, learned = _at(cell, "half_time").mean("seed"), cell.target[cell.target.values != 0]
    groups, labels = equal_modes(learned.values), []
    colours = style.sequential(len(groups))
    for group, name, colour in zip(groups, DISTINCTIONS, colours, strict=False):
        equal = {"mode": learned["mode"].values[group]}
        runs = simulated.sel(equal).stack(seed=("run", "mode"))
        style.over_seeds(ax, cell.flow_time, runs, color=colour)
        closed = solved[experiment].sel(equal).mean(("seed", "mode"))
        ax.plot(cell.flow_time, closed, **style.THEORY)
        time, height = (float(x.sel(equal).mean()) for x in (half, cell.target / 2))
        ax.vlines(time, 0, height, **style.GUIDE)
        ax.plot(time, height, **HALF)
        labels.append((2 * height, name, colour))
    ax.set(xlabel=style.FLOW_TIME, ylabel="mode strength", xlim=(0, max(ends)))
    label_ends(ax, labels)
    return cell


def _note(ax: Axes, note: str) -> None:
    ax.text(0.98, 0.9, note, transform=ax.transAxes, ha="right", va="top", fontsize=6.5)


def _at(cell: CellResults, metric: str) -> xr.DataArray:
    """A metric at the smallest init scale."""
    return smallest_scale(cell.get("metrics", metric))
