from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralrace.theory.balance import neuron_imbalance
from neuralrace.theory.linearisation import (
    Flow,
    averaged_rate_residual,
    averaging_residual,
    gates,
    gradient_residuals,
    mean_rates,
    neuron_rates,
    rate_gaps,
    sample_rates,
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
    """The loss of one sample, for autodiff: an independent forward pass."""
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


@LOSSES
@BIASES
def test_rates_are_those_of_autodiff(loss, with_biases):
    weights, biases = net(1, with_biases=with_biases)
    x, y = data(loss)
    expected_weights, expected_biases = autodiff_rates(weights, biases, x, y, loss)
    per_sample = sample_rates(weights, biases, x, y, loss)
    mean = mean_rates(weights, biases, x, y, loss)
    for layer, expected in enumerate(expected_weights):
        np.testing.assert_allclose(per_sample.weights[layer], expected, atol=1e-12)
        np.testing.assert_allclose(mean.weights[layer], expected.mean(axis=0), atol=1e-12)
    for layer, expected in enumerate(expected_biases or []):
        np.testing.assert_allclose(per_sample.biases[layer], expected, atol=1e-12)
        np.testing.assert_allclose(mean.biases[layer], expected.mean(axis=0), atol=1e-12)


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
    batch, single = mean_rates(weights, biases, x, y, loss), mean_rates(*one, x, y, loss)
    for many, alone in zip(
        batch.weights + batch.biases, single.weights + single.biases, strict=True
    ):
        np.testing.assert_allclose(many[1, 2], alone, atol=1e-13)
    np.testing.assert_allclose(
        averaging_residual(weights, biases, x)[1, 2], averaging_residual(*one, x)
    )
    np.testing.assert_allclose(
        rate_gaps(weights, batch).relative[1, 2], rate_gaps(one[0], single).relative
    )
    for many, alone in zip(
        sample_residuals(weights, x, y, loss), sample_residuals(one[0], x, y, loss), strict=True
    ):
        assert many.as_written.shape == (2, 3, SAMPLES)
        np.testing.assert_allclose(many.as_written[1, 2], alone.as_written, atol=1e-13)


@LOSSES
def test_eq26_as_written_and_corrected(loss):
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
def test_eq25_as_written_and_with_its_sign_mended(loss):
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
            mended = pytest.approx(np.linalg.norm(left + printed), abs=1e-12)
            assert residual.sign_mended[i] == mended
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


@LOSSES
@BIASES
def test_flow_conserves_the_neuron_imbalance(loss, with_biases):
    weights, biases = net(6, with_biases=with_biases)
    flow = mean_rates(weights, biases, *data(loss), loss)
    for rate in neuron_rates(weights, flow, biases):
        np.testing.assert_allclose(rate, 0, atol=1e-13)


def test_without_its_biases_the_neuron_imbalance_moves():
    weights, biases = net(7)
    flow = mean_rates(weights, biases, *data("squared"), "squared")
    for layer, rate in enumerate(neuron_rates(weights, flow)):
        own = 2 * biases[layer] * flow.biases[layer]
        np.testing.assert_allclose(rate, own, atol=1e-13)
        assert np.abs(own).max() > 1e-2


def test_neuron_rates_are_the_derivative_of_the_neuron_imbalance():
    # along a direction that is no gradient, where nothing cancels
    weights, biases = net(8)
    direction, bias_direction = net(9)
    flow = Flow(direction, bias_direction)
    for layer, rate in enumerate(neuron_rates(weights, flow, biases)):
        step = 1e-3
        ahead, behind = (
            neuron_imbalance(
                weights[layer] + s * direction[layer],
                weights[layer + 1] + s * direction[layer + 1],
                biases[layer] + s * bias_direction[layer],
            )
            for s in (step, -step)
        )
        # central differences are exact for a quadratic
        np.testing.assert_allclose(rate, (ahead - behind) / (2 * step), rtol=1e-9, atol=1e-9)


@BIASES
def test_rate_gaps_are_derivatives_of_the_gram_matrices(with_biases):
    weights, biases = net(10, with_biases=with_biases)
    flow = mean_rates(weights, biases, *data("cross_entropy"), "cross_entropy")
    gaps = rate_gaps(weights, flow)
    for pair in range(len(weights) - 1):
        _, above = jax.jvp(lambda w: w.T @ w, [weights[pair + 1]], [flow.weights[pair + 1]])
        _, below = jax.jvp(lambda w: w @ w.T, [weights[pair]], [flow.weights[pair]])
        absolute = np.linalg.norm(above - below)
        assert gaps.absolute[pair] == pytest.approx(absolute)
        total = np.linalg.norm(above) + np.linalg.norm(below)
        assert gaps.relative[pair] == pytest.approx(absolute / total)
    assert gaps.relative.min() > 0.05, "the nonlinearity breaks the balance"


def test_rate_gaps_vanish_where_all_gates_are_open():
    weights, _ = net(11, with_biases=False)
    weights = [np.abs(w) for w in weights]
    x, y = data("squared")
    x = np.abs(x)
    assert averaging_residual(weights, None, x).max() == 0
    gaps = rate_gaps(weights, mean_rates(weights, None, x, y, "squared"))
    assert gaps.relative.max() < 1e-14


def test_rate_gap_without_any_flow_is_undefined():
    weights, _ = net(12, with_biases=False)
    x, _ = data("squared")
    y = x
    for layer, w in enumerate(weights):
        y = y @ w.T
        y = np.maximum(y, 0) if layer < len(weights) - 1 else y
    gaps = rate_gaps(weights, mean_rates(weights, None, x, y, "squared"))
    assert gaps.absolute.max() < 1e-12
    still = rate_gaps(weights, mean_rates(weights, None, np.zeros_like(x), 0 * y, "squared"))
    assert np.isnan(still.relative).all()


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), log_scale=st.floats(-2, 2))
def test_relative_rate_gap_lies_between_zero_and_one(seed, log_scale):
    weights, biases = net(seed)
    weights = [10**log_scale * w for w in weights]
    relative = rate_gaps(
        weights, mean_rates(weights, biases, *data("squared", seed), "squared")
    ).relative
    seen = relative[~np.isnan(relative)]
    assert ((seen >= 0) & (seen <= 1 + 1e-12)).all()
