"""Optimal loss and gain of given gates, against least squares on gated inputs."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from neuralrace.theory.frozen_gates import FrozenGates, moment_modes
from neuralrace.theory.gating_loss import (
    gating_gain,
    gating_losses,
    off_block_shares,
)
from neuralrace.theory.printed_equations import written_gain

seeds = st.integers(0, 2**32 - 1)


def task(seed, count=40, inputs=3, units=3):
    """Balanced classes of different shape, and half-space gates."""
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 2.0
    x = rng.normal(size=(count, inputs)) @ rng.normal(size=(inputs, inputs))
    x += y[:, None] * rng.normal(size=inputs)
    gates = (rng.normal(size=(units, inputs)) @ x.T >= 0).astype(float)
    return x, y, gates


def gated(x, gates):
    return (gates.T[:, :, None] * x[:, None]).reshape(len(x), -1)


def fit(features, y):
    weights, _, rank, _ = np.linalg.lstsq(features, y)
    return weights, rank


@given(seeds, st.sampled_from(["plain", "duplicated", "antipodal", "one", "silent"]))
def test_losses_equal_least_squares_by_another_route(seed, kind):
    x, y, gates = task(seed)
    fresh_x, fresh_y, fresh_gates = task(seed + 1)
    if kind == "duplicated":
        gates, fresh_gates = gates[[0, 1, 1]], fresh_gates[[0, 1, 1]]
    elif kind == "antipodal":
        gates, fresh_gates = (np.stack([g[0], 1 - g[0], g[0] * 0 + 1])
                              for g in (gates, fresh_gates))  # fmt: skip
    elif kind == "one":
        gates, fresh_gates = gates[:1], fresh_gates[:1]
    elif kind == "silent":
        gates[2] = 0
    weights, rank = fit(gated(x, gates), y)
    losses = gating_losses(x, y, gates, fresh_x, fresh_y, fresh_gates)
    train = np.mean((y - gated(x, gates) @ weights) ** 2) / 2
    fresh = np.mean((fresh_y - gated(fresh_x, fresh_gates) @ weights) ** 2) / 2
    assert losses.modes.rank == rank
    np.testing.assert_allclose(losses.train, train, atol=1e-11)
    np.testing.assert_allclose(losses.residual, 2 * train, atol=1e-11)
    np.testing.assert_allclose(losses.fresh, fresh, rtol=1e-6)
    if kind != "silent":
        net = FrozenGates.from_samples(x, y, gates)
        np.testing.assert_allclose(net.optimal_loss, losses.train, atol=1e-13)


def test_losses_of_noise_have_the_expectation_of_linear_regression():
    """For noise, rank p and N samples: train (1 - p/N)/2, fresh (1 + p/(N - p - 1))/2."""
    rng = np.random.default_rng(0)
    train, fresh = [], []
    for _ in range(400):
        x, y, gates = rng.normal(size=(2, 60, 5)), rng.normal(size=(2, 60)), np.ones((1, 60))
        losses = gating_losses(x[0], y[0], gates, x[1], y[1], gates)
        train.append(losses.train)
        fresh.append(losses.fresh)
    for losses, expected in ((train, 1 - 5 / 60), (fresh, 1 + 5 / 54)):
        assert abs(np.mean(losses) - expected / 2) < 4 * np.std(losses) / 20


@given(seeds)
def test_more_gates_never_hurt_on_the_samples_of_the_fit(seed):
    x, y, gates = task(seed, units=5)
    losses = [gating_losses(x, y, gates[:n], x, y, gates[:n]) for n in range(1, 6)]
    train = [each.train for each in losses]
    assert np.all(np.diff(train) <= 1e-12)
    np.testing.assert_allclose([each.fresh for each in losses], train, atol=1e-10)


@given(seeds)
def test_gain_is_the_loss_of_balanced_classes(seed):
    """The notes have <(y - yhat)^2> = (1 - G)/2; the loss here is half of it."""
    x, y, gates = task(seed)
    features = gated(x, gates)
    one, zero = features[y == 1], features[y == 0]
    gain = gating_gain(one.mean(0), one.T @ one / len(one), zero.T @ zero / len(zero))
    weights, _ = fit(features, y)
    np.testing.assert_allclose((1 - gain) / 2, np.mean((y - features @ weights) ** 2), atol=1e-11)
    losses = gating_losses(x, y, gates, x, y, gates)
    np.testing.assert_allclose((1 - gain) / 4, losses.train, atol=1e-11)


@given(seeds)
def test_printed_gain_is_1_for_any_gates(seed):
    x, y, gates = task(seed)
    features = gated(x, gates)
    one, zero = features[y == 1].mean(0), features[y == 0].mean(0)
    assume(one.any())  # no gate may be open on the class: its mean is then zero, and so is the gain
    np.testing.assert_allclose(written_gain(one, zero), 1)
    matrix = np.outer(one, one) + np.outer(zero, zero)
    np.testing.assert_allclose(one @ np.linalg.pinv(matrix, rcond=1e-12) @ one, 1, rtol=1e-4)
    # means along one line are the exception
    np.testing.assert_allclose(written_gain(one, 2 * one), 0.2)


def shares_of(second):
    """Shares of a moment, (unit, input, unit, input)."""
    features = second.shape[0] * second.shape[1]
    modes = moment_modes(second.reshape(features, features), np.zeros(features))
    return off_block_shares(second, modes)


@given(seeds)
def test_off_block_shares_equal_those_of_the_matrices(seed):
    x, _, gates = task(seed)
    features = gated(x, gates)
    second = features.T @ features / len(x)
    blocks = np.kron(np.eye(3), np.ones((3, 3)))
    shares = shares_of(second.reshape(3, 3, 3, 3))
    if np.linalg.cond(second) < 1e9:
        for share, matrix in zip(shares, (second, np.linalg.inv(second)), strict=True):
            expected = 1 - ((matrix * blocks) ** 2).sum() / (matrix**2).sum()
            np.testing.assert_allclose(share, expected, atol=1e-6)


def test_exclusive_gates_and_single_ones_have_no_off_block_share():
    x, _, gates = task(1)
    exclusive = np.eye(3)[:, np.arange(40) % 3]
    for scheme in (exclusive, gates[:1]):
        units = len(scheme)
        features = gated(x, scheme)
        second = (features.T @ features / 40).reshape(units, 3, units, 3)
        np.testing.assert_allclose(shares_of(second), 0, atol=1e-30)
    twice = gated(x, gates[[0, 0]])
    second = (twice.T @ twice / 40).reshape(2, 3, 2, 3)
    np.testing.assert_allclose(shares_of(second), 0.5)


def test_moments_of_nothing_are_refused():
    with pytest.raises(ValueError, match="is 0"):
        shares_of(np.zeros((2, 3, 2, 3)))
    with pytest.raises(ValueError, match="not positive semidefinite"):
        gating_gain(np.zeros(2), np.diag([1.0, -1.0]), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="do not vary"):
        gating_gain(np.ones(2), np.zeros((2, 2)), np.diag([1.0, 0.0]))
