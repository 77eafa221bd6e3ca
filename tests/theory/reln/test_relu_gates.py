"""Gates of ReLU networks, against loops and the per-sample linearisation."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuralrace.config.cell import Ensemble
from neuralrace.errors import UserError
from neuralrace.theory import linearisation
from neuralrace.theory.reln.gates import relu_gates, relu_network


def random_weights(seed, *widths, runs=(2,)):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(*runs, b, a)) for a, b in pairwise(widths)]


@given(st.integers(0, 10**6), st.integers(1, 3))
def test_gates_are_those_of_the_linearisation(seed, depth):
    widths = (3, *range(4, 4 + depth), 2)
    weights = random_weights(seed, *widths, runs=(2, 3))
    x = np.random.default_rng(seed + 1).normal(size=(5, 3))
    found = relu_gates(weights, x)
    expected = linearisation.gates(weights, None, x)[:-1]
    assert [each.dtype for each in found] == [bool] * depth
    for gates, diagonal in zip(found, expected, strict=True):
        np.testing.assert_array_equal(gates, diagonal.swapaxes(-1, -2) > 0)


def test_gates_by_hand():
    encoder = np.array([[1.0, 0], [-1, 1], [0, 0], [-1, -1]])
    deeper = np.array([[1.0, -1, 0, 0], [-1, 3, 0, 0]])
    x = np.array([[1.0, 0], [1, 2], [0, 1]])
    first, second = relu_gates([encoder, deeper, np.ones((1, 2))], x)
    np.testing.assert_array_equal(first, [[1, 1, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0]])
    # the second layer sees (1, 0), (1, 1), (0, 1) in its first two units
    np.testing.assert_array_equal(second, [[1, 0, 0], [0, 1, 1]])


def test_units_without_weights_are_closed():
    weights = random_weights(0, 2, 3, 1)
    weights[0][1] = np.nan
    gates = relu_gates(weights, np.eye(2))[0]
    assert not gates[1].any()
    assert gates[0].any()


def run_of(**network):
    spec = {
        "dataset": {"name": "xor"},
        "network": {"name": "layered", "hidden": [3], "activation": "relu"} | network,
        "init": {"name": "normal"},
        "init_scales": [0.1],
        "seeds": 1,
        "training": {"learning_rate": 0.1, "steps": 4},
        "record": {"every": 1},
    }
    return Ensemble.model_validate_json(json.dumps(spec))


def test_relu_networks_of_any_depth():
    assert relu_network(run_of(), "this").hidden == (3,)
    assert relu_network(run_of(hidden=[3, 2]), "this").hidden == (3, 2)
    ensemble = run_of()
    learned = {"name": "gated", "hidden": [3], "gates": {"name": "learned"}}
    gated = Ensemble.model_validate_json(
        json.dumps(json.loads(ensemble.canonical()) | {"network": learned})
    )
    assert relu_network(gated, "this", hidden=1).hidden == (3,)


@pytest.mark.parametrize(
    ("network", "hidden"),
    [
        ({"activation": "linear"}, None),
        ({"bias": True}, None),
        ({"hidden": [3, 2]}, 1),
        ({"hidden": []}, 1),
    ],
    ids=["linear", "biased", "deep", "shallow"],
)
def test_other_networks_are_refused(network, hidden):
    layers = "one hidden layer and no biases" if hidden else "no biases"
    with pytest.raises(UserError, match=f"network: this is for ReLU networks with {layers}"):
        relu_network(run_of(**network), "this", hidden)


def test_networks_with_given_gates_are_refused():
    gated = {"name": "gated", "hidden": [3], "gates": {"name": "per_example"}}
    spec = json.loads(run_of().canonical()) | {"network": gated}
    with pytest.raises(UserError, match="is for ReLU networks"):
        relu_network(Ensemble.model_validate_json(json.dumps(spec)), "this")
