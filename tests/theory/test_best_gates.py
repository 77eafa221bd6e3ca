"""Searches for the best gates, against least squares table by table and planted gates."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from neuralrace.networks.gates.half_space import half_spaces
from neuralrace.theory.best_gates import _relaxed, all_tables, descended_directions


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(1, 5, 2), (2, 4, 2), (2, 4, 1), (3, 2, 1)]))
def test_every_table_is_weighted_least_squares(seed, sizes):
    units, count, inputs = sizes
    rng = np.random.default_rng(seed)
    points, target = rng.normal(size=(count, inputs)), rng.normal(size=count)
    probability = rng.dirichlet(np.ones(count))
    gates, excess, share, rank = all_tables(points, probability, target, units)
    expected = {
        tuple(sorted(rows)) for rows in product(product((0, 1), repeat=count), repeat=units)
    }
    assert {tuple(sorted(map(tuple, table))) for table in gates.astype(int)} == expected
    assert len(gates) == len(expected)
    root = np.sqrt(probability)
    for number in rng.choice(len(gates), 20):
        gated = np.concatenate([gate[:, None] * points for gate in gates[number]], axis=1)
        features = root[:, None] * gated
        weights, _, found, _ = np.linalg.lstsq(features, root * target, rcond=1e-7)
        residual = np.sum((root * target - features @ weights) ** 2) / 2
        np.testing.assert_allclose(excess[number], residual, atol=1e-9)
        assert rank[number] == found
        power = np.linalg.pinv(features.T @ features, rcond=1e-14) ** 2
        same = np.kron(np.eye(units), np.ones((inputs, inputs)))
        coupled = (power * (1 - same)).sum() / max(power.sum(), 1e-300)
        np.testing.assert_allclose(share[number], coupled, atol=1e-6)


def test_the_best_table_of_three_spins_overlaps():
    """By the exact law: of three signs of correlation c, P(x) = (1 + c sum x_i x_j)/8."""
    points = np.array(list(product((-1.0, 1.0), repeat=3)))
    pairs = (points.sum(axis=1) ** 2 - 3) / 2
    one, zero = ((1 + 2 / np.pi * np.arcsin(np.exp(-1 / xi**2)) * pairs) / 8 for xi in (3, 1))
    gates, excess, share, _ = all_tables(points, (one + zero) / 2, one / (one + zero), 2)
    tilings = (gates.sum(axis=1) == 1).all(axis=1)
    assert excess.min() < 0.11 * excess[tilings].min()
    assert share[excess.argmin()] > 0.2
    np.testing.assert_allclose(share[tilings], 0, atol=1e-12)


def task(seed, samples=1500, inputs=4, units=2):
    rng = np.random.default_rng(seed)
    directions, outputs = rng.normal(size=(2, units, inputs))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return rng.normal(size=(samples, inputs)), directions, outputs


@pytest.mark.parametrize("exclusive", [False, True])
def test_the_gradient_is_that_of_the_loss(exclusive):
    x, directions, outputs = task(0, 60)
    y = np.maximum(outputs @ x.T, 0).sum(axis=0)
    at = 1.7 * directions.ravel()
    _, gradient = _relaxed(at, x, y, 3.0, exclusive)
    numerical = approx_fprime(at, lambda flat: _relaxed(flat, x, y, 3.0, exclusive)[0], 1e-7)
    np.testing.assert_allclose(gradient, numerical, atol=1e-6)


@pytest.mark.parametrize("exclusive", [False, True])
def test_descent_finds_planted_gates(exclusive):
    """From directions nearby; of a tiling in two, only the boundary counts."""
    x, directions, outputs = task(1)
    gates = half_spaces(x, directions)
    if exclusive:
        gates = np.eye(2)[:, (directions @ x.T).argmax(axis=0)]
    y = (gates * (outputs @ x.T)).sum(axis=0)
    start = directions + 0.3 * np.random.default_rng(2).normal(size=directions.shape)
    found = descended_directions(x, y, start, exclusive)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)
    if exclusive:
        start, directions, found = ((each[:1] - each[1:]) for each in (start, directions, found))
    lengths = np.linalg.norm(directions, axis=1)
    before, after = (
        (each * directions).sum(axis=1) / np.linalg.norm(each, axis=1) / lengths
        for each in (start, found)
    )
    assert before.min() < 0.97
    assert after.min() > 0.999
