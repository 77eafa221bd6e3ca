"""Any architecture graph: a gated linear network with contexts, and its reduction."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from networkx import topological_generations

from neuralrace.errors import UserError
from neuralrace.figures import style
from neuralrace.networks.graph import Graph
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "contexts": {
            "trajectory": "loss singular_values",
            "theory": "loss singular_values",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Graph and gates, singular values and losses against the reduction, and how far they are.

    Singular values and distances are those at the smallest init scale.
    """
    cell = results.cell("contexts")
    network = cell.spec.network
    if not isinstance(network, Graph) or not network.gates:
        raise UserError(f"{cell.name}: network {network.name!r} has no graph with gates to draw")
    figure = Canvas(figsize=(style.COLUMN, 5.5))
    grid = figure.add_gridspec(4, 1, height_ratios=(1, 1.1, 0.9, 1.1))
    graph, gates = grid[0].subgridspec(1, 2, width_ratios=(2.2, 1)).subplots(squeeze=False)[0]
    values = grid[1].subgridspec(1, 2).subplots(squeeze=False, sharey=True)[0]
    losses, distances = grid[2:].subgridspec(2, 1).subplots(squeeze=False, sharex=True)[:, 0]
    looks = [
        {"color": style.distinct(edge), "marker": style.marker(edge)}
        for edge in range(len(network.edges))
    ]
    _graph(graph, network, looks)
    _gates(gates, network)
    _singular_values(values, cell, looks)
    _losses(losses, cell)
    _distances(distances, cell)
    for ax in (*values, losses, distances):
        ax.set(xscale="log", xlim=(cell.flow_time[1], cell.flow_time[-1]))
    titles = [
        "architecture",
        "gates",
        "largest singular value",
        "smallest",
        "loss",
        "distances between losses",
    ]
    style.letters([graph, gates, *values, losses, distances], titles)
    entries = [
        style.entry(" to ".join(edge), **look)
        for edge, look in zip(network.edges, looks, strict=True)
    ]
    theory = style.entry("reduction", **style.THEORY)
    style.legend(figure, [*entries, theory], columns=3)
    return figure


def _graph(ax: Axes, network: Graph, looks: list[dict[str, Any]]) -> None:
    """Nodes with their numbers of units, inputs on the left, and edges as they look below."""
    place = {
        name: (column, (len(names) - 1) / 2 - row)
        for column, names in enumerate(topological_generations(network.graph))
        for row, name in enumerate(names)
    }
    for (source, target), look in zip(network.edges, looks, strict=True):
        ends = np.array([place[source], place[target]])
        line = {"color": look["color"], "linewidth": 1.2, "shrinkA": 12, "shrinkB": 12}
        ax.annotate("", ends[1], ends[0], arrowprops={"arrowstyle": "-|>"} | line)
        ax.plot(*ends.mean(axis=0), linestyle="", **look)
    for name, (x, y) in place.items():
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.4", "linewidth": 0.6}
        ax.text(x, y, f"{name}\n{network.nodes[name]}", ha="center", va="center", bbox=box)
    ax.set(xticks=[], yticks=[], xlabel="nodes with their units")
    ax.update_datalim(list(place.values()))
    ax.margins(0.15, 0.4)
    ax.spines[:].set_visible(False)


def _gates(ax: Axes, network: Graph) -> None:
    """Gates of the nodes (and edges) that have any, by context."""
    gates = np.array(list(network.gates.values()))
    contexts = [str(number) for number in range(1, gates.shape[1] + 1)]
    style.heat(ax, gates, 0, 1, list(network.gates), contexts)
    ax.set_xlabel("context")


def _singular_values(axes: np.ndarray, cell: CellResults, looks: list[dict[str, Any]]) -> None:
    """Largest and smallest singular values of every edge, with those of the reduction."""
    at = {"init_scale": _smallest(cell)}
    simulated = cell.get("trajectory", "singular_values").isel(at)
    reduced = cell.get("theory", "singular_values", solution="reduction").isel(at).mean("seed")
    for ax, mode in zip(axes, (0, -1), strict=True):
        for edge, look in enumerate(looks):
            one = {"layer": edge, "singular_mode": mode}
            every = (0.1 * (1 + edge / len(looks)), 0.3)
            style.over_seeds(ax, cell.flow_time, simulated.isel(one), markevery=every, **look)
            ax.plot(cell.flow_time, reduced.isel(one), **style.THEORY)
        ax.set_xlabel(r"flow time (units of $\tau$)")
    axes[0].set(ylabel="singular value", ylim=(0, None))


def _losses(ax: Axes, cell: CellResults) -> None:
    """Losses with those of the reduction at every init scale."""
    loss, theory = (
        (each / each.isel(time=0))
        for each in (
            cell.get("trajectory", "loss"),
            cell.get("theory", "loss", solution="reduction").mean("seed"),
        )
    )
    scales = loss["init_scale"].values
    entries = []
    for index, colour in enumerate(style.ordered(len(scales))):
        at = {"init_scale": index}
        style.over_seeds(ax, cell.flow_time, loss.isel(at), color=colour)
        ax.plot(cell.flow_time, theory.isel(at), **style.THEORY)
        entries.append(style.entry(f"init scale {scales[index]:g}", color=colour))
    ax.set(ylabel="loss over\ninitial loss", ylim=(0, None))
    ax.legend(handles=[*entries, style.BAND])


def _distances(ax: Axes, cell: CellResults) -> None:
    """Where simulation and reduction differ: in the clock, and otherwise by rounding."""
    loss = cell.get("trajectory", "loss")
    flow, reduced, descent = (
        cell.get("theory", "loss", solution=solution)
        for solution in ("gated_flow", "reduction", "reduction_descent")
    )
    pairs = {
        "descent to reduced flow": abs(loss - reduced),
        "flow to reduced flow": abs(flow - reduced),
        "descent to reduced descent": abs(loss - descent),
    }
    initial = loss.isel(time=0)
    for index, (name, distance) in enumerate(pairs.items()):
        look = {"color": style.distinct(index), "linestyle": style.LINES[index], "linewidth": 1.2}
        largest = (distance / initial).isel(init_scale=_smallest(cell)).max("seed")
        ax.plot(cell.flow_time, largest.where(largest > 0), label=name, **look)
    ax.set(yscale="log", ylabel="distance\n(initial loss)", xlabel=style.FLOW_TIME)
    ax.legend(loc="center left")


def _smallest(cell: CellResults) -> int:
    return int(cell.trajectory["init_scale"].values.argmin())
