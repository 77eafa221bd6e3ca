"""Tangent kernels against automatic differentiation, and their flow against explicit descent."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from neuralrace.datasets import Data
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.gates.wiring import Wiring
from neuralrace.networks.modules.graph import GatedNetwork
from neuralrace.networks.modules.layered import LayeredNetwork
from neuralrace.theory.tangent_kernel import KernelFlow, gated_tangent, layered_tangent

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2))
SAMPLES, DIRECTIONS = np.repeat(np.arange(5), 2), np.tile(np.eye(2), (5, 1))
"""Rows of all outputs of all samples."""
GRAPH = Architecture(  # of two inputs and two outputs, with a hidden node that both share
    nodes={"a": 2, "b": 1, "h": 4, "g": 3, "l": 1, "r": 1},
    edges=(("a", "h"), ("b", "h"), ("h", "g"), ("g", "l"), ("g", "r"), ("a", "l"), ("h", "r")),
)
GATES = {
    "a": np.array([1.0, 1, 0, 1, 0.5]),
    "h": np.array([1.0, 0, 1, 1, 1]),
    "l": np.array([1.0, 1, 0, 1, 1]),
    "a->l": np.array([0.0, 1, 1, 0.25, 1]),
}


def automatic(network, *inputs):
    """Outputs of a Flax network by row, and their Jacobian by parameter."""
    graph, parameters, rest = nnx.split(network, nnx.Param, ...)

    def outputs(parameters):
        return nnx.merge(graph, parameters, rest)(*inputs).ravel()

    # compiled as a whole, which is faster than operation by operation
    values, jacobian = jax.jit(lambda at: (outputs(at), jax.jacobian(outputs)(at)))(parameters)
    return np.asarray(values), [np.asarray(part) for part in jax.tree.leaves(jacobian)]


def kernel_of(jacobian):
    flat = np.hstack([part.reshape(len(part), -1) for part in jacobian])
    return flat @ flat.T


def layered_weights(*widths):
    return [RNG.normal(size=(above, below)) for below, above in pairwise(widths)]


@pytest.mark.parametrize("activation", ["linear", "relu", "erf", "sigmoid", "tanh"])
@pytest.mark.parametrize("hidden", [(), (4,), (4, 6, 3)])
@pytest.mark.parametrize("biases", [False, True])
def test_layered_kernel_is_that_of_the_jacobian(activation, hidden, biases):
    weights = layered_weights(3, *hidden, 2)
    for trained_readout in (True, False) if hidden else (True,):
        tangent = layered_tangent(
            X[SAMPLES], DIRECTIONS, weights, activation, biases, trained_readout
        )
        with jax.enable_x64(True):
            zero = [jnp.zeros(len(weight)) for weight in weights] if biases else None
            arrays = [jnp.asarray(weight) for weight in weights]
            network = LayeredNetwork(arrays, zero, activation, trained_readout)
            values, jacobian = automatic(network, jnp.asarray(X))
        expected = kernel_of(jacobian)
        np.testing.assert_allclose(tangent.values, values, atol=1e-12)
        np.testing.assert_allclose(
            tangent.kernel(tangent), expected, rtol=0, atol=1e-13 * expected.max()
        )


def test_kernel_of_a_gated_graph_is_that_of_the_jacobian():
    weights = [
        RNG.normal(size=(GRAPH.nodes[above], GRAPH.nodes[below])) for below, above in GRAPH.edges
    ]
    tangent = gated_tangent(Wiring(GRAPH, GATES, Data(X, Y)), SAMPLES, DIRECTIONS, weights)
    with jax.enable_x64(True):
        network = GatedNetwork(GRAPH, [jnp.asarray(weight) for weight in weights])
        gates = {name: jnp.asarray(gate) for name, gate in GATES.items()}
        values, jacobian = automatic(network, jnp.asarray(X), gates)
    expected = kernel_of(jacobian)
    np.testing.assert_allclose(tangent.values, values, atol=1e-13)
    np.testing.assert_allclose(
        tangent.kernel(tangent), expected, rtol=0, atol=1e-13 * expected.max()
    )


def test_inputs_that_an_edge_does_not_see_and_frozen_edges_are_left_out():
    graph = Architecture(nodes={"x": 3, "y": 2}, edges=(("x", "y"),))
    wiring = Wiring(graph, {}, Data(X, Y), {"x->y": np.array([True, False, True])})
    weights = layered_weights(3, 2)
    tangent = gated_tangent(wiring, SAMPLES, DIRECTIONS, weights)
    seen = X[:, [0, 2]]
    expected = np.kron(seen @ seen.T, np.eye(2))
    np.testing.assert_allclose(tangent.kernel(tangent), expected, atol=1e-14)
    frozen = gated_tangent(wiring, SAMPLES, DIRECTIONS, weights, frozen=[0])
    assert frozen.derivatives == ()
    np.testing.assert_array_equal(frozen.values, tangent.values)


def test_flow_is_the_limit_of_descent_of_the_linearised_network():
    """Euler steps of all weights of the linearised network, extrapolated to a step of zero."""
    weights = layered_weights(3, 4, 2)
    weights[0] *= 0.5
    with jax.enable_x64(True):
        arrays = [jnp.asarray(weight) for weight in weights]
        values, jacobian = automatic(LayeredNetwork(arrays, None, "tanh"), jnp.asarray(X))
    derivative = np.hstack([part.reshape(len(part), -1) for part in jacobian])
    tangent = layered_tangent(X[SAMPLES], DIRECTIONS, weights, "tanh")
    flow = KernelFlow(tangent.kernel(tangent), Y.ravel() - values, len(X))
    time = np.array([0.0, 0.5, 2.0])

    def descended(steps_per_unit):
        change, path = np.zeros(derivative.shape[1]), []
        for step in range(2 * steps_per_unit + 1):
            error = Y.ravel() - values - derivative @ change
            if step / steps_per_unit in time:
                path.append(np.append(change, error @ error / (2 * len(X))))
            change = change + derivative.T @ error / len(X) / steps_per_unit
        return np.array(path)

    first, second, third = (descended(steps) for steps in (500, 1000, 2000))
    limit = (8 * third - 6 * second + first) / 3  # removes errors of first and second order
    np.testing.assert_allclose(flow.loss(time), limit[:, -1], rtol=1e-7)
    pulls = flow.pulls(time)
    changes = np.array([np.concatenate([c.ravel() for c in tangent.changes(p)]) for p in pulls])
    np.testing.assert_allclose(changes, limit[:, :-1], rtol=0, atol=1e-6)
    moved = values + pulls @ tangent.kernel(tangent)
    np.testing.assert_allclose(
        np.sum((Y.ravel() - moved) ** 2, axis=1) / (2 * len(X)), flow.loss(time), rtol=1e-10
    )


def test_rows_that_do_not_move_keep_their_error():
    kernel = np.diag([2.0, 0.0])
    flow = KernelFlow(kernel, np.array([1.0, 3.0]), samples=2)
    time = np.array([0.0, 1.0, 1e3])
    np.testing.assert_allclose(flow.loss(time), (np.exp(-2 * time) + 9) / 4)
    np.testing.assert_allclose(flow.pulls(time)[:, 0], (1 - np.exp(-time)) / 2)
    np.testing.assert_allclose(flow.pulls(time)[:, 1], 1.5 * time)
