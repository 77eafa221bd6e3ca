"""Tied networks, x' = f(W^T W x + b), against gradient descent written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import ValidationError

from builders import build_cell
from neuralrace.config.requirements import unmet
from neuralrace.extensions.registry import SOLUTIONS
from neuralrace.training.trainer import train

STEPS, RATE = 6, 0.02
DATASET = {"name": "sparse_features", "strengths": [1.0, 0.7, 0.5], "active": 0.4, "samples": 9}


def tied(**network):
    return {
        "dataset": DATASET,
        "network": {"name": "layered", "hidden": [2], "readout": "tied"} | network,
        "training": {"learning_rate": RATE, "steps": STEPS},
        "record": {"every": 1, "snapshots": STEPS, "observables": ["weights", "output_error"]},
    }


@pytest.mark.parametrize(
    "network",
    [{}, {"output_bias": "trained"}, {"output": "relu", "output_bias": "trained"}],
    ids=str,
)
def test_tied_layers_descend_as_one(make_run, network):
    ensemble = make_run(**tied(**network))
    data, recorded = ensemble.dataset.load(), train(ensemble).variables
    weights = recorded["weight_1"]
    np.testing.assert_array_equal(recorded["weight_2"], weights.swapaxes(-1, -2))
    biased, rectified = float("output_bias" in network), "output" in network

    def outputs(w, b):
        out = data.x @ w.T @ w + b[None]
        return jnp.maximum(out, 0) if rectified else out

    def loss(parameters):
        return jnp.mean(jnp.sum((outputs(*parameters) - data.y) ** 2, axis=1)) / 2

    with jax.enable_x64(True):
        for run in np.ndindex(weights.shape[:2]):
            w, b = jnp.asarray(weights[run][0]), jnp.zeros(3)
            for step in range(STEPS + 1):
                np.testing.assert_allclose(weights[run][step], w, rtol=1e-11, atol=1e-12)
                error = np.mean((np.asarray(outputs(w, b)) - data.y) ** 2, axis=0)
                expected = error / data.y.var(axis=0)
                np.testing.assert_allclose(recorded["output_error"][run][step], expected)
                slope_w, slope_b = jax.grad(loss)((w, b))
                w, b = w - RATE * slope_w, b - RATE * biased * slope_b


def test_initial_weights_are_those_that_are_trained(make_run):
    ensemble = make_run(**tied())
    w1, w2 = ensemble.network.initial(
        ensemble.init, ensemble.dataset.load(), ensemble.init_scales, ensemble.seed_numbers
    )
    np.testing.assert_array_equal(w2, w1.swapaxes(-1, -2))
    np.testing.assert_allclose(train(ensemble).variables["weight_1"][:, :, 0], w1)


OBLONG = {"name": "modes", "singular_values": [1.0], "inputs": 3, "outputs": 2}


@pytest.mark.parametrize(
    ("hidden", "dataset"), [([2, 2], DATASET), ([], DATASET), ([2], OBLONG)], ids=str
)
def test_layers_of_other_shapes_cannot_be_tied(make_run, hidden, dataset):
    with pytest.raises(ValidationError, match="transpose of the first"):
        make_run(**tied(hidden=hidden) | {"dataset": dataset})


@pytest.mark.parametrize("network", [{"readout": "tied"}, {"output": "relu"}], ids=str)
@pytest.mark.parametrize("activation", ["linear", "relu"])
def test_theories_refuse_tied_layers_and_rectified_outputs(network, activation):
    """They are derived for layers that are trained by themselves, and affine outputs."""
    dataset = {"name": "modes", "singular_values": [2.0, 1.0], "inputs": 3, "outputs": 3}
    plain = {"name": "layered", "hidden": [2], "activation": activation}
    applicable = build_cell(dataset=dataset, network=plain).applicable_solutions()
    assert "linearised" in applicable
    changed = build_cell(dataset=dataset, network=plain | network)
    (key,) = network
    for name in applicable:
        error = unmet(changed, SOLUTIONS[name].declaration.requires)
        assert error
        assert error.key == f"network.{key}"
