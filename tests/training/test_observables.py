"""Every observable against numpy, from the weights that the same run recorded."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralrace.training.ensemble import train

SMALL = {"atol": 1e-11, "rtol": 1e-10}


@pytest.fixture(scope="module")
def linear(make_run):
    """Two linear layers on rotated modes: each observable of the theory of modes."""
    return observe(
        make_run(
            dataset={
                "name": "modes",
                "singular_values": [3.0, -2.0],
                "inputs": 4,
                "outputs": 3,
                "basis": "random",
            },
            network={"hidden": [5]},
            record={
                "every": 1,
                "snapshots": 12,
                "observables": [
                    "weights",
                    "gram",
                    "imbalance",
                    "layer_norm",
                    "linear_map",
                    "mode_strength",
                    "rate_gap",
                    "singular_values",
                ],
            },
        )
    )


@pytest.fixture(scope="module")
def relu(make_run):
    """A biased classifier with a readout that stays as drawn."""
    return observe(
        make_run(
            dataset={"name": "digits", "samples": 15},
            network={"hidden": [6, 4], "activation": "relu", "bias": True, "readout": "fixed"},
            record={
                "every": 1,
                "snapshots": 12,
                "observables": [
                    "weights",
                    "accuracy",
                    "bias_norm",
                    "imbalance",
                    "outputs",
                    "rate_gap",
                ],
            },
        )
    )


def observe(run):
    """Run, what was recorded, and its weights and biases: layers of (run, time, ...)."""
    variables = {
        name: values.reshape(-1, *values.shape[2:]) for name, values in train(run).variables.items()
    }
    layers = range(1, len(run.network.hidden) + 2)
    weights = [variables[f"weight_{n}"] for n in layers]
    biases = [variables.get(f"bias_{n}", np.zeros(weights[n - 1].shape[:3])) for n in layers]
    return run, variables, weights, biases


def moved(variables, *names):
    """The variables by name, after a check that each changes in time: no test of zeros."""
    for name in names:
        assert np.nanmax(np.ptp(variables[name], axis=1)) > 1e-6
    return [variables[name] for name in names]


def transposed(w):
    return np.swapaxes(w, -1, -2)


def frobenius(m):
    return np.sqrt(np.einsum("...ij,...ij->...", m, m))


def test_layer_norm_and_singular_values(linear):
    _, variables, weights, _ = linear
    norm, values = moved(variables, "layer_norm", "singular_values")
    np.testing.assert_allclose(norm, np.stack([frobenius(w) for w in weights], axis=-1), **SMALL)
    for layer, w in enumerate(weights):
        grams = w @ transposed(w), transposed(w) @ w
        expected = np.sqrt(np.linalg.eigvalsh(min(grams, key=lambda gram: gram.shape[-1])))
        count = expected.shape[-1]
        np.testing.assert_allclose(values[:, :, layer, :count], expected[..., ::-1], **SMALL)
        assert np.isnan(values[:, :, layer, count:]).all()  # padded to the widest layer
    np.testing.assert_allclose(np.nansum(values**2, axis=-1), norm**2, **SMALL)


def test_linear_map_modes_and_gram(linear):
    run, variables, (w1, w2), _ = linear
    total, strength, gram = moved(variables, "linear_map", "mode_strength", "gram")
    np.testing.assert_allclose(total, w2 @ w1, **SMALL)
    u, s, v = run.dataset.load().signed_basis
    rotated = u.T @ w2 @ w1 @ v
    np.testing.assert_allclose(strength, rotated[..., range(len(s)), range(len(s))], **SMALL)
    encoders = [w1 @ v[:, k] for k in range(len(s))]
    decoders = [transposed(w2) @ u[:, k] for k in range(len(s))]
    vectors = np.stack(encoders + decoders, axis=-1)
    np.testing.assert_allclose(gram, transposed(vectors) @ vectors, **SMALL)
    np.testing.assert_allclose(np.diagonal(gram[..., 3:, :3], axis1=2, axis2=3), strength, **SMALL)


@pytest.mark.parametrize("case", ["linear", "relu"])
def test_imbalance(case, request):
    _, variables, weights, biases = request.getfixturevalue(case)
    trace, norm, drift, neuron, off = moved(
        variables,
        "imbalance_trace",
        "imbalance_norm",
        "imbalance_drift",
        "neuron_imbalance_drift",
        "offdiagonal_imbalance_drift",
    )
    for pair, (below, above) in enumerate(pairwise(weights)):
        c = transposed(above) @ above - below @ transposed(below)
        change = c - c[:, :1]
        diagonal = np.einsum("...ii->...i", change)
        np.testing.assert_allclose(trace[..., pair], np.einsum("...ii", c), **SMALL)
        np.testing.assert_allclose(norm[..., pair], frobenius(c), **SMALL)
        np.testing.assert_allclose(drift[..., pair], frobenius(change), **SMALL)
        np.testing.assert_allclose(
            off[..., pair] ** 2, frobenius(change) ** 2 - np.sum(diagonal**2, axis=-1), **SMALL
        )
        squared = biases[pair] ** 2
        per_unit = diagonal - (squared - squared[:, :1])
        np.testing.assert_allclose(neuron[..., pair], np.linalg.norm(per_unit, axis=-1), **SMALL)


def forward(weights, biases, x):
    """Outputs of one network with ReLU between its layers, in numpy or JAX."""
    for index, (w, b) in enumerate(zip(weights, biases, strict=True)):
        x = x @ w.T + b[None]
        x = x.clip(min=0) if index < len(weights) - 1 else x
    return x


def test_rate_gap_of_linear_layers_is_zero(linear):
    # C is conserved by the gradient flow of linear layers: its rate vanishes at any weights
    _, variables, _, _ = linear
    for name in ("rate_gap", "relative_rate_gap", "relative_norm_rate_gap"):
        np.testing.assert_allclose(variables[name], 0, atol=1e-13)


@pytest.mark.parametrize(("member", "time"), [(0, 3), (1, 5), (3, 12)])
def test_rate_gap(relu, member, time):
    run, variables, weights, biases = relu
    data = run.dataset.load()
    gaps = moved(variables, "rate_gap", "relative_rate_gap", "relative_norm_rate_gap")
    now = [w[member, time] for w in weights]

    def loss(weights):
        out = forward(weights, [b[member, time] for b in biases], data.x)
        return jnp.sum((out - data.y) ** 2) / (2 * len(data.x))

    with jax.enable_x64(True):
        slopes = [np.asarray(g) for g in jax.grad(loss)(now)]
    slopes[-1] = np.zeros_like(slopes[-1])  # the readout is fixed
    # rates along the flow as central differences, which are exact for quadratics at any step
    later, earlier = (
        [w - sign * g for w, g in zip(now, slopes, strict=True)] for sign in (0.5, -0.5)
    )
    for pair in range(len(now) - 1):
        upper = later[pair + 1].T @ later[pair + 1] - earlier[pair + 1].T @ earlier[pair + 1]
        lower = later[pair] @ later[pair].T - earlier[pair] @ earlier[pair].T
        gap = np.linalg.norm(upper - lower)
        powers = np.trace(upper), np.trace(lower)
        expected = (
            gap,
            gap / (np.linalg.norm(upper) + np.linalg.norm(lower)),
            abs(powers[0] - powers[1]) / (abs(powers[0]) + abs(powers[1])),
        )
        for found, value in zip(gaps, expected, strict=True):
            np.testing.assert_allclose(found[member, time, pair], value, **SMALL)


def test_outputs_accuracy_and_biases(relu):
    run, variables, weights, biases = relu
    data = run.dataset.load()
    outputs, accuracy, norms = moved(variables, "outputs", "accuracy", "bias_norm")
    for member in range(4):
        for time in range(13):
            layers = [w[member, time] for w in weights], [b[member, time] for b in biases]
            expected = forward(*layers, data.x)
            np.testing.assert_allclose(outputs[member, time], expected, **SMALL)
            hits = expected.argmax(axis=1) == data.y.argmax(axis=1)
            np.testing.assert_allclose(accuracy[member, time], hits.mean())
    np.testing.assert_allclose(
        norms, np.stack([np.linalg.norm(b, axis=-1) for b in biases], axis=-1), **SMALL
    )
