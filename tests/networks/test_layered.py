"""Fully connected networks: outputs and trained parameters."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy.special import erf, expit

from neuralrace.networks.modules.activations import ACTIVATIONS
from neuralrace.networks.modules.layered import LayeredNetwork, few_samples

REFERENCE = {
    "linear": lambda h: h,
    "relu": lambda h: np.where(h > 0, h, 0),
    "erf": lambda h: erf(h / np.sqrt(2)),
    "sigmoid": expit,
    "tanh": np.tanh,
}


def random_layers(widths, seed=0):
    rng = np.random.default_rng(seed)
    weights = [rng.normal(size=(n, m)) for m, n in pairwise(widths)]
    biases = [rng.normal(size=len(w)) for w in weights]
    return weights, biases, rng.normal(size=(9, widths[0]))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("widths", [(3, 2), (3, 4, 2), (3, 4, 5, 2)], ids=len)
def test_outputs_are_those_of_plain_loops(activation, biased, widths):
    weights, biases, x = random_layers(widths)
    with jax.enable_x64(True):
        params = jax.tree.map(jnp.asarray, (weights, biases if biased else None))
        outputs = LayeredNetwork(*params, activation)(jnp.asarray(x))
    h = x
    for index, (w, b) in enumerate(zip(weights, biases, strict=True)):
        h = h @ w.T + (b if biased else 0)
        h = REFERENCE[activation](h) if index < len(weights) - 1 else h
    np.testing.assert_allclose(outputs, h, rtol=1e-12, atol=1e-12)


def test_fixed_readout_is_not_trained():
    weights, biases = jax.tree.map(jnp.asarray, random_layers((3, 4, 5, 2))[:2])
    trained = LayeredNetwork(weights, biases, "relu")
    fixed = LayeredNetwork(weights, biases, "relu", trained_readout=False)

    def shapes(network):
        return sorted(leaf.shape for leaf in jax.tree.leaves(nnx.state(network, nnx.Param)))

    assert shapes(trained) == sorted([(4, 3), (5, 4), (2, 5), (4,), (5,), (2,)])
    assert shapes(fixed) == sorted([(4, 3), (5, 4), (4,), (5,)])


def test_weights_and_biases_are_listed_from_the_input():
    weights, biases = jax.tree.map(jnp.asarray, random_layers((3, 4, 2))[:2])
    network = LayeredNetwork(weights, biases, "relu")
    for listed, array in zip(network.weights + network.biases, weights + biases, strict=True):
        np.testing.assert_array_equal(listed, array)
    assert LayeredNetwork(weights, None, "relu").biases == []


def test_few_samples_of_large_layers_give_the_same_outputs_and_gradients():
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        weight, h, target = (jnp.asarray(rng.normal(size=s)) for s in ((60, 50), (3, 50), (3, 60)))

        def loss(product):
            return lambda weight, h: jnp.sum((product(weight, h) - target) ** 3)

        plain = loss(lambda weight, h: h @ weight.T)
        in_layer = loss(lambda weight, h: LayeredNetwork([weight], None, "linear")(h))
        programs = [str(jax.make_jaxpr(f)(weight, h)) for f in (loss(few_samples), in_layer)]
        assert programs[0] == programs[1], "the layer should take its weights for large"
        expected, found = (jax.value_and_grad(f, (0, 1))(weight, h) for f in (plain, in_layer))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), expected, found)
