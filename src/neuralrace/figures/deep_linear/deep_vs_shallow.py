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
from neuralrace.figures.modes import draw_strengths
from neuralrace.figures.sweeps import smallest_scale, smallest_scale_index
from neuralrace.results.cells import CellResults, Results

NETWORKS = {
    "semantic_deep": ("aligned_modes", "one hidden layer"),
    "semantic_shallow": ("shallow_modes", "no hidden layer"),
}
"""The theory and the name of each network, by experiment."""


@Figure(
    layout="abc",
    height=2.6,
    reads={
        "semantic_deep semantic_shallow": {
            "trajectory": "mode_strength",
            "theory": "mode_strength",
            "metrics": "half_time half_time_over_predicted half_time_spread later_share",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Modes by singular value."""
    theory = style.handle("closed form", **style.THEORY)
    strength = results.cell("semantic_deep").strength
    return [*style.mode_handles(strength), style.BAND, theory]


def panel_a(results: Results, ax: Axes) -> None:
    """Mode strengths of the network with a hidden layer."""
    cell = _network(results, "semantic_deep", ax)
    later = float(_at(cell, "later_share").mean())
    ax.set_title(f"Hidden layer: at half of one mode, the next is at {later:.0%}")


def panel_b(results: Results, ax: Axes) -> None:
    """Mode strengths of the network without one, on the same axis of time."""
    cell = _network(results, "semantic_shallow", ax)
    spread = float(_at(cell, "half_time_spread").mean())
    ax.set_title(f"No hidden layer: half times within {spread - 1:.1%}")


def panel_c(results: Results, ax: Axes) -> None:
    """Time to half of each mode's target in both networks."""
    spreads = []
    for index, (experiment, (_, name)) in enumerate(NETWORKS.items()):
        cell = results.cell(experiment)
        half = _at(cell, "half_time")
        predicted = half / _at(cell, "half_time_over_predicted")
        props = {"color": style.categorical(index), "marker": style.marker(index)}
        modes = half["mode"].values
        style.point_series(ax, modes.tolist(), half.transpose("mode", ...), label=name, **props)
        ax.plot(predicted["mode"], predicted.mean("seed"), **style.THEORY)
        spreads.append(float(_at(cell, "half_time_spread").mean()))
    s = cell.strength
    names = [f"{mode}\n{float(s.sel(mode=mode)):.2f}" for mode in s["mode"].values]
    ax.set_xticks(s["mode"].values, names)
    ax.set(xlabel="mode and its $s$", ylabel=r"time to half (units of $\tau$)", ylim=(0, None))
    ax.set_xlim(0.5, len(names) + 0.5)
    ax.legend(loc="upper left")
    ax.set_title(f"Slowest over fastest: {spreads[0]:.1f} and {spreads[1]:.1f}")


def _network(results: Results, experiment: str, ax: Axes) -> CellResults:
    """Draws the strengths of one network on the time axis of both."""
    cells = {name: results.cell(name) for name in NETWORKS}
    cell, (solution, _) = cells[experiment], NETWORKS[experiment]
    draw_strengths(ax, cell, solution, smallest_scale_index(cell))
    ends = []
    for name, (theory, _) in NETWORKS.items():
        solved = smallest_scale(cells[name].get("theory", "mode_strength", solution=theory))
        ends.append(style.settling_time(solved, cells[name].flow_time))
    ax.set_xlim(0, max(ends))
    return cell


def _at(cell: CellResults, metric: str) -> xr.DataArray:
    """A metric at the smallest init scale."""
    return smallest_scale(cell.get("metrics", metric))
