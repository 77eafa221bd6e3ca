"""Gates of units and pathways on the contextual task, coloured by the contexts they are open in."""

import numpy as np
import seaborn as sns
from jaxtyping import Bool
from matplotlib.axes import Axes

from neuralrace.figures import contextual, style
from neuralrace.figures.diagrams import draw_network, graph
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.results.cells import CellResults

COMMON = style.categorical(1)
"""Units that are open in all contexts; red in Jarvis et al., which is the ReLU network's here."""
CLOSED_IN = (style.categorical(2), style.categorical(9), *sns.color_palette("Dark2")[2:])
"""Units that are closed in one context, by context; the first is green in Jarvis et al."""
OTHER = (0.35, 0.35, 0.35)
"""All other units."""
INPUTS: tuple[str, ...] = ("object", "context")
"""Names of the groups of inputs of the task."""


def colour(opened: Bool[np.ndarray, " context"]) -> style.Colour:
    """Colour of a unit or a pathway, by the contexts that it is open in."""
    if opened.all():
        return COMMON
    closed = np.flatnonzero(~opened)
    return CLOSED_IN[closed[0] % len(CLOSED_IN)] if len(closed) == 1 else OTHER


def kinds_of(contexts: int) -> Bool[np.ndarray, "kind context"]:
    """Contexts of the paper's pathways: all, and all but each, the last first."""
    return np.concatenate([np.ones((1, contexts), dtype=bool), ~np.eye(contexts, dtype=bool)[::-1]])


def opened_in(
    gates: Bool[np.ndarray, "*runs unit sample"], contexts: int
) -> Bool[np.ndarray, "*runs unit context"]:
    """Contexts in which units are open, on more than half of the samples."""
    return gates.reshape(*gates.shape[:-1], contexts, -1).mean(axis=-1) > 0.5


def by_contexts(gates: Bool[np.ndarray, "unit sample"], contexts: int) -> np.ndarray:
    """Units in the order of the contexts that they are open in, those of most contexts first."""
    opened = opened_in(gates, contexts)
    return np.lexsort([*opened.T[::-1], opened.sum(axis=1)])[::-1]


def draw_pathways(ax: Axes, cell: CellResults, shape: float) -> None:
    """The network of pathways, each in its colour, with its gates in the first to the last context.

    Inputs are a node for each group, joined to the pathways that receive it. A pathway with two
    lines receives both.

    Args:
        ax: axes to draw on.
        cell: a gated network on the task.
        shape: width over height of the drawing.
    """
    drawn, opened = _with_input_groups(cell), contextual.gates_by_context(cell)
    gates = dict(zip(_first_nodes(cell), opened, strict=True))
    draw_network(
        ax,
        drawn,
        {pathway: colour(gates[pathway.nodes[1]] > 0) for pathway in drawn.pathways},
        gates,
        {**{name: name for name in drawn.inputs}, drawn.outputs[0]: "properties"},
        shape=shape,
    )
    contexts = ", ".join(str(context + 1) for context in range(opened.shape[1]))
    style.note(ax, f"cells: gates in\ncontexts {contexts}", "lower right", color="0.35")


def _with_input_groups(cell: CellResults) -> Architecture:
    """The graph of a gated network with a node for each group of inputs in place of its input."""
    whole, visible = graph(cell), cell.gated.gates.visible_inputs(cell.data)
    sizes = dict(zip(INPUTS, cell.data.input_groups, strict=True))
    starts = np.cumsum([0, *sizes.values()])[:-1]
    received = np.logical_or.reduceat(visible, starts, axis=1)  # (pathway, group)
    # The context is on top, as the common pathway is, which alone receives it.
    outer = [
        (name, node)
        for name, by_pathway in reversed(list(zip(sizes, received.T, strict=True)))
        for node, seen in zip(_first_nodes(cell), by_pathway, strict=True)
        if seen
    ]
    inner = [edge for edge in whole.edges if edge[0] not in whole.inputs]
    nodes = {name: sizes[name] for name, _ in outer}
    nodes |= {name: units for name, units in whole.nodes.items() if name not in whole.inputs}
    return Architecture(nodes=nodes, edges=(*outer, *inner))


def _first_nodes(cell: CellResults) -> list[str]:
    """The first hidden node of each pathway."""
    return [pathway.nodes[1] for pathway in graph(cell).pathways]


def draw_gates(ax: Axes, gates: Bool[np.ndarray, "row sample"], cell: CellResults) -> None:
    """Draws open gates in the colour of the contexts that their unit is open in."""
    dataset = contextual.task(cell)
    colours = np.array([colour(row) for row in opened_in(gates, dataset.contexts)])
    shades = np.where(gates[..., None], colours[:, None], 1.0)
    ax.imshow(shades, aspect="auto", interpolation="nearest")
    contextual.name_contexts(ax.xaxis, dataset)
    ax.tick_params(length=0)
