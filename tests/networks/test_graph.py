"""The gated network on a graph, against sums over pathways in NumPy."""

from functools import reduce
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.modules.graph import GatedNetwork

SAMPLES = 4


def drawn(nodes, edges, seed):
    """A graph with random weights, gates on some nodes and edges, and inputs by node."""
    rng = np.random.default_rng(seed)
    weights = {(a, b): rng.normal(size=(nodes[b], nodes[a])) for a, b in edges}
    names = [*nodes, *(f"{a}->{b}" for a, b in edges)]
    gates = {name: rng.uniform(size=SAMPLES) for name in names if rng.uniform() < 0.6}
    targets = {b for _, b in edges}
    x = {n: rng.normal(size=(SAMPLES, width)) for n, width in nodes.items() if n not in targets}
    return weights, gates, x


def routes(edges, start):
    """All paths from a node to nodes without outgoing edges."""
    onwards = [b for a, b in edges if a == start]
    return (
        [[start]] if not onwards else [[start, *way] for b in onwards for way in routes(edges, b)]
    )


def path_sum(edges, weights, gates, x):
    """Outputs by node: each pathway's product of weights, times all gates on it."""
    outputs = {}
    for source, columns in x.items():
        for way in routes(edges, source):
            steps = list(pairwise(way))
            total = reduce(
                lambda below, edge: weights[edge] @ below, steps, np.eye(columns.shape[1])
            )
            gate = np.ones(SAMPLES)
            for name in [*way, *(f"{a}->{b}" for a, b in steps)]:
                gate = gate * gates.get(name, 1.0)
            out = gate[:, None] * (columns @ total.T)
            outputs[way[-1]] = outputs.get(way[-1], 0) + out
    return outputs


def network_of(nodes, edges, weights):
    graph = Architecture(nodes=nodes, edges=tuple(edges))
    return GatedNetwork(graph, [jnp.asarray(weights[edge]) for edge in graph.edges])


def assert_forward_is_path_sum(nodes, edges, seed):
    weights, gates, x = drawn(nodes, edges, seed)
    expected = path_sum(edges, weights, gates, x)
    with jax.enable_x64(True):
        network = network_of(nodes, edges, weights)
        columns = jnp.asarray(np.hstack([x[name] for name in network.architecture.inputs]))
        outputs = network(columns, jax.tree.map(jnp.asarray, gates))
    concatenated = np.hstack([expected[name] for name in nodes if name in expected])
    np.testing.assert_allclose(outputs, concatenated, rtol=1e-12, atol=1e-12)


@st.composite
def graphs(draw):
    """Random acyclic graphs without lone nodes, nodes and edges in any order."""
    count = draw(st.integers(2, 6))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    used = draw(st.permutations(sorted({node for edge in chosen for node in edge})))
    nodes = {f"n{node}": draw(st.integers(1, 2)) for node in used}
    return nodes, [(f"n{a}", f"n{b}") for a, b in chosen]


@given(graph=graphs(), seed=st.integers(0, 1000))
@settings(max_examples=12, phases=[Phase.generate])  # JAX compiles every new shape
def test_forward_is_the_sum_over_pathways(graph, seed):
    assert_forward_is_path_sum(*graph, seed)


NODES = {"z": 2, "b": 1, "h": 3, "a": 2, "k": 2, "y": 1}
EDGES = [
    ("h", "y"),
    ("a", "h"),
    ("b", "k"),
    ("h", "k"),
    ("k", "y"),
    ("b", "h"),
    ("k", "z"),
    ("a", "z"),
]


def test_forward_with_several_ends_and_shortcuts():
    assert_forward_is_path_sum(NODES, EDGES, 0)


def test_pathway_maps_are_products_of_weights():
    weights, _, _ = drawn(NODES, EDGES, 1)
    with jax.enable_x64(True):
        network = network_of(NODES, EDGES, weights)
        maps = network.maps()
    pathways = network.architecture.pathways
    by_nodes = {pathway.nodes: np.asarray(m) for pathway, m in zip(pathways, maps, strict=True)}
    ways = [tuple(way) for source in ("b", "a") for way in routes(EDGES, source)]
    assert sorted(by_nodes) == sorted(ways)
    for way in ways:
        edges = reversed(list(pairwise(way)))
        expected = np.linalg.multi_dot([*(weights[edge] for edge in edges), np.eye(NODES[way[0]])])
        np.testing.assert_allclose(by_nodes[way], expected, rtol=1e-12)


def test_weights_and_junctions_are_listed_by_edge_and_node():
    weights, _, _ = drawn(NODES, EDGES, 2)
    with jax.enable_x64(True):
        network = network_of(NODES, EDGES, weights)
        for matrix, edge in zip(network.weights, EDGES, strict=True):
            np.testing.assert_array_equal(matrix, weights[edge])
        expected = {"h": (["ah", "bh"], ["hy", "hk"]), "k": (["bk", "hk"], ["ky", "kz"])}
        for name, junction in zip("hk", network.junctions, strict=True):
            for matrices, edges in zip(junction, expected[name], strict=True):
                for matrix, (a, b) in zip(matrices, edges, strict=True):
                    np.testing.assert_array_equal(matrix, weights[a, b])
