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


def colours_of(cells: Sequence[CellResults]) -> dict[int, style.Colour]:
    """A colour for each P, smallest first."""
    shares = sorted(map(sharing, cells))
    return dict(zip(shares, style.sequential(len(shares), style.PURPLE), strict=True))


def draw_network(
    ax: Axes, cells: Sequence[CellResults], domains: int, size: int, units: int, shape: float
) -> None:
    """The network of a task with few domains, in groups of `size`.

    It has the colour of the cell with as many pairs to a pathway, or, where all pairs share one, of
    the cell with the most.

    Args:
        ax: axes to draw on.
        cells: networks on the task, which may have more domains.
        domains: number of input domains, and of output domains, in the diagram.
        size: number of domains in a group; the pairs of two groups share a pathway.
        units: number of units that a layer is drawn with.
        shape: width over height of the drawing.
    """
    data, colours = cells[0].domains, colours_of(cells)
    families = Groups(name="groups", size=size).families(domains, HIDDEN)
    graph = routing_architecture(domains, data.inputs.shape[2], data.targets.shape[2], families)
    colour = colours.get(max(colours) if size == domains else size**2, "0.3")
    routes = dict.fromkeys(graph.pathways, colour)
    diagrams.draw_network(ax, graph, routes, units=units, shape=shape)


def draw_race(ax: Axes, results: Results, name: Callable[[CellResults], str]) -> None:
    """Largest singular value of a hidden matrix by P, with theory on top; lines have a `name`."""
    cells = by_sharing(results.cells("race"))
    ends, settled = [], []
    for cell, colour in zip(cells, colours_of(cells).values(), strict=True):
        simulated = cell.get("trajectory", "singular_values").isel(STRONGEST)
        predicted = cell.get("theory", "singular_values", solution="routing_race").isel(STRONGEST)
        style.over_seeds(ax, cell.flow_time, simulated, color=colour)
        ax.plot(cell.flow_time, predicted.mean("seed"), **style.THEORY)
        ends.append((float(simulated.isel(time=-1).mean()), name(cell), colour))
        settled.append(style.settling_time(simulated, cell.flow_time))
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, max(settled)))
    ax.set(ylabel="hidden singular value", ylim=(0, None))
    label_ends(ax, ends)
