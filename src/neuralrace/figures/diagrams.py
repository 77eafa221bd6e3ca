"""Network diagrams, drawn from the graphs that are trained.

Inputs are on the left and outputs on the right. A node is a box of units. An edge is a bundle of
lines: one line for each route through the edge, in the colour of the route, or a grey line if there
is none. So a bundle shows how many routes share a weight matrix. Units have the colour of the
routes through their node, if that is a single one. A gate is a row of cells at its node or on its
edge, one cell for each context or sample: light if the gate is open, dark if it is closed. A line
is dotted if a gate on its way is closed in all cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Circle, FancyBboxPatch, Patch, PathPatch, Rectangle
from matplotlib.path import Path

from neuralrace.errors import UserError
from neuralrace.figures import style
from neuralrace.networks.gates.architecture import Architecture, Pathway, chain
from neuralrace.networks.layered import Layered
from neuralrace.results.cells import CellResults

Stop = str | tuple[int, int]
"""A point that an edge passes: a node by name, or a point between nodes by edge and column."""
FONT_SIZE = 6.5
"""Font size of labels in points."""
LINE_HEIGHT = FONT_SIZE * 1.35 / 72
"""Height of a line of a label in inches."""
GAP = 0.05
"""Distance of a label from its node or edge in inches."""
PITCH = 0.13
"""Largest distance between units in inches."""
CELL = 0.075
"""Side of a cell of a gate in inches."""
EDGE_HEIGHT = 0.4
"""Height of an edge that passes a column, over the height of a node."""
MOST_WIDTH = 1.6
"""Largest width of a line in points."""
PLAIN = {"color": "0.6", "linewidth": 0.8}
CLOSED = {"linestyle": (0, (1, 1.5)), "linewidth": 0.7, "alpha": 0.6}


@dataclass(frozen=True)
class Box:
    """Centre and size of a node in inches."""

    x: float
    y: float
    width: float
    height: float
    units: int
    """Number of units that are drawn."""


@dataclass(frozen=True)
class _Stroke:
    """A line through an edge, on one route or on none."""

    edge: int
    colour: Any
    closed: bool


def graph(cell: CellResults) -> Architecture:
    """The graph of a cell's network. The nodes of a fully connected network are `0`, `1`, ...

    Raises:
        UserError: gates that depend on the weights, or that do not fit the dataset.
    """
    network = cell.spec.network
    if isinstance(network, Layered):
        return chain((cell.data.x.shape[1], *network.hidden, cell.data.y.shape[1]))
    return network.wiring(cell.domains if network.by_domain else cell.data).architecture


def draw_network(
    ax: Axes,
    graph: Architecture,
    routes: Mapping[Pathway, Any] | None = None,
    gates: Mapping[str, Sequence[int | float] | np.ndarray] | None = None,
    labels: Mapping[str, str] | None = None,
    units: int = 4,
    shape: float | None = None,
    numbered: bool = False,
) -> None:
    """Draws a network in columns from left to right, as large as the axes allow.

    Args:
        ax: axes to draw on, in an inset; they lose ticks and frame, and keep their title.
        graph: the network.
        routes: colours of some pathways of the graph.
        gates: gates in [0, 1] by node `a` or edge `a->b`, with one value or several, such as one
            for each context.
        labels: texts beside input and output nodes, above hidden nodes, and above edges `a->b`,
            or left of their gates.
        units: the most units that are drawn of a node; dots replace the others.
        shape: width over height of the drawing; when absent, that of the axes before the layout.
        numbered: whether the gates of nodes have numbers above them, from 1.

    Raises:
        UserError: a route, gate or label of something that is not in the graph.
    """
    routes, gates, labels = routes or {}, gates or {}, labels or {}
    _check(graph, routes, gates, labels)
    width, height = (float(side) / ax.figure.dpi for side in ax.get_window_extent().size)
    height = width / shape if shape else height
    boxes, stops = lay_out(graph, (width, height), labels, units)
    strips = {name: np.ravel(values) for name, values in gates.items()}
    strokes = _strokes(graph, routes, {name for name, gate in strips.items() if not gate.any()})
    page = ax.inset_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height), aspect="equal")
    for axes in (ax, page):  # Both, so that the title keeps the place of a panel's title.
        axes.set_axis_off()
    _draw_edges(page, graph, boxes, stops, strokes, strips, labels)
    for name in graph.nodes:
        colours = {s.colour for s in strokes if name in graph.edges[s.edge]} - {None}
        fill = next(iter(colours)) if len(colours) == 1 else None
        _draw_node(page, name, boxes[name], graph.nodes[name], fill)
        if name in strips:
            side = 1 if name in graph.inputs else -1
            offset = side * (boxes[name].width + CELL * len(strips[name])) / 2
            _draw_gate(page, name, strips[name], boxes[name].x + offset, boxes[name].y)
            for number in range(len(strips[name]) if numbered else 0):
                middle = boxes[name].x + offset + CELL * (number + (1 - len(strips[name])) / 2)
                text = str(number + 1)
                _write(page, middle, boxes[name].y + CELL / 2 + 0.02, text, "center", "bottom")
        _label_node(page, graph, name, boxes[name], labels.get(name, ""))


def gate_handles() -> list[Artist]:
    """Legend handles of gates."""
    return [
        Patch(facecolor=shade, edgecolor="0.2", linewidth=0.6, label=f"gate {state}")
        for shade, state in (("1", "open"), ("0", "closed"))
    ]


def lay_out(
    graph: Architecture,
    size: tuple[float, float],
    labels: Mapping[str, str] | None = None,
    units: int = 4,
) -> tuple[dict[Stop, Box], list[list[Stop]]]:
    """Positions of nodes, and the stops of edges.

    The column of a node follows the last column of its sources; outputs are in the last column.
    Within a column, nodes are sorted by the mean position of their sources. An edge that passes a
    column has a stop there.

    Args:
        graph: the network.
        size: width and height in inches.
        labels: text beside or above nodes, by name.
        units: the most units that are drawn of a node.

    Returns:
        Boxes of all stops: nodes by name, and passing edges by edge and column.
        The stops of each edge.
    """
    labels = labels or {}
    columns, stops = _columns(graph)
    named = [name for name in graph.hidden if labels.get(name)]
    head = max((labels[name].count("\n") + 1 for name in named), default=0) * LINE_HEIGHT
    head += GAP if named else 0
    weights = [
        [1 if isinstance(stop, str) else EDGE_HEIGHT for stop in column] for column in columns
    ]
    slots = [size[1] / sum(weight) for weight in weights]
    shown = {name: min(count, units) for name, count in graph.nodes.items()}
    pitch = min(
        PITCH,
        *(
            (0.88 * slot - (2 * head if stop in named else 0)) / (shown[stop] + 0.4)
            for column, slot in zip(columns, slots, strict=True)
            for stop in column
            if isinstance(stop, str)
        ),
    )
    left, right = (
        max((_label_width(labels.get(name, "")) for name in side), default=0) + GAP + 0.7 * pitch
        for side in (graph.inputs, graph.outputs)
    )
    across = np.linspace(left, size[0] - right, len(columns))
    boxes: dict[Stop, Box] = {}
    for x, column, weight, slot in zip(across, columns, weights, slots, strict=True):
        ends = size[1] - slot * np.cumsum(weight)
        for stop, end, share in zip(column, ends, weight, strict=True):
            y, count = float(end + slot * share / 2), shown[stop] if isinstance(stop, str) else 0
            tall = (count + 0.4) * pitch if count else 0.0
            boxes[stop] = Box(float(x), y, 1.4 * pitch, tall, count)
    return boxes, stops


def _columns(graph: Architecture) -> tuple[list[list[Stop]], list[list[Stop]]]:
    """Stops by column, from top to bottom, and stops by edge."""
    depth: dict[str, int] = {}
    for name in graph.order:
        sources = [depth[graph.edges[edge][0]] + 1 for edge in graph.incoming[name]]
        depth[name] = max(sources, default=0)
    last = max(depth.values())
    depth |= dict.fromkeys(graph.outputs, last)
    columns: list[list[Stop]] = [[n for n in graph.nodes if depth[n] == c] for c in range(last + 1)]
    stops: list[list[Stop]] = []
    for number, (source, target) in enumerate(graph.edges):
        passed: list[Stop] = [(number, c) for c in range(depth[source] + 1, depth[target])]
        for column, stop in enumerate(passed, start=depth[source] + 1):
            columns[column].append(stop)
        stops.append([source, *passed, target])
    before: dict[Stop, list[Stop]] = {}
    for one, other in (pair for passed in stops for pair in pairwise(passed)):
        before.setdefault(other, []).append(one)
    height: dict[Stop, float] = {}
    for column in columns:
        listed = {stop: (n + 0.5) / len(column) for n, stop in enumerate(column)}
        mean = {s: np.mean([height[b] for b in before.get(s, ())] or listed[s]) for s in column}
        column.sort(key=lambda stop: mean[stop])
        height |= {stop: (n + 0.5) / len(column) for n, stop in enumerate(column)}
    return columns, stops


def _strokes(graph: Architecture, routes: Mapping[Pathway, Any], closed: set[str]) -> list[_Stroke]:
    """The lines through all edges; those of one edge are in the order of `routes`."""

    def stroke(edge: int, colour: Any, nodes: Sequence[str], edges: Sequence[int]) -> _Stroke:
        passed = {*nodes, *map(graph.edge_name, edges)}
        return _Stroke(edge, colour, bool(passed & closed))

    strokes = []
    for edge, ends in enumerate(graph.edges):
        passing = [(pathway, c) for pathway, c in routes.items() if edge in pathway.edges]
        strokes += [stroke(edge, c, pathway.nodes, pathway.edges) for pathway, c in passing]
        strokes += [] if passing else [stroke(edge, None, ends, (edge,))]
    return strokes


def _draw_edges(
    ax: Axes,
    graph: Architecture,
    boxes: Mapping[Stop, Box],
    stops: Sequence[Sequence[Stop]],
    strokes: Sequence[_Stroke],
    strips: Mapping[str, np.ndarray],
    labels: Mapping[str, str],
) -> None:
    """All lines, then the gates and labels of edges on top."""
    lanes, pitch = _lanes(graph, boxes, stops, strokes, strips)
    width = 0.85 * 72 * pitch
    middles: dict[str, list[float]] = {}
    for number, stroke in enumerate(strokes):
        codes, points = [], []
        for one, other in pairwise(stops[stroke.edge]):
            start, end = lanes[one, "out", number], lanes[other, "in", number]
            half = (start[0] + end[0]) / 2
            codes += [Path.LINETO if codes else Path.MOVETO, *[Path.CURVE4] * 3]
            points += [start, (half, start[1]), (half, end[1]), end]
        name = graph.edge_name(stroke.edge)
        middles.setdefault(name, []).append((points[0][1] + points[3][1]) / 2)
        props = {"edgecolor": stroke.colour or PLAIN["color"], "linewidth": width}
        props |= {"linewidth": PLAIN["linewidth"]} if stroke.colour is None else {}
        props |= CLOSED if stroke.closed else {}
        line = PathPatch(
            Path(points, codes), fill=False, label=f"_{name}", capstyle="butt", **props
        )
        ax.add_patch(line).set_zorder(1 if stroke.closed or stroke.colour is None else 1.5)
    for edge, name in enumerate(map(graph.edge_name, range(len(graph.edges)))):
        one, other = (boxes[stop] for stop in stops[edge][:2])
        x, y = (one.x + other.x) / 2, float(np.mean(middles[name]))
        if name in strips:
            _draw_gate(ax, name, strips[name], x, y)
        if text := labels.get(name):
            if name in strips:  # above its gate a sloping edge would run through it
                _write(ax, x - CELL, y, text, "right", "center")
            else:
                _write(ax, x, max(middles[name]) + width / 72, text, "center", "bottom")


def _lanes(
    graph: Architecture,
    boxes: Mapping[Stop, Box],
    stops: Sequence[Sequence[Stop]],
    strokes: Sequence[_Stroke],
    strips: Mapping[str, np.ndarray],
) -> tuple[dict[tuple[Stop, str, int], tuple[float, float]], float]:
    """Points where lines leave and reach their stops, and the least distance between lines.

    Lines at one side of a stop are sorted by the height of their other end, so that none cross.
    """
    sides: dict[tuple[Stop, str], list[tuple[float, int]]] = {}
    for number, stroke in enumerate(strokes):
        for one, other in pairwise(stops[stroke.edge]):
            sides.setdefault((one, "out"), []).append((-boxes[other].y, number))
            sides.setdefault((other, "in"), []).append((-boxes[one].y, number))
    heights = {stop: CELL if stop in strips else boxes[stop].height or PITCH for stop, _ in sides}
    pitch = min(MOST_WIDTH / 72, *(heights[stop] / len(side) for (stop, _), side in sides.items()))
    lanes = {}
    for (stop, way), side in sides.items():
        x, y = _port(graph, boxes, strips, stop, way == "out")
        for lane, (_, number) in enumerate(sorted(side)):
            lanes[stop, way, number] = x, y + pitch * ((len(side) - 1) / 2 - lane)
    return lanes, pitch


def _port(
    graph: Architecture,
    boxes: Mapping[Stop, Box],
    strips: Mapping[str, np.ndarray],
    stop: Stop,
    out: bool,
) -> tuple[float, float]:
    """Point where lines leave or reach a stop: at its box, or at its gate.

    Gates of inputs are on the right of their node, all others on the left.
    """
    box = boxes[stop]
    contextual = isinstance(stop, str) and stop in strips and out == (stop in graph.inputs)
    beyond = CELL * len(strips[stop]) if contextual else 0  # pyright: ignore[reportArgumentType]
    return box.x + (1 if out else -1) * (box.width / 2 + beyond), box.y


def _draw_node(ax: Axes, name: str, box: Box, count: int, fill: Any) -> None:
    """A box with its units; three small dots replace the last but one if units are left out."""
    pitch = box.width / 1.4
    corner = box.x - box.width / 2, box.y - box.height / 2
    shape = f"round,pad=0,rounding_size={pitch / 3}"
    thin = min(1, 12 * pitch)
    frame = {"facecolor": "white", "edgecolor": "0.35", "linewidth": 0.6 * thin, "zorder": 2}
    ax.add_patch(FancyBboxPatch(corner, box.width, box.height, shape, label=f"_{name}", **frame))
    middles = box.y + pitch * ((box.units - 1) / 2 - np.arange(box.units))
    dotted = box.units - 2 if 2 < box.units < count else None
    units = [Circle((box.x, y), 0.36 * pitch) for n, y in enumerate(middles) if n != dotted]
    props = {
        "facecolor": fill or "0.85",
        "edgecolor": "0.25",
        "linewidth": 0.4 * thin,
        "zorder": 2.5,
    }
    ax.add_collection(PatchCollection(units, **props), autolim=False)
    if dotted is not None:
        dots = [
            Circle((box.x, middles[dotted] + at * pitch), 0.07 * pitch) for at in (-0.3, 0, 0.3)
        ]
        ax.add_collection(PatchCollection(dots, facecolor="0.25", zorder=2.5), autolim=False)


def _draw_gate(ax: Axes, name: str, values: np.ndarray, x: float, y: float) -> None:
    """A row of cells, centred at a point."""
    start = x - CELL * len(values) / 2
    for number, value in enumerate(values):
        corner = start + CELL * number, y - CELL / 2
        props = {"facecolor": f"{value:g}", "edgecolor": "0.2", "linewidth": 0.5, "zorder": 3}
        ax.add_patch(Rectangle(corner, CELL, CELL, label=f"_gate of {name}", **props))


def _label_node(ax: Axes, graph: Architecture, name: str, box: Box, text: str) -> None:
    """Labels are beside inputs and outputs, and above hidden nodes."""
    if name in graph.inputs:
        _write(ax, box.x - box.width / 2 - GAP, box.y, text, "right", "center")
    elif name in graph.outputs:
        _write(ax, box.x + box.width / 2 + GAP, box.y, text, "left", "center")
    else:
        _write(ax, box.x, box.y + box.height / 2 + GAP / 2, text, "center", "bottom")


def _write(ax: Axes, x: float, y: float, text: str, across: Any, up: Any) -> None:
    if text:
        ax.text(x, y, text, ha=across, va=up, fontsize=FONT_SIZE, zorder=4, linespacing=1.1)


def _label_width(text: str) -> float:
    """Width of a label in inches."""
    return max(style.text_width(line, FONT_SIZE) for line in text.split("\n")) / 72 if text else 0.0


def _check(
    graph: Architecture,
    routes: Mapping[Pathway, Any],
    gates: Mapping[str, Any],
    labels: Mapping[str, str],
) -> None:
    if unknown_routes := set(routes) - set(graph.pathways):
        nodes = " -> ".join(next(iter(unknown_routes)).nodes)
        raise UserError(
            f"{nodes} is no pathway of this graph",
            key="routes",
            remedy="take them from its pathways",
        )
    known = {*graph.nodes, *map(graph.edge_name, range(len(graph.edges)))}
    for key, names in (("gates", gates), ("labels", labels)):
        if unknown := sorted(set(names) - known):
            raise UserError(
                "is no node and no edge of this graph",
                key=key,
                value=unknown[0],
                remedy="write edges as a->b",
            )
