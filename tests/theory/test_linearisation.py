"""Residuals of the printed equations 25 to 28, against automatic differentiation."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralrace.theory.linearisation import (
    averaged_rate_residual,
    averaging_residual,
    gates,
    gradient_residuals,
    sample_residuals,
)

WIDTHS = (4, 6, 5, 3)
SAMPLES = 20


@pytest.fixture(autouse=True, scope="module")
def double_precision():
    with jax.enable_x64(True):
        yield


def net(seed, runs=(), with_biases=True):
    rng = np.random.default_rng(seed)
    shapes = [(*runs, b, a) for a, b in pairwise(WIDTHS)]
    weights = [rng.normal(size=s) for s in shapes]
    return weights, [0.5 * rng.normal(size=s[:-1]) for s in shapes] if with_biases else None


def data(loss, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(SAMPLES, WIDTHS[0]))
    if loss == "squared":
        return x, rng.normal(size=(SAMPLES, WIDTHS[-1]))
    return x, np.eye(WIDTHS[-1])[rng.integers(WIDTHS[-1], size=SAMPLES)]


def sample_loss(parameters, x, y, loss):
    """Loss of one sample for autodiff, by an independent forward pass."""
    weights, biases = parameters
    h = x
    for layer, w in enumerate(weights):
        h = w @ h + (0 if biases is None else biases[layer])
        if layer < len(weights) - 1:
            h = jax.nn.relu(h)
    if loss == "squared":
        return 0.5 * jnp.sum((y - h) ** 2)
    return -jnp.sum(y * jax.nn.log_softmax(h))


def autodiff_rates(weights, biases, x, y, loss):
    gradient = jax.vmap(jax.grad(sample_loss), in_axes=(None, 0, 0, None))
    return jax.tree.map(lambda g: -np.asarray(g), gradient((weights, biases), x, y, loss))


LOSSES = pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
BIASES = pytest.mark.parametrize("with_biases", [False, True])


@BIASES
def test_gates_make_the_net_linear(with_biases):
    weights, biases = net(2, with_biases=with_biases)
    x, _ = data("squared")
    open_units = gates(weights, biases, x)
    assert set(np.unique(np.concatenate(open_units[:-1], axis=-1))) == {0.0, 1.0}
    assert (open_units[-1] == 1).all(), "the output is linear"
    for i, sample in enumerate(x):
        linear, relu = sample, sample
        for layer, w in enumerate(weights):
            b = 0 if biases is None else biases[layer]
            linear = np.diag(open_units[layer][i]) @ (w @ linear + b)
            relu = w @ relu + b
            if layer < len(weights) - 1:
                relu = np.maximum(relu, 0)
        np.testing.assert_allclose(linear, relu, atol=1e-12)


def test_a_gate_is_closed_at_zero():
    weights = [np.eye(2), np.eye(2)]
    first, _ = gates(weights, None, np.array([[0.0, 1.0]]))
    np.testing.assert_array_equal(first, [[0.0, 1.0]])


@LOSSES
def test_leading_axes_are_separate_runs(loss):
    weights, biases = net(3, runs=(2, 3))
    x, y = data(loss)
    one = ([w[1, 2] for w in weights], [b[1, 2] for b in biases])
    np.testing.assert_allclose(
        averaging_residual(weights, biases, x)[1, 2], averaging_residual(*one, x)
    )
    np.testing.assert_allclose(
        averaged_rate_residual(weights, x, y, loss)[1, 2],
        averaged_rate_residual(one[0], x, y, loss),
    )
    for many, alone in zip(
        sample_residuals(weights, x, y, loss), sample_residuals(one[0], x, y, loss), strict=True
    ):
        assert many.as_written.shape == (2, 3, SAMPLES)
        np.testing.assert_allclose(many.as_written[1, 2], alone.as_written, atol=1e-13)


@LOSSES
def test_eq26_as_printed_and_corrected(loss):
    weights, _ = net(4, with_biases=False)
    x, y = data(loss)
    rates, _ = autodiff_rates(weights, None, x, y, loss)
    open_units = gates(weights, None, x)
    for layer, residual in enumerate(sample_residuals(weights, x, y, loss)):
        for i in range(SAMPLES):
            d_below, d_above = np.diag(open_units[layer][i]), np.diag(open_units[layer + 1][i])
            point = (weights[layer], weights[layer + 1])

            def difference(below, above, d_below=d_below, d_above=d_above):
                return above.T @ d_above.T @ d_above @ above - d_below @ below @ below.T @ d_below.T

            _, change = jax.jvp(difference, point, (rates[layer][i], rates[layer + 1][i]))
            assert residual.as_written[i] == pytest.approx(np.linalg.norm(change), abs=1e-12)
        assert (residual.sandwiched <= 1e-12 * residual.scale).all()
        assert (residual.trace <= 1e-12 * residual.scale).all()
        assert (residual.as_written > 0.05 * residual.scale).sum() > SAMPLES / 2


@LOSSES
def test_eq25_as_printed_and_with_corrected_sign(loss):
    weights, _ = net(4, with_biases=False)
    x, y = data(loss)
    rates, _ = autodiff_rates(weights, None, x, y, loss)
    open_units = gates(weights, None, x)
    for layer, residual in enumerate(gradient_residuals(weights, x, y, loss)):
        for i in range(SAMPLES):
            gated = [np.diag(d[i]) @ w for d, w in zip(open_units, weights, strict=True)]
            error = y[i] - _answer(gated, x[i], loss)
            above = np.linalg.multi_dot([np.eye(WIDTHS[-1]), *gated[:layer:-1]])
            below = np.linalg.multi_dot(
                [*gated[:layer][::-1], np.eye(WIDTHS[0]), np.eye(WIDTHS[0])]
            )
            printed = -above.T @ np.outer(error, x[i]) @ below.T
            left = np.diag(open_units[layer][i]) @ rates[layer][i]
            sizes = np.linalg.norm(left) + np.linalg.norm(printed)
            assert residual.as_written[i] == pytest.approx(np.linalg.norm(left - printed))
            corrected = pytest.approx(np.linalg.norm(left + printed), abs=1e-12)
            assert residual.sign_mended[i] == corrected
            assert residual.scale[i] == pytest.approx(sizes)
        assert (residual.sign_mended > 0.05 * residual.scale).sum() > SAMPLES / 2


def _answer(gated, x, loss):
    output = np.linalg.multi_dot([*gated[::-1], x])
    return output if loss == "squared" else np.asarray(jax.nn.softmax(output))


@LOSSES
def test_eq28_squares_the_mean_gate(loss):
    weights, _ = net(5, with_biases=False)
    x, y = data(loss)
    rates, _ = autodiff_rates(weights, None, x, y, loss)
    residual = averaged_rate_residual(weights, x, y, loss)
    for layer, opened in enumerate(gates(weights, None, x)[:-1]):
        rate = rates[layer].mean(axis=0) @ weights[layer].T
        rate = rate + rate.T
        average = np.mean([np.diag(a) @ rate @ np.diag(b) for a in opened for b in opened], axis=0)
        expected = np.linalg.norm(average - rate) / np.linalg.norm(rate)
        assert residual[layer] == pytest.approx(expected)
        assert expected > 0.2


@BIASES
def test_eq27_loses_the_weight_behind_closed_gates(with_biases):
    weights, biases = net(5, with_biases=with_biases)
    x, _ = data("squared")
    residual = averaging_residual(weights, biases, x)
    for layer, (w, d) in enumerate(zip(weights, gates(weights, biases, x), strict=True)):
        average = np.mean([np.diag(row) @ w for row in d], axis=0)
        expected = np.linalg.norm(average - w) / np.linalg.norm(w)
        assert residual[layer] == pytest.approx(expected, abs=1e-14)
    assert residual[:-1].min() > 0.2
    assert residual[-1] == 0
