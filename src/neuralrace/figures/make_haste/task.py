"""Objects in contexts: the task, and gated networks that may answer it.

Follows Jarvis, Klein, Rosman and Saxe, figs. 1 and 3. Columns are samples: each object in each
context. Inputs are one-hot in the object and one-hot in the context. Some properties are the same
in all contexts; a block of others holds in one context only and has a structure of its own there.
The rectified linear network has a common pathway, open on all samples and shown all inputs, and
pathways that are open in all contexts but one and shown the object alone. What differs from the
source: it names the structures, and their matrices are ours.
"""

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.diagrams import draw_network, gate_handles
from neuralrace.figures.gate_patterns import INPUTS, colour, draw_pathways
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.results.cells import Results

NOTATION = Architecture(
    nodes={"x": 4, "u": 4, "v": 4, "w": 4, "y": 4, "z": 4},
    edges=(("x", "v"), ("u", "v"), ("u", "w"), ("v", "y"), ("v", "z"), ("w", "z")),
)
"""A graph with inputs x and u, hidden nodes v and w, and outputs y and z."""
NOTATION_LABELS = {
    "v": "node $v$, $g_v = 1$",
    "w": "node $w$, $g_w = 0$",
    "x->v": "edge $e$, $g_e = 1$",
    "u->v": "edge $f$\n$g_f = 0$",
    "v->y": "path $p$",
    **{name: f"${name}$" for name in "xuyz"},
}
GATES = "gray"
"""Open gates are light and closed gates dark, as in network diagrams."""


@Figure(
    layout="ac;bd;be",
    height=5.7,
    widths=(1.1, 1.0),
    heights=(1.05, 1.05, 0.75),
    cf={"a": "Fig. 3", "b": "Fig. 3", "c": "Fig. 1", "d": "Fig. 3"},
    reads={
        "contextual_gated": {
            "trajectory": "",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Shades of inputs and targets, and of gates."""
    dark, light = (colormaps[style.HEAT](value) for value in (0.0, 1.0))
    entries = (Patch(color=light, label="entry 1"), Patch(color=dark, label="entry 0"))
    return [*entries, *gate_handles()]


def panel_a(results: Results, ax: Axes) -> None:
    """Inputs of all samples."""
    cell = contextual.reln(results.cells("contextual_gated"))
    data, dataset = cell.data, contextual.task(cell)
    style.heat(ax, data.x.T, 0, 1)
    contextual.name_blocks(ax.yaxis, data.input_groups, INPUTS)
    contextual.name_contexts(ax.xaxis, dataset)
    ax.set_ylabel("input")
    ax.set_title("Inputs: every object in every context")


def panel_b(results: Results, ax: Axes) -> None:
    """Targets of the same samples."""
    cell = contextual.reln(results.cells("contextual_gated"))
    data, dataset = cell.data, contextual.task(cell)
    positions = ("always", *(f"in {context}" for context in range(1, dataset.contexts + 1)))
    kinds = [structure.replace("_", "-") for structure in dataset.blocks]
    names = [f"{position}:\n{kind}" for position, kind in zip(positions, kinds, strict=True)]
    style.heat(ax, data.y.T, 0, 1)
    contextual.name_blocks(ax.yaxis, contextual.block_sizes(dataset), names)
    contextual.name_contexts(ax.xaxis, dataset)
    ax.set(xlabel="context, each with all objects", ylabel="property")
    ax.set_title("Targets: some hold in one context only")


def panel_c(results: Results, ax: Axes) -> None:
    """Notation of gated deep linear networks: layers are nodes, weight matrices W are edges, and
    gates g switch both off (dotted). A node adds up what its edges bring. A path p carries what all
    of its gates let pass.
    """
    path = next(pathway for pathway in NOTATION.pathways if pathway.nodes == ("x", "v", "y"))
    gates = {"v": [1], "w": [0], "u->v": [0]}
    draw_network(ax, NOTATION, {path: style.COLOURS["gated"]}, gates, NOTATION_LABELS, shape=2.0)
    ax.text(0.5, 0, r"$h_v = g_v\,(g_e W_e h_x + g_f W_f h_u)$", ha="center", va="bottom")
    ax.text(0, 0, "blue: on path $p$\ndotted: closed", va="bottom", color="0.35",
            fontsize=6.5, transform=ax.transAxes)  # fmt: skip
    ax.set_title("Gates switch nodes and edges off")


def panel_d(results: Results, ax: Axes) -> None:
    """The rectified linear network: the common pathway alone receives the context, and
    has a line for each of both inputs.
    """
    cell = contextual.reln(results.cells("contextual_gated"))
    draw_pathways(ax, cell, shape=1.6)
    ax.set_title("A common pathway, and context pathways")


def panel_e(results: Results, ax: Axes) -> None:
    """Gates of families of networks by context, a row for each pathway."""
    networks = contextual.families(results.cells("contextual_gated"))
    axes = style.split(ax, 1, len(networks))[0]
    for part, (numbers, cell) in zip(axes, networks.items(), strict=True):
        opened = contextual.gates_by_context(cell)
        pathways, contexts = opened.shape
        names = [str(context) for context in range(1, contexts + 1)]
        style.heat(part, opened, 0, 1, columns=names, cmap=GATES)
        for row, kind in enumerate(opened > 0):
            part.plot(-0.75, row, "s", color=colour(kind), markersize=3.5, clip_on=False)
        part.set_xlim(-0.5, contexts - 0.5)
        for row in range(1, pathways):
            part.axhline(row - 0.5, color="0.5", linewidth=0.6)
        for column in range(1, contexts):
            part.axvline(column - 0.5, color="0.5", linewidth=0.6)
        part.spines[["top", "right"]].set_visible(True)
        part.set_title(f"$q$ = {contextual.family_name(numbers)}", loc="center")
    axes[0].set_ylabel("pathway", labelpad=9)
    # Centred below all parts: with an even number of them, below the gap in the middle.
    key = "context\nsquares: pathways of d; grey: open in one context"
    axes[(len(axes) - 1) // 2].set_xlabel(key, x=0.5 if len(axes) % 2 else 1.1)
    ax.set_title("Families of pathways open in $q$ contexts")
