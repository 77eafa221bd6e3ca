"""Gates of ReLU networks, against an example by hand and the per-sample linearisation."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build_ensemble
from neuralrace.errors import UserError
from neuralrace.theory import linearisation
from neuralrace.theory.reln.gates import relu_gates, relu_network


def random_weights(seed, *widths, runs=(2,)):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(*runs, b, a)) for a, b in pairwise(widths)]


@given(st.integers(0, 10**6), st.integers(1, 3))
def test_gates_equal_the_gates_of_the_linearisation(seed, depth):
    widths = (3, *range(4, 4 + depth), 2)
    weights = random_weights(seed, *widths, runs=(2, 3))
    x = np.random.default_rng(seed + 1).normal(size=(5, 3))
    by_layer = relu_gates(weights, x)
    expected = linearisation.gates(weights, None, x)[:-1]
    assert [gates.dtype for gates in by_layer] == [bool] * depth
    for gates, diagonal in zip(by_layer, expected, strict=True):
        np.testing.assert_array_equal(gates, diagonal.swapaxes(-1, -2) > 0)


def test_gates_by_hand():
    encoder = np.array([[1.0, 0], [-1, 1], [0, 0], [-1, -1]])
    deeper = np.array([[1.0, -1, 0, 0], [-1, 3, 0, 0]])
    x = np.array([[1.0, 0], [1, 2], [0, 1]])
    first, second = relu_gates([encoder, deeper, np.ones((1, 2))], x)
    np.testing.assert_array_equal(first, [[1, 1, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0]])
    # the second layer sees (1, 0), (1, 1), (0, 1) in its first two units
    np.testing.assert_array_equal(second, [[1, 0, 0], [0, 1, 1]])


def test_units_with_nan_weights_are_closed():
    weights = random_weights(0, 2, 3, 1)
    weights[0][1] = np.nan
    gates = relu_gates(weights, np.eye(2))[0]
    assert not gates[1].any()
    assert gates[0].any()


RELU = {"name": "layered", "hidden": [3], "activation": "relu"}
LEARNED = {"name": "gated", "hidden": [3], "gates": {"name": "learned"}}


@pytest.mark.parametrize(
    ("network", "hidden"),
    [(RELU, None), (RELU, 1), (RELU | {"hidden": [3, 2]}, None), (LEARNED, 1)],
)
def test_relu_networks_of_any_depth_are_accepted(network, hidden):
    ensemble = build_ensemble(dataset={"name": "xor"}, network=network)
    assert relu_network(ensemble, "this", hidden).hidden == tuple(network["hidden"])


@pytest.mark.parametrize(
    ("network", "hidden"),
    [
        (RELU | {"activation": "linear"}, None),
        (RELU | {"bias": True}, None),
        (RELU | {"hidden": [3, 2]}, 1),
        (RELU | {"hidden": []}, 1),
        (LEARNED | {"gates": {"name": "per_example"}}, None),
    ],
    ids=["linear", "biased", "deep", "shallow", "gated"],
)
def test_other_networks_are_refused(network, hidden):
    layers = "one hidden layer and no biases" if hidden else "no biases"
    with pytest.raises(UserError, match=f"this is for ReLU networks with {layers}") as error:
        relu_network(build_ensemble(dataset={"name": "xor"}, network=network), "this", hidden)
    assert error.value.key == "network"
