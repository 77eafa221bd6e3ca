"""Networks as drawings, from the graphs that are trained: inputs on the left, outputs on the right.

A node is a box of units, and what flows through an edge a line: one for each route along it, in the
route's colour, or a grey one where there is none. Bundles of lines thus show how many routes share
a weight matrix. A gate stands on the side of its node, or on its edge, as a row of cells, one for
each context or sample that it is told for: light where it is open, dark where it is closed. What
runs through a gate that is closed in all of them is dotted.
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
"""What an edge passes: nodes by name, and places between them by edge and column."""
LETTERS = 6.5
"""Points of labels."""
LINE = LETTERS * 1.35 / 72
"""Inches that a line of a label takes."""
GAP = 0.05
"""Inches between a label and what it is put beside."""
PITCH = 0.13
"""Inches between units, at most."""
CELL = 0.075
"""Side of a cell of a gate, in inches."""
SLIM = 0.4
"""Room for an edge that passes a column, beside that for a node."""
WIDE = 1.6
"""Points of a line, at most."""
PLAIN = {"color": "0.6", "linewidth": 0.8}
CLOSED = {"linestyle": (0, (1, 1.5)), "linewidth": 0.7, "alpha": 0.6}


@dataclass(frozen=True)
class Box:
    """Where a node stands, in inches: its centre and its size."""

    x: float
    y: float
    width: float
    height: float
    units: int
    """Units that are shown."""


@dataclass(frozen=True)
class _Stroke:
    """What flows through an edge on one route, or on none."""

    edge: int
    colour: Any
    closed: bool


def graph(cell: CellResults) -> Architecture:
    """The graph of a cell's network; that of a layered one is a row of nodes `0`, `1`, ...

    Raises:
        UserError: gates that follow the weights, or that do not fit the dataset.
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
) -> None:
    """A network, in layers from left to right, as large as the axes allow.

    Args:
        ax: where to, in an inset of its own; ticks and frame go, and a title stays.
        graph: what is drawn.
        routes: pathways of the graph that are coloured, with their colours.
        gates: gates in [0, 1] by node `a` or edge `a->b`, each of one value or of several, such as
            one for each context.
        labels: what to write beside input and output nodes and above all others, and above edges
            `a->b`.
        units: most units that are shown of a node; dots stand for the others.
        shape: width over height of the drawing; those of the axes before they are laid out when
            absent.

    Raises:
        UserError: a route, gate or label of what is not in the graph.
    """
    routes, gates, labels = routes or {}, gates or {}, labels or {}
    _check(graph, routes, gates, labels)
    width, height = (float(side) / ax.figure.dpi for side in ax.get_window_extent().size)
    height = width / shape if shape else height
    boxes, stops = lay_out(graph, (width, height), labels, units)
    strips = {name: np.ravel(values) for name, values in gates.items()}
    strokes = _strokes(graph, routes, {name for name, gate in strips.items() if not gate.any()})
    page = ax.inset_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height), aspect="equal")
    for each in (ax, page):  # the title stays where that of a panel is
        each.set_axis_off()
    _draw_edges(page, graph, boxes, stops, strokes, strips, labels)
    for name in graph.nodes:
        colours = {s.colour for s in strokes if name in graph.edges[s.edge]}
        fill = next(iter(colours)) if len(colours) == 1 else None
        _draw_node(page, name, boxes[name], graph.nodes[name], fill)
        if name in strips:
            behind = 1 if name in graph.inputs else -1
            beside = behind * (boxes[name].width + CELL * len(strips[name])) / 2
            _draw_gate(page, name, strips[name], boxes[name].x + beside, boxes[name].y)
        _label_node(page, graph, name, boxes[name], labels.get(name, ""))


def gate_entries() -> list[Artist]:
    """Legend entries of gates."""
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
    """Where nodes stand, and what edges pass.

    A node is in the column after the last of those it comes from, and outputs are in the last one.
    Within a column nodes are ordered by where they come from, and an edge that passes a column has
    a place of its own there.

    Args:
        graph: what is drawn.
        size: width and height in inches.
        labels: text beside or above nodes, by name.
        units: most units that are shown of a node.

    Returns:
        boxes of nodes, by name, and places of passing edges, by edge and column; and the stops of
        each edge.
    """
    labels = labels or {}
    columns, stops = _columns(graph)
    named = [name for name in graph.hidden if labels.get(name)]
    head = max((labels[name].count("\n") + 1 for name in named), default=0) * LINE
    head += GAP if named else 0
    weights = [[1 if isinstance(stop, str) else SLIM for stop in column] for column in columns]
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
        max((_wide(labels.get(name, "")) for name in side), default=0) + GAP + 0.7 * pitch
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
    """Stops by column, each in order from above, and stops by edge."""
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
    for one, other in (pair for each in stops for pair in pairwise(each)):
        before.setdefault(other, []).append(one)
    place: dict[Stop, float] = {}
    for column in columns:
        listed = {stop: (n + 0.5) / len(column) for n, stop in enumerate(column)}
        mean = {s: np.mean([place[b] for b in before.get(s, ())] or listed[s]) for s in column}
        column.sort(key=lambda stop: mean[stop])
        place |= {stop: (n + 0.5) / len(column) for n, stop in enumerate(column)}
    return columns, stops


def _strokes(graph: Architecture, routes: Mapping[Pathway, Any], closed: set[str]) -> list[_Stroke]:
    """What flows through the edges, each edge's by route in the order of these."""

    def stroke(edge: int, colour: Any, nodes: Sequence[str], edges: Sequence[int]) -> _Stroke:
        passed = {*nodes, *map(graph.edge_name, edges)}
        return _Stroke(edge, colour, bool(passed & closed))

    found = []
    for edge, ends in enumerate(graph.edges):
        own = [(pathway, c) for pathway, c in routes.items() if edge in pathway.edges]
        found += [stroke(edge, c, pathway.nodes, pathway.edges) for pathway, c in own]
        found += [] if own else [stroke(edge, None, ends, (edge,))]
    return found


def _draw_edges(
    ax: Axes,
    graph: Architecture,
    boxes: Mapping[Stop, Box],
    stops: Sequence[Sequence[Stop]],
    strokes: Sequence[_Stroke],
    strips: Mapping[str, np.ndarray],
    labels: Mapping[str, str],
) -> None:
    """Lines of all strokes from lane to lane, then gates and labels of edges over them."""
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
        look = {"edgecolor": stroke.colour or PLAIN["color"], "linewidth": width}
        look |= {"linewidth": PLAIN["linewidth"]} if stroke.colour is None else {}
        look |= CLOSED if stroke.closed else {}
        line = PathPatch(Path(points, codes), fill=False, label=f"_{name}", capstyle="butt", **look)
        ax.add_patch(line).set_zorder(1 if stroke.closed or stroke.colour is None else 1.5)
    for edge, name in enumerate(map(graph.edge_name, range(len(graph.edges)))):
        one, other = (boxes[stop] for stop in stops[edge][:2])
        x, y = (one.x + other.x) / 2, float(np.mean(middles[name]))
        if name in strips:
            _draw_gate(ax, name, strips[name], x, y)
        if text := labels.get(name):
            above = max(middles[name]) + width / 72 + (CELL / 2 if name in strips else 0)
            _write(ax, x, above, text, "center", "bottom")


def _lanes(
    graph: Architecture,
    boxes: Mapping[Stop, Box],
    stops: Sequence[Sequence[Stop]],
    strokes: Sequence[_Stroke],
    strips: Mapping[str, np.ndarray],
) -> tuple[dict[tuple[Stop, str, int], tuple[float, float]], float]:
    """Where strokes leave and reach their stops, such that none cross at a side; least distance."""
    sides: dict[tuple[Stop, str], list[tuple[float, int]]] = {}
    for number, stroke in enumerate(strokes):
        for one, other in pairwise(stops[stroke.edge]):
            sides.setdefault((one, "out"), []).append((-boxes[other].y, number))
            sides.setdefault((other, "in"), []).append((-boxes[one].y, number))
    room = {stop: CELL if stop in strips else boxes[stop].height or PITCH for stop, _ in sides}
    pitch = min(WIDE / 72, *(room[stop] / len(side) for (stop, _), side in sides.items()))
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
    """Where lines leave a stop, or reach it: at its box, or at the gate that stands there.

    Gates of inputs stand behind them, all others before.
    """
    box = boxes[stop]
    gated = isinstance(stop, str) and stop in strips and out == (stop in graph.inputs)
    beyond = CELL * len(strips[stop]) if gated else 0  # pyright: ignore[reportArgumentType]
    return box.x + (1 if out else -1) * (box.width / 2 + beyond), box.y


def _draw_node(ax: Axes, name: str, box: Box, count: int, fill: Any) -> None:
    """A box with its units; three small dots stand in the place of the last but one of more."""
    pitch = box.width / 1.4
    corner = box.x - box.width / 2, box.y - box.height / 2
    shape = f"round,pad=0,rounding_size={pitch / 3}"
    thin = min(1, 12 * pitch)
    frame = {"facecolor": "white", "edgecolor": "0.35", "linewidth": 0.6 * thin, "zorder": 2}
    ax.add_patch(FancyBboxPatch(corner, box.width, box.height, shape, label=f"_{name}", **frame))
    middles = box.y + pitch * ((box.units - 1) / 2 - np.arange(box.units))
    dotted = box.units - 2 if 2 < box.units < count else None
    units = [Circle((box.x, y), 0.36 * pitch) for n, y in enumerate(middles) if n != dotted]
    look = {
        "facecolor": fill or "0.85",
        "edgecolor": "0.25",
        "linewidth": 0.4 * thin,
        "zorder": 2.5,
    }
    ax.add_collection(PatchCollection(units, **look), autolim=False)
    if dotted is not None:
        dots = [
            Circle((box.x, middles[dotted] + at * pitch), 0.07 * pitch) for at in (-0.3, 0, 0.3)
        ]
        ax.add_collection(PatchCollection(dots, facecolor="0.25", zorder=2.5), autolim=False)


def _draw_gate(ax: Axes, name: str, values: np.ndarray, x: float, y: float) -> None:
    """A row of cells about a place."""
    start = x - CELL * len(values) / 2
    for number, value in enumerate(values):
        corner = start + CELL * number, y - CELL / 2
        look = {"facecolor": f"{value:g}", "edgecolor": "0.2", "linewidth": 0.5, "zorder": 3}
        ax.add_patch(Rectangle(corner, CELL, CELL, label=f"_gate of {name}", **look))


def _label_node(ax: Axes, graph: Architecture, name: str, box: Box, text: str) -> None:
    """Beside inputs and outputs, and above all others."""
    if name in graph.inputs:
        _write(ax, box.x - box.width / 2 - GAP, box.y, text, "right", "center")
    elif name in graph.outputs:
        _write(ax, box.x + box.width / 2 + GAP, box.y, text, "left", "center")
    else:
        _write(ax, box.x, box.y + box.height / 2 + GAP / 2, text, "center", "bottom")


def _write(ax: Axes, x: float, y: float, text: str, across: Any, up: Any) -> None:
    if text:
        ax.text(x, y, text, ha=across, va=up, fontsize=LETTERS, zorder=4, linespacing=1.1)


def _wide(text: str) -> float:
    """Inches that a label takes across."""
    return max(style.width(line, LETTERS) for line in text.split("\n")) / 72 if text else 0.0


def _check(
    graph: Architecture,
    routes: Mapping[Pathway, Any],
    gates: Mapping[str, Any],
    labels: Mapping[str, str],
) -> None:
    if alien := set(routes) - set(graph.pathways):
        nodes = " -> ".join(next(iter(alien)).nodes)
        raise UserError(f"routes: {nodes} is no pathway of this graph; take them from its pathways")
    known = {*graph.nodes, *map(graph.edge_name, range(len(graph.edges)))}
    for what, names in (("gates", gates), ("labels", labels)):
        if unknown := sorted(set(names) - known):
            raise UserError(
                f"{what}: {unknown[0]!r} is no node and no edge of this graph; edges are written "
                "as a->b"
            )
