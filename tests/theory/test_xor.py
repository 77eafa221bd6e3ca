"""The XoR race, against single units and ReLU networks under gradient descent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from builders import RELU, build_cell
from neuralrace.theory.tickets import in_turn, keep, rankings, train_again
from neuralrace.theory.xor import xor_loss, xor_start

X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
Y = -X[:, 0] * X[:, 1]
RATE = np.sqrt(2) / 4


def one_unit(w, v, time):
    """Example and strength at `time` of a unit driven by the residual y, edge by edge.

    Where the input weights meet the line on which an example turns silent, the flows of the two
    sides push back and their mean, along the diagonal, is followed.
    """
    active = X @ w > 0

    def free(_, unit):
        w, v = unit[:2], unit[2]
        push = (Y[active] @ X[active]) / 4
        return np.array([*(v * push), w @ push])

    def edge(_, unit):
        return (X[active] @ unit[:2]).min()

    edge.terminal, edge.direction = True, -1
    flow = solve_ivp(free, (0, time), [*w, v], events=edge, rtol=1e-11, atol=1e-15)
    assert flow.status == 1, "the unit must settle within the time"
    w, v = flow.y[:2, -1], flow.y[2, -1]
    example = np.argmax(X @ w)
    settled = solve_ivp(
        lambda _, unit: RATE * np.array([Y[example] * unit[1], Y[example] * unit[0]]),
        (flow.t[-1], time),
        [X[example] @ w / np.sqrt(2), v],
        rtol=1e-11,
        atol=1e-15,
    )
    alpha, v = settled.y[:, -1]
    return example, Y[example] * alpha * v


def test_start_is_the_early_flow_unit_by_unit():
    """Against a late strength, extrapolated to time 0 at the rate of the mode."""
    rng, time = np.random.default_rng(0), 25.0
    encoder, decoder = 1e-3 * rng.standard_normal((40, 2)), 1e-3 * rng.standard_normal(40)
    expected = np.zeros(4)
    for w, v in zip(encoder, decoder, strict=True):
        example, strength = one_unit(w, v, time)
        expected[example] += strength * np.exp(-2 * RATE * time)
    np.testing.assert_allclose(xor_start(encoder, decoder, X, Y), expected, rtol=1e-6)


def test_units_rank_by_the_early_flow():
    """Winners and losers of every example, against single units that are integrated."""
    rng, time = np.random.default_rng(3), 25.0
    encoder, decoder = 1e-3 * rng.standard_normal((24, 2)), 1e-3 * rng.standard_normal(24)
    grown = np.zeros((24, 4))
    for unit, (w, v) in enumerate(zip(encoder, decoder, strict=True)):
        example, grown[unit, example] = one_unit(w, v, time)
    strength = xor_start(encoder[:, None], decoder[:, None], X, Y)
    for weakest in (False, True):
        np.testing.assert_array_equal(in_turn(strength, weakest), in_turn(grown, weakest))
    best = [int(unit) for unit in grown.argmax(axis=0)]
    assert sorted(in_turn(strength)[:4]) == sorted(best)


def test_units_that_are_left_out_might_as_well_be_zero():
    """Training a part of the units again, against the whole network with zeros in their place."""
    rng = np.random.default_rng(4)
    encoder, decoder = rng.normal(0, 0.1, (2, 5, 2)), rng.normal(0, 0.1, (2, 1, 5))
    units = np.array([[3, 0], [1, 2]])
    training = {"learning_rate": 0.1, "steps": 80}
    cell = build_cell(RELU, init_scales=[0.1], training=training, record={"every": 1})
    kept = keep([encoder[None], decoder[None]], units[None])
    for seed, own in enumerate(units):
        np.testing.assert_array_equal(kept[0][0, seed], encoder[seed, own])
        np.testing.assert_array_equal(kept[1][0, seed], decoder[seed, :, own].T)
    losses = train_again(cell, kept)
    data = cell.dataset.load()
    order = [int(np.flatnonzero((data.x == x).all(axis=1))[0]) for x in X]
    np.testing.assert_array_equal(data.y[order, 0], Y)
    for seed, own in enumerate(units):
        mask = np.isin(np.arange(5), own)
        expected = train(encoder[seed] * mask[:, None], decoder[seed, 0] * mask, 0.1, 80)
        np.testing.assert_allclose(losses[0, seed], expected, rtol=1e-12)


def train(encoder, decoder, learning_rate, steps):
    """Gradient descent of the ReLU network; its loss at every step."""
    path = []
    for _ in range(steps + 1):
        preactivation = encoder @ X.T
        hidden = np.maximum(preactivation, 0)
        residual = Y - decoder @ hidden
        path.append((residual**2).mean() / 2)
        back = decoder[:, None] * (preactivation > 0) * residual / 4
        encoder, decoder = (
            encoder + learning_rate * back @ X,
            decoder + learning_rate * hidden @ residual / 4,
        )
    return np.array(path)


def test_relu_network_follows_the_race_up_to_the_step_size():
    """128 units from 2e-4: the error of the theory is of first order in the step."""
    rng = np.random.default_rng(1)
    encoder, decoder = 2e-4 * rng.standard_normal((128, 2)), 2e-4 * rng.standard_normal(128)
    start = xor_start(encoder, decoder, X, Y)
    errors = []
    for learning_rate in (0.04, 0.02, 0.01):
        steps = round(30 / learning_rate)
        loss = train(encoder, decoder, learning_rate, steps)
        theory = xor_loss(learning_rate * np.arange(steps + 1), start)
        errors.append(np.abs(loss - theory).max())
    assert errors[-1] < 0.006
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 2, rtol=0.05)


weights = arrays(np.float64, (9, 3), elements=st.floats(-1, 1, allow_subnormal=False))


@settings(max_examples=40)
@given(weights=weights, scale=st.floats(1e-3, 1e3), order=st.permutations(range(4)))
def test_start_is_quadratic_and_follows_the_data(weights, scale, order):
    encoder, decoder = weights[:, :2], weights[:, 2]
    start = xor_start(encoder, decoder, X, Y)
    assert np.all(start >= 0)
    scaled = xor_start(scale * encoder, scale * decoder, X, Y)
    np.testing.assert_allclose(scaled, scale**2 * start, rtol=1e-9, atol=1e-20 * scale**2)
    order = list(order)
    np.testing.assert_array_equal(xor_start(encoder, decoder, X[order], Y[order]), start[order])
    np.testing.assert_allclose(xor_start(encoder, -decoder, X, -Y), start, rtol=1e-12)


def test_a_unit_on_its_diagonal_starts_as_a_mode_does():
    encoder = 0.3 * X / np.sqrt(2)
    start = xor_start(encoder, 0.1 * Y, X, Y)
    np.testing.assert_allclose(start, (0.3 + 0.1) ** 2 / 4, rtol=1e-12)


def test_runs_are_independent_and_loss_is_the_mean_over_examples():
    rng = np.random.default_rng(2)
    encoder, decoder = rng.standard_normal((2, 3, 20, 2)), rng.standard_normal((2, 3, 20))
    start = xor_start(1e-2 * encoder, 1e-2 * decoder, X, Y)
    np.testing.assert_array_equal(
        start[1, 2], xor_start(1e-2 * encoder[1, 2], 1e-2 * decoder[1, 2], X, Y)
    )
    time = np.array([0.0, 3.0, 200.0])
    loss = xor_loss(time, start)
    np.testing.assert_allclose(loss[..., 0], ((1 - np.sqrt(2) * start) ** 2).mean(-1) / 2)
    np.testing.assert_allclose(loss[..., -1], 0, atol=1e-15)
    rise = solve_ivp(
        lambda _, a: 2 * a * (RATE - a / 2), (0, 3), start.ravel(), rtol=1e-11, atol=1e-14
    ).y[:, -1]
    reference = ((1 - np.sqrt(2) * rise.reshape(start.shape)) ** 2).mean(-1) / 2
    np.testing.assert_allclose(loss[..., 1], reference, rtol=1e-8)


def test_half_time_of_equal_starts():
    start = np.full(4, 1e-6)
    half = brentq(lambda t: xor_loss(np.array([t]), start)[0] - 0.25, 1, 60, xtol=1e-13)
    expected = (np.log(RATE / (0.5 * 1e-6) - 1) - np.log1p(np.sqrt(2))) / (2 * RATE)
    np.testing.assert_allclose(half, expected, rtol=1e-11)


def test_data_that_are_not_xor_are_refused():
    w, v = np.ones((3, 2)), np.ones(3)
    for x, y in (
        (X, np.array([1.0, 1.0, -1.0, -1.0])),
        (X, 2 * Y),
        (2 * X, Y),
        (X[[0, 0, 1, 2]], Y),
    ):
        with pytest.raises(ValueError, match="four points"):
            xor_start(w, v, x, y)


def test_rules_rank_units():
    """Units of two pathways, of which the first has three and the second two."""
    strength = np.array([[5.0, 0], [0, 1], [3, 0], [4, 0], [0, 2]])
    size = np.array([0.0, 4, 3, 2, 1])
    orders = rankings(strength[None, None], size[None, None], [7])
    assert orders["winners"][0, 0].tolist() == [0, 4, 3, 1, 2]
    assert orders["losers"][0, 0].tolist() == [1, 2, 4, 3, 0]
    assert orders["largest"][0, 0].tolist() == [1, 2, 3, 4, 0]
    assert sorted(orders["random"][0, 0]) == [0, 1, 2, 3, 4]


def test_random_tickets_differ_between_seeds_and_not_between_scales():
    strength, size = np.ones((2, 3, 40, 1)), np.ones((2, 3, 40))
    drawn = rankings(strength, size, [4, 5, 6])["random"]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert len({tuple(order) for order in drawn[0]}) == 3
    np.testing.assert_array_equal(rankings(strength, size, [5, 4, 6])["random"][0, 0], drawn[0, 1])
