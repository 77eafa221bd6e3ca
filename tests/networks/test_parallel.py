"""Parallel pathways as stacks, against the same pathways on their graph."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralrace.datasets import Data
from neuralrace.networks.gates.wiring import parallel
from neuralrace.networks.modules.gated import ParallelNetwork, side_by_side
from neuralrace.networks.modules.graph import GatedNetwork

INPUTS, OUTPUTS, SAMPLES = 3, 2, 5
WIDTHS = {
    "one hidden layer": [(4,), (1,), (2,)],
    "two": [(2, 3), (2, 3), (1, 2)],
    "three": [(1, 3, 2), (2, 1, 4), (2, 1, 4), (1, 3, 2)],
    "equal widths": [(2,)] * 11,
}
"""Units of parallel pathways, with and without neighbours of equal width."""
every_width = pytest.mark.parametrize("hidden", WIDTHS.values(), ids=WIDTHS)


def wired(hidden, visible=None, seed=0):
    """Pathways of these widths with random gates, some of them half open."""
    rng = np.random.default_rng(seed)
    data = Data(x=rng.normal(size=(SAMPLES, INPUTS)), y=rng.normal(size=(SAMPLES, OUTPUTS)))
    gates = rng.choice([0, 0.5, 1], size=(len(hidden), SAMPLES))
    gates[rng.integers(len(hidden), size=SAMPLES), range(SAMPLES)] = 1
    everything = np.ones((len(hidden), INPUTS), dtype=bool)
    return parallel(hidden, gates, everything if visible is None else visible, data)


def drawn(wiring, seed=1):
    """Random weights by edge; zero from inputs that an edge does not receive."""
    rng, graph = np.random.default_rng(seed), wiring.architecture
    return [
        rng.normal(size=(graph.nodes[target], graph.nodes[source]))
        * wiring.visible_inputs.get(f"{source}->{target}", True)
        for source, target in graph.edges
    ]


def both(wiring, weights):
    """The network as stacks, and on its graph."""
    graph = wiring.architecture
    stacks = jax.tree.map(jnp.asarray, side_by_side(weights, graph))
    return (
        ParallelNetwork(stacks),
        GatedNetwork(graph, [jnp.asarray(weight) for weight in weights]),
    )


def outputs(wiring, network):
    """Outputs of either network."""
    if isinstance(network, ParallelNetwork):
        return network(jnp.asarray(wiring.gated_inputs))
    gates = {name: jnp.asarray(gate) for name, gate in wiring.gates.items()}
    return network(jnp.asarray(wiring.data.x), gates)


def some_inputs(pathways):
    """Every input is hidden from some pathway; the first pathway receives all of them."""
    return (np.arange(INPUTS) + np.arange(pathways)[:, None]) % 3 < 3 - (np.arange(pathways) % 2)[
        :, None
    ]


@every_width
@pytest.mark.parametrize("partial", [False, True], ids=["every input", "some inputs"])
def test_stacks_have_the_outputs_of_the_graph(hidden, partial):
    wiring = wired(hidden, some_inputs(len(hidden)) if partial else None)
    assert bool(wiring.visible_inputs) == partial
    with jax.enable_x64(True):
        stacked, graph = both(wiring, drawn(wiring))
        result, expected, maps, pathway_maps = jax.jit(
            lambda: (
                outputs(wiring, stacked),
                outputs(wiring, graph),
                stacked.maps(),
                graph.maps(),
            )
        )()
        assert np.abs(expected).max() > 1e-2
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)
        assert len(maps) == len(hidden)
        for one, other in zip(np.asarray(maps), pathway_maps, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


@every_width
def test_weights_and_junctions_are_those_of_the_graph(hidden):
    wiring = wired(hidden)
    weights = drawn(wiring)
    with jax.enable_x64(True):
        stacked, graph = both(wiring, weights)
        assert len(stacked.weights) == len(weights)
        for one, other in zip(stacked.weights, weights, strict=True):
            np.testing.assert_array_equal(one, other)
        assert len(stacked.junctions) == len(wiring.architecture.hidden)
        for junction, expected in zip(stacked.junctions, graph.junctions, strict=True):
            for (one,), (other,) in zip(junction, expected, strict=True):
                np.testing.assert_array_equal(one, other)


@given(data=st.data(), runs=st.lists(st.integers(1, 3), max_size=2))
@settings(max_examples=25)
def test_stacks_hold_every_edge_once_with_neighbours_together(data, runs):
    units = st.tuples(*[st.integers(1, 2)] * data.draw(st.integers(1, 3)))
    hidden = data.draw(st.lists(units, min_size=1, max_size=12))
    wiring = wired(hidden)
    rng = np.random.default_rng(2)
    weights = [rng.normal(size=(*runs, *weight.shape)) for weight in drawn(wiring)]
    stacks = side_by_side(weights, wiring.architecture)
    edges = [
        np.take(layer, pathway, axis=-3)
        for layers in stacks
        for pathway in range(layers[0].shape[-3])
        for layer in layers
    ]
    assert len(edges) == len(weights)
    for one, other in zip(edges, weights, strict=True):
        np.testing.assert_array_equal(one, other)
    changes = sum(one != other for one, other in pairwise(hidden))
    assert len(stacks) == 1 + changes


def test_stacks_descend_as_the_graph_does():
    """Gradient descent with momentum, of all weights in either form."""
    wiring = wired(WIDTHS["three"])

    def descended(network):
        graph, weights, rest = nnx.split(network, nnx.Param, ...)

        @jax.jit
        @jax.grad
        def slope(weights):
            out = outputs(wiring, nnx.merge(graph, weights, rest))
            return jnp.sum((out - wiring.data.y) ** 2) / 50

        speed = jax.tree.map(jnp.zeros_like, weights)
        for _ in range(6):
            speed = jax.tree.map(lambda v, g: 0.5 * v + g, speed, slope(weights))
            weights = jax.tree.map(lambda w, v: w - 0.1 * v, weights, speed)
        return nnx.merge(graph, weights, rest).weights

    start = drawn(wiring)
    with jax.enable_x64(True):
        stacked, graph = both(wiring, start)
        for one, other, before in zip(descended(stacked), descended(graph), start, strict=True):
            assert np.abs(other - before).max() > 1e-4
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@every_width
def test_first_hidden_layers_are_concatenated(hidden):
    wiring = wired(hidden, some_inputs(len(hidden)))
    weights = drawn(wiring)
    with jax.enable_x64(True):
        stacked, _ = both(wiring, weights)
        hidden_units = np.asarray(stacked.first_hidden(jnp.asarray(wiring.gated_inputs)))
    depth = len(hidden[0]) + 1
    expected = [
        gate[:, None] * (wiring.data.x @ weights[depth * pathway].T)
        for pathway, gate in enumerate(wiring.pathway_gates)
    ]
    np.testing.assert_allclose(hidden_units, np.hstack(expected), rtol=1e-12, atol=1e-14)
