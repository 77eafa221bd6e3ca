"""Architecture graphs: their parts, their pathways, and graphs that are refused."""

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from neuralrace.networks.gates.architecture import Architecture, Pathway, chain

DIAMOND = Architecture(
    nodes={"y": 4, "b": 2, "h": 5, "a": 3, "z": 1},
    edges=(("a", "h"), ("h", "y"), ("b", "h"), ("h", "z"), ("a", "y")),
)


def test_a_graph_has_inputs_outputs_and_hidden_nodes():
    assert DIAMOND.inputs == ("b", "a")
    assert DIAMOND.outputs == ("y", "z")
    assert DIAMOND.hidden == ("h",)
    assert DIAMOND.incoming["h"] == (0, 2)
    assert DIAMOND.outgoing["a"] == (0, 4)
    assert DIAMOND.incoming["a"] == DIAMOND.outgoing["z"] == ()
    assert DIAMOND.edge_name(3) == "h->z"


def test_pathways_go_depth_first_from_each_input():
    assert DIAMOND.pathways == (
        Pathway(("b", "h", "y"), (2, 1)),
        Pathway(("b", "h", "z"), (2, 3)),
        Pathway(("a", "h", "y"), (0, 1)),
        Pathway(("a", "h", "z"), (0, 3)),
        Pathway(("a", "y"), (4,)),
    )
    assert [(p.source, p.target) for p in DIAMOND.pathways[:2]] == [("b", "y"), ("b", "z")]


def test_columns_follow_the_order_of_the_nodes():
    """x lists b before a, and y lists y before z, as `nodes` does."""
    assert DIAMOND.columns("b") == slice(0, 2)
    assert DIAMOND.columns("a") == slice(2, 5)
    assert DIAMOND.columns("y") == slice(0, 4)
    assert DIAMOND.columns("z") == slice(4, 5)


@st.composite
def graphs(draw):
    """Random acyclic graphs whose nodes are listed in any order, by name of their depth."""
    count = draw(st.integers(2, 7))
    pairs = [(str(n), str(m)) for m in range(count) for n in range(m)]
    edges = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    names = draw(st.permutations(sorted({name for edge in edges for name in edge})))
    return Architecture(nodes=dict.fromkeys(names, 1), edges=tuple(edges))


@settings(max_examples=40)
@given(graph=graphs())
def test_pathways_are_all_simple_paths(graph):
    plain = nx.DiGraph(list(graph.edges))
    sources = [name for name, degree in plain.in_degree() if degree == 0]
    sinks = [name for name, degree in plain.out_degree() if degree == 0]
    assert set(graph.inputs) == set(sources)
    assert set(graph.outputs) == set(sinks)
    expected = {
        tuple(path)
        for source in sources
        for sink in sinks
        for path in nx.all_simple_edge_paths(plain, source, sink)
    }
    walked = [tuple(graph.edges[edge] for edge in pathway.edges) for pathway in graph.pathways]
    assert len(walked) == len(set(walked))
    assert set(walked) == expected
    for pathway, walk in zip(graph.pathways, walked, strict=True):
        assert pathway.nodes == (walk[0][0], *(target for _, target in walk))


@settings(max_examples=40)
@given(graph=graphs())
def test_order_points_onwards(graph):
    assert sorted(graph.order) == sorted(graph.nodes)
    position = {name: n for n, name in enumerate(graph.order)}
    assert all(position[source] < position[target] for source, target in graph.edges)


@settings(max_examples=20)
@given(graph=graphs())
def test_boundary_columns_tile_the_data(graph):
    for side in (graph.inputs, graph.outputs):
        columns = [n for name in side for n in range(100)[graph.columns(name)]]
        assert columns == list(range(len(side)))


def test_chain_is_the_layered_network():
    graph = chain((4, 3, 2))
    assert graph.nodes == {"0": 4, "1": 3, "2": 2}
    assert graph.edges == (("0", "1"), ("1", "2"))
    assert graph.pathways == (Pathway(("0", "1", "2"), (0, 1)),)


def test_a_graph_is_read_from_lists_as_in_json_and_yaml():
    graph = Architecture(nodes={"a": 2, "b": 1}, edges=(("a", "b"),))
    spec = {"nodes": {"a": 2, "b": 1}, "edges": [["a", "b"]]}
    assert Architecture.model_validate(spec) == graph
    assert Architecture.model_validate_json(graph.canonical()) == graph


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ("abc", ["ab", "bc", "ca"], "edges: form the cycle"),
        ("ab", ["ab", "bb"], "edges: form the cycle b;"),
        ("ab", ["ab", "bd"], r"edges: \['d'\]: unknown nodes"),
        ("abc", ["ab"], r"nodes: \['c'\]: on no pathway"),
        ("ab", ["ab", "ab"], r"edges: \[\['a', 'b'\]\]: listed twice"),
        ("a", [], "at least 2 items"),
        ("ab", [], r"nodes: \['a', 'b'\]: on no pathway"),
    ],
)
def test_a_graph_that_cannot_be_trained_is_refused(nodes, edges, message):
    with pytest.raises(ValidationError, match=message):
        Architecture(nodes=dict.fromkeys(nodes, 2), edges=tuple((a, b) for a, b in edges))


def test_a_layer_has_units():
    with pytest.raises(ValidationError, match="greater than 0"):
        Architecture(nodes={"a": 2, "b": 0}, edges=(("a", "b"),))
