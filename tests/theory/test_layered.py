"""Gradient flow of layered networks, against automatic differentiation and linear networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralrace.datasets import Data
from neuralrace.networks.modules.layered import LayeredNetwork
from neuralrace.theory.gradient_flow import linear_flow
from neuralrace.theory.layered import ACTIVATIONS, layered_flow, layered_loss

RNG = np.random.default_rng(4)
X, Y = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2))
WEIGHTS = [0.4 * RNG.normal(size=(2, 2, *shape)) for shape in ((4, 3), (5, 4), (2, 5))]
"""Of two by two runs."""


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("trained_readout", [True, False])
def test_flow_starts_along_the_negative_gradient(activation, trained_readout):
    short = 1e-7
    path = layered_flow(np.array([0, short]), X, Y, WEIGHTS, activation, trained_readout)
    losses = layered_loss(X, Y, path, activation)

    def loss(weights):
        outputs = LayeredNetwork(weights, None, activation)(jnp.asarray(X))
        return jnp.sum((jnp.asarray(Y) - outputs) ** 2) / (2 * len(X))

    for run in np.ndindex(2, 2):
        with jax.enable_x64(True):
            start = [jnp.asarray(weight[run]) for weight in WEIGHTS]
            value, gradient = jax.value_and_grad(loss)(start)
        np.testing.assert_allclose(losses[run][0], value, rtol=1e-13)
        if not trained_readout:
            gradient[-1] = jnp.zeros((2, 5))
        for layer, slope in zip(path, gradient, strict=True):
            moved = (layer[run][1] - layer[run][0]) / short
            np.testing.assert_allclose(moved, -np.asarray(slope), atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_flow_is_the_limit_of_descent(activation):
    """Small steps of descent, by automatic differentiation."""
    time, per_unit = np.linspace(0, 4, 5), 10000
    path = layered_flow(time, X, Y, WEIGHTS, activation, rtol=1e-6)
    losses = layered_loss(X, Y, path, activation)

    def loss(weights):
        outputs = LayeredNetwork(weights, None, activation)(jnp.asarray(X))
        return jnp.sum((jnp.asarray(Y) - outputs) ** 2) / (2 * len(X))

    def step(weights, _):
        gradient = jax.grad(loss)(weights)
        return [w - g / per_unit for w, g in zip(weights, gradient, strict=True)], loss(weights)

    @jax.jit
    def descended(weights):
        return jax.lax.scan(step, weights, length=4 * per_unit + 1)[1]

    for run in np.ndindex(2, 2):
        with jax.enable_x64(True):
            every = np.asarray(descended([jnp.asarray(weight[run]) for weight in WEIGHTS]))
        expected = every[::per_unit]
        assert expected[-1] < 0.7 * expected[0]
        np.testing.assert_allclose(losses[run], expected, rtol=0, atol=2e-4 * expected[0])


def test_flow_of_linear_layers_is_that_of_their_correlations():
    data, time = Data(X, Y), np.linspace(0, 2, 5)
    expected = linear_flow(time, WEIGHTS, data.sigma_yx, data.sigma_xx)
    path = layered_flow(time, X, Y, WEIGHTS, "linear", rtol=1e-9, atol=1e-12)
    for layer, other in zip(path, expected, strict=True):
        np.testing.assert_allclose(layer, other, atol=1e-7)
    coarse = layered_flow(time, X, Y, WEIGHTS, "linear")  # as it is where rates are smooth
    losses = [layered_loss(X, Y, weights, "linear") for weights in (coarse, expected)]
    np.testing.assert_allclose(*losses, rtol=0, atol=1e-4 * losses[1].max())
