"""Routing networks whose pathways are shared by one pair of domains, by some or by all."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from neuralrace.figures import diagrams, style
from neuralrace.figures.ends import label_ends
from neuralrace.networks.gates.groups import Groups
from neuralrace.networks.gates.wiring import routing_architecture
from neuralrace.results.cells import CellResults, Results

STRONGEST = {"init_scale": 0, "layer": 1, "singular_mode": 0}
HIDDEN = (64, 64)
"""Widths of the hidden layers of pathways in diagrams, which do not show them."""


def sharing(cell: CellResults) -> int:
    """Number P of pairs of domains that share a pathway."""
    return cell.routing.families(cell.spec.dataset.count)[0].size ** 2


def by_sharing(cells: Sequence[CellResults]) -> list[CellResults]:
    """Cells of a sweep, smallest P first."""
    return sorted(cells, key=sharing)


def draw_network(
    ax: Axes, cell: CellResults, domains: int, size: int, units: int, shape: float
) -> None:
    """The network of a task with few domains, in groups of `size`; a colour for each input domain.

    Args:
        ax: axes to draw on.
        cell: a network on the task, which may have more domains.
        domains: number of input domains, and of output domains, in the diagram.
        size: number of domains in a group; the pairs of two groups share a pathway.
        units: number of units that a layer is drawn with.
        shape: width over height of the drawing.
    """
    data = cell.domains
    families = Groups(name="groups", size=size).families(domains, HIDDEN)
    graph = routing_architecture(domains, data.inputs.shape[2], data.targets.shape[2], families)
    colours = dict(zip(graph.inputs, style.sequential(domains), strict=True))
    routes = {pathway: colours[pathway.source] for pathway in graph.pathways}
    diagrams.draw_network(ax, graph, routes, units=units, shape=shape)


def draw_race(ax: Axes, results: Results, name: Callable[[CellResults], str]) -> None:
    """Largest singular value of a hidden matrix by P, with theory on top; lines have a `name`."""
    cells = by_sharing(results.cells("race"))
    ends, settled = [], []
    for cell, colour in zip(cells, style.sequential(len(cells)), strict=True):
        simulated = cell.get("trajectory", "singular_values").isel(STRONGEST)
        predicted = cell.get("theory", "singular_values", solution="routing_race").isel(STRONGEST)
        style.over_seeds(ax, cell.flow_time, simulated, color=colour)
        ax.plot(cell.flow_time, predicted.mean("seed"), **style.THEORY)
        ends.append((float(simulated.isel(time=-1).mean()), name(cell), colour))
        settled.append(style.settling_time(simulated, cell.flow_time))
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, max(settled)))
    ax.set(ylabel="hidden singular value", ylim=(0, None))
    label_ends(ax, ends)
