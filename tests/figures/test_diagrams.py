"""Network diagrams: positions of nodes, lines of routes, gates, labels and errors."""

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch, PathPatch, Rectangle

from neuralrace.errors import UserError
from neuralrace.figures import diagrams, style
from neuralrace.networks.gates.architecture import Architecture, chain
from neuralrace.networks.gates.base import Family
from neuralrace.networks.gates.wiring import routing_architecture
from neuralrace.results.cells import open_results

SKIP = Architecture(
    nodes={"a": 2, "b": 2, "hidden": 12, "deep": 3, "left": 2, "right": 5},
    edges=(
        ("a", "hidden"),
        ("b", "hidden"),
        ("hidden", "deep"),
        ("deep", "left"),
        ("deep", "right"),
        ("a", "left"),
        ("b", "right"),
    ),
)
ROUTED = routing_architecture(4, 3, 5, (Family(2, (64, 64)), Family(1, (8, 8))))
GRAPHS = {"skip": SKIP, "routed": ROUTED, "layered": chain((2, 128, 1))}
SIZE = 3.0, 2.0


def axes() -> Axes:
    return style.Canvas(figsize=SIZE).subplots()


def drawing(*args: Any, **options: Any) -> Axes:
    """The inset that a network is drawn into."""
    ax = axes()
    diagrams.draw_network(ax, *args, **options)
    (page,) = ax.child_axes
    assert isinstance(page, Axes)
    return page


def boxes_in(ax: Axes) -> dict:
    return diagrams.lay_out(SKIP, (float(ax.get_xlim()[1]), float(ax.get_ylim()[1])))[0]


def vertices(patch: Patch) -> np.ndarray:
    return np.asarray(patch.get_path().vertices)


def lines(ax: Axes, edge: str) -> list[PathPatch]:
    return [p for p in ax.patches if isinstance(p, PathPatch) and p.get_label() == f"_{edge}"]


def cells(ax: Axes, name: str) -> list[Rectangle]:
    """The cells of a gate."""
    patches = [p for p in ax.patches if p.get_label() == f"_gate of {name}"]
    return [patch for patch in patches if isinstance(patch, Rectangle)]


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_nodes_are_ordered_and_do_not_overlap(graph: Architecture):
    labels = {name: name for name in graph.nodes}
    boxes, stops = diagrams.lay_out(graph, SIZE, labels)
    for edge, passed in zip(graph.edges, stops, strict=True):
        assert (passed[0], passed[-1]) == edge
        assert all(boxes[one].x < boxes[other].x for one, other in pairwise(passed))
    assert len({boxes[name].x for name in graph.inputs}) == 1
    assert len({boxes[name].x for name in graph.outputs}) == 1
    for box in boxes.values():
        assert box.width / 2 <= box.x <= SIZE[0] - box.width / 2
        assert box.height / 2 <= box.y <= SIZE[1] - box.height / 2
    for one, other in combinations(boxes.values(), 2):
        side_by_side = abs(one.x - other.x) >= (one.width + other.width) / 2
        above = abs(one.y - other.y) > (one.height + other.height) / 2
        assert side_by_side or above


def test_edges_avoid_the_nodes_that_they_pass():
    boxes, stops = diagrams.lay_out(SKIP, SIZE)
    passing = stops[SKIP.edges.index(("a", "left"))]
    assert len(passing) == 4
    ax = drawing(SKIP)
    (line,) = lines(ax, "a->left")
    curve = np.asarray(line.get_path().interpolated(50).vertices)
    boxes = boxes_in(ax)
    for name in SKIP.hidden:
        box = boxes[name]
        within = abs(curve[:, 0] - box.x) <= box.width / 2
        assert within.any()
        assert np.all(abs(curve[within, 1] - box.y) > box.height / 2)


def test_number_of_drawn_units_is_limited():
    boxes, _ = diagrams.lay_out(SKIP, SIZE, units=4)
    assert [boxes[name].units for name in SKIP.nodes] == [2, 2, 4, 3, 2, 4]


def test_edges_have_the_colours_of_their_routes():
    colours = dict(zip(ROUTED.pathways, style.sequential(len(ROUTED.pathways)), strict=True))
    ax = drawing(ROUTED, colours)
    assert len(ROUTED.pathways) == 32
    for number in range(len(ROUTED.edges)):
        drawn = lines(ax, ROUTED.edge_name(number))
        through = [c for pathway, c in colours.items() if number in pathway.edges]
        assert [to_rgb(line.get_edgecolor()) for line in drawn] == [to_rgb(c) for c in through]


def test_lines_of_a_bundle_do_not_overlap():
    ax = drawing(ROUTED, dict.fromkeys(ROUTED.pathways, "C0"))
    shared = "hidden 1 of family 1, block 1, 1->hidden 2 of family 1, block 1, 1"
    bundle = lines(ax, shared)
    assert len(bundle) == 4
    heights = sorted(float(vertices(line)[0, 1]) for line in bundle)
    width = bundle[0].get_linewidth() / 72
    assert np.all(np.diff(heights) > width)


def test_edges_without_a_route_are_grey():
    route = SKIP.pathways[0]
    ax = drawing(SKIP, {route: "red"})
    for number in range(len(SKIP.edges)):
        (line,) = lines(ax, SKIP.edge_name(number))
        red, green, blue = to_rgb(line.get_edgecolor())
        assert (red, green, blue) == (1, 0, 0) if number in route.edges else red == green == blue


def solid(line: Patch) -> bool:
    return line.get_linestyle() in ("solid", "-")


def test_gates_are_light_where_open_and_closed_routes_are_dotted():
    gates = {"a": [1, 0.5, 0], "b": [0, 0, 0], "deep->right": [1]}
    ax = drawing(SKIP, dict.fromkeys(SKIP.pathways, "C0"), gates)
    shades = {name: [to_rgb(cell.get_facecolor())[0] for cell in cells(ax, name)] for name in gates}
    assert shades == {"a": [1, 0.5, 0], "b": [0, 0, 0], "deep->right": [1]}
    assert all(solid(line) for line in lines(ax, "a->hidden"))
    assert not any(solid(line) for line in lines(ax, "b->hidden"))
    # The gate of a is open in some cells, the gate of b in none.
    assert [solid(line) for line in lines(ax, "deep->left")] == [True, False]


def test_gates_are_right_of_inputs_and_left_of_other_nodes():
    ax = drawing(SKIP, gates={"a": [1], "deep": [1, 0], "left": [0]})
    boxes = boxes_in(ax)
    start = {name: cells(ax, name)[0].get_x() for name in ("a", "deep", "left")}
    a, deep, left = (boxes[name] for name in start)
    assert start["a"] == pytest.approx(a.x + a.width / 2)
    assert start["deep"] == pytest.approx(deep.x - deep.width / 2 - 2 * diagrams.CELL)
    assert start["left"] == pytest.approx(left.x - left.width / 2 - diagrams.CELL)


def test_nodes_and_edges_have_labels():
    labels = {"a": "first", "deep": "12 units", "left": "out", "hidden->deep": "both"}
    ax = drawing(SKIP, labels=labels)
    assert sorted(text.get_text() for text in ax.texts) == sorted(labels.values())


def test_drawing_is_deterministic():
    drawn = []
    for _ in range(2):
        ax = drawing(ROUTED)
        drawn.append([vertices(patch).tolist() for patch in ax.patches])
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    ("options", "key", "value", "problem"),
    [
        ({"routes": {ROUTED.pathways[0]: "red"}}, "routes", "", "input 1 -> .* is no pathway of"),
        ({"gates": {"c": [1]}}, "gates", "'c'", "is no node and no edge"),
        ({"labels": {"a->b": "x"}}, "labels", "'a->b'", "is no node and no edge"),
    ],
)
def test_unknown_routes_gates_and_labels_are_refused(
    options: dict, key: str, value: str, problem: str
):
    with pytest.raises(UserError, match=problem) as error:
        diagrams.draw_network(axes(), SKIP, **options)
    assert (error.value.key, error.value.value) == (key, value)


@pytest.mark.parametrize(
    ("experiment", "pathways"),
    [("structural_forms", 1), ("contexts", 5), ("xor_gated", 4), ("pathways", 49)],
)
def test_graph_is_that_of_the_network(
    experiment: str, pathways: int, results_root: Path, cell_ids: list[str]
):
    cells = [name for name in cell_ids if name.startswith(f"neural_race/{experiment}/")]
    cell = open_results(results_root, cells).cells(experiment)[0]
    graph = diagrams.graph(cell)
    assert len(graph.pathways) == pathways
    sides = [sum(graph.nodes[name] for name in side) for side in (graph.inputs, graph.outputs)]
    wide = cell.spec.dataset.count if cell.spec.network.by_domain else 1
    assert sides == [cell.data.x.shape[1] * wide, cell.data.y.shape[1] * wide]
