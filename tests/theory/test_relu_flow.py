"""Layered networks: signals against the networks, and gradient flow of ReLU networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralrace.datasets import Data
from neuralrace.networks.modules.layered import LayeredNetwork
from neuralrace.theory.gradient_flow import linear_flow
from neuralrace.theory.integration import solve_flow
from neuralrace.theory.layered import ACTIVATIONS, forward_pass, layered_loss, relu_flow

RNG = np.random.default_rng(4)
X, Y = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2))
WEIGHTS = [0.4 * RNG.normal(size=(2, 2, *shape)) for shape in ((4, 3), (5, 4), (2, 5))]
"""Of two by two runs."""


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_loss_is_that_of_the_network(activation):
    losses = layered_loss(X, Y, WEIGHTS, activation)
    for run in np.ndindex(2, 2):
        with jax.enable_x64(True):
            network = LayeredNetwork([jnp.asarray(w[run]) for w in WEIGHTS], None, activation)
            expected = np.sum((Y - np.asarray(network(jnp.asarray(X)))) ** 2) / (2 * len(X))
        np.testing.assert_allclose(losses[run], expected, rtol=1e-13)


def rates(weights, trained_readout=True):
    """Negative gradient of the loss by hand, layer by layer."""
    there = forward_pass(X, weights, "relu")
    back, found = (Y - there.outputs) / len(X), []
    for layer in reversed(range(len(weights))):
        found.append(back.mT @ there.signals[layer])
        if layer:
            back = back @ weights[layer] * there.slopes[layer - 1]
    found.reverse()
    return found if trained_readout else [*found[:-1], np.zeros_like(weights[-1])]


@pytest.mark.parametrize("trained_readout", [True, False])
def test_relu_flow_is_that_of_a_solver_that_chooses_its_steps(trained_readout):
    time = np.linspace(0, 2, 5)
    path = relu_flow(WEIGHTS, X, Y, 4, 2000, 1 / 4000, trained_readout)
    # tighter tolerances would take minutes: no method keeps its order where a unit opens
    expected = solve_flow(time, WEIGHTS, lambda now: rates(now, trained_readout), 1e-4, 1e-7)
    losses = [
        layered_loss(X, Y, weights, "relu")
        for weights in (path, [np.moveaxis(w, 0, -3) for w in expected])
    ]
    assert (losses[1][..., -1] < 0.95 * losses[1][..., 0]).all()
    np.testing.assert_allclose(*losses, rtol=0, atol=1e-3 * losses[1].max())
    if not trained_readout:
        np.testing.assert_array_equal(path[-1], np.broadcast_to(path[-1][:, :, :1], path[-1].shape))


def test_relu_flow_of_open_units_is_that_of_linear_layers():
    """Positive inputs and weights open all units; the flow is then exact to order two."""
    x, weights = np.abs(X), [np.abs(weight) for weight in WEIGHTS]
    y = x @ np.full((3, 2), 3.0)  # large targets, so that weights grow and no unit closes
    data, time = Data(x, y), np.linspace(0, 0.05, 6)
    expected = linear_flow(time, weights, data.sigma_yx, data.sigma_xx)
    errors = []
    for steps in (10, 20):
        path = relu_flow(weights, x, y, 5, steps, 0.01 / steps)
        errors.append(max(abs(w - v).max() for w, v in zip(path, expected, strict=True)))
    assert errors[0] < 2e-4
    assert errors[1] / errors[0] == pytest.approx(1 / 4, rel=0.1)
