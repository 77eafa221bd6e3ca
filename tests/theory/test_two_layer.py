"""Exact two-layer networks, against numerical flow, descent and the textbook formula."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import config
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from neuralrace.datasets import Data
from neuralrace.networks.initial_weights import initial_weights
from neuralrace.networks.initialisers.lambda_balanced import LambdaBalanced
from neuralrace.theory.balance import imbalance
from neuralrace.theory.gradient_flow import linear_descent, linear_flow
from neuralrace.theory.modes import deep_mode
from neuralrace.theory.two_layer import (
    balance_coefficient,
    exact_two_layer,
    lambda_balanced_weights,
)


def balanced_start(rng, n_out, hidden, n_in, scale, runs=3):
    """Balanced layers in random, unaligned bases, of the largest rank for the widths."""

    def frame(n, k):
        return np.linalg.qr(rng.normal(size=(runs, n, n)))[0][..., :k]

    rank = min(n_out, hidden, n_in)
    R = frame(hidden, rank)
    size = scale * rng.uniform(0.5, 1.5, size=(runs, 1, rank))
    return (R * size) @ frame(n_in, rank).mT, (frame(n_out, rank) * size) @ R.mT


def block(sigma_yx):
    n_out, n_in = sigma_yx.shape
    return np.block([[np.zeros((n_in, n_in)), sigma_yx.T], [sigma_yx, np.zeros((n_out, n_out))]])


def textbook(t, w1, w2, sigma_yx):
    """Fukumizu 1998: Q Q^T = e^(F t) Q0 [1 + Q0^T (e^(F t) F^-1 e^(F t) - F^-1) Q0/2]^-1 ..."""
    F, Q0 = block(sigma_yx), np.concatenate([w1.T, w2])
    E, inverse = expm(F * t), np.linalg.inv(F)
    middle = np.eye(Q0.shape[1]) + 0.5 * Q0.T @ (E @ inverse @ E - inverse) @ Q0
    gram = E @ Q0 @ np.linalg.inv(middle) @ Q0.T @ E
    n_in = w1.shape[1]
    return gram[n_in:, :n_in]


@pytest.mark.parametrize(
    ("n_out", "hidden", "n_in", "scale"),
    [(3, 3, 3, 0.1), (3, 2, 5, 0.1), (3, 6, 5, 0.1), (5, 2, 5, 1e-4), (2, 1, 2, 0.5), (1, 4, 3, 2)],
)
def test_matches_the_flow_at_any_time_and_width(n_out, hidden, n_in, scale):
    rng = np.random.default_rng(n_out + 10 * hidden)
    w1, w2 = balanced_start(rng, n_out, hidden, n_in, scale)
    np.testing.assert_allclose(imbalance(w1, w2), 0, atol=1e-14)
    sigma_yx = rng.normal(size=(n_out, n_in))
    time = np.array([0.0, 0.1, 0.5, 2.0, 5.0, 5.1, 20.0, 80.0])
    exact = exact_two_layer(time, w1, w2, sigma_yx)
    first, second = linear_flow(time, [w1, w2], sigma_yx, np.eye(n_in))
    np.testing.assert_allclose(exact, second @ first, rtol=0, atol=1e-9)
    np.testing.assert_allclose(exact[:, 0], w2 @ w1, rtol=0, atol=1e-14 * scale**2)


def test_matches_descent_as_the_learning_rate_falls():
    rng = np.random.default_rng(0)
    w1, w2 = balanced_start(rng, 3, 4, 2, 0.3)
    sigma_yx = rng.normal(size=(3, 2))
    exact = exact_two_layer(np.array([1.5]), w1, w2, sigma_yx)
    errors = []
    for n in (300, 600):
        first, second = linear_descent(np.array([n]), 1.5 / n, [w1, w2], sigma_yx, np.eye(2))
        errors.append(second @ first - exact)
    assert np.abs(errors[0]).max() > 1e-4
    tolerance = 0.01 * np.abs(errors[0]).max()
    np.testing.assert_allclose(2 * errors[1], errors[0], rtol=0, atol=tolerance)


def test_aligned_start_is_one_logistic_per_mode():
    s, c = np.array([4.0, 2.0, 0.5]), np.array([1e-6, 1e-2, 0.3])
    time = np.array([0.0, 2.0, 7.7, 50.0, 900.0])
    w1, w2 = np.eye(3, 5) * c[:, None], np.eye(4, 3) * c
    sigma_yx = np.zeros((4, 5))
    sigma_yx[range(3), range(3)] = s
    modes = exact_two_layer(time, w1, w2, sigma_yx)
    expected = np.zeros_like(modes)
    expected[:, range(3), range(3)] = deep_mode(time, s, np.ones(3), c**2)
    np.testing.assert_allclose(modes, expected, rtol=0, atol=1e-13)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), widths=st.tuples(*[st.integers(1, 4)] * 3))
def test_equivariant_to_rotations_of_input_output_and_hidden(seed, widths):
    n_out, hidden, n_in = widths
    rng = np.random.default_rng(seed)
    w1, w2 = balanced_start(rng, n_out, hidden, n_in, 0.1)
    sigma_yx = rng.normal(size=(n_out, n_in))
    time = np.array([0.3, 2.0, 6.0])
    U, R, V = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (n_out, hidden, n_in))
    plain = exact_two_layer(time, w1, w2, sigma_yx)
    turned = exact_two_layer(time, R @ w1 @ V.T, U @ w2 @ R.T, U @ sigma_yx @ V.T)
    np.testing.assert_allclose(turned, U @ plain @ V.T, rtol=0, atol=1e-11)


def test_narrow_hidden_layer_ends_at_the_best_low_rank_map():
    rng = np.random.default_rng(1)
    U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (4, 6))
    s = np.array([3.0, 2.0, 1.0, 0.5])
    w1, w2 = balanced_start(rng, 4, 2, 6, 1e-3)
    final = exact_two_layer(np.array([2000.0]), w1, w2, (U * s) @ V[:, :4].T)[:, 0]
    best = (U[:, :2] * s[:2]) @ V[:, :2].T
    np.testing.assert_allclose(final, np.broadcast_to(best, final.shape), rtol=0, atol=1e-12)


def test_textbook_formula_agrees_early_and_fails_late():
    rng = np.random.default_rng(2)
    w1, w2 = (w[0] for w in balanced_start(rng, 3, 3, 3, 0.1))
    sigma_yx = rng.normal(size=(3, 3))
    sigma_yx *= 1.0 / np.linalg.norm(sigma_yx, 2)
    time = np.array([1.0, 5.0, 20.0, 40.0])
    exact = exact_two_layer(time, w1, w2, sigma_yx)
    book = np.array([textbook(t, w1, w2, sigma_yx) for t in time[:2]])
    error = np.abs(book - exact[:2]).max(axis=(1, 2))
    assert error[0] < 1e-13
    assert error[1] < 1e-10
    first, second = linear_flow(time, [w1, w2], sigma_yx, np.eye(3))
    assert np.abs(second @ first - exact).max() < 1e-10
    with suppress(np.linalg.LinAlgError):  # on some processors it inverts what is singular
        assert np.abs(textbook(time[3], w1, w2, sigma_yx) - exact[3]).max() > 1e-2


def test_textbook_formula_does_not_exist_for_unequal_widths():
    rng = np.random.default_rng(3)
    w1, w2 = (w[0] for w in balanced_start(rng, 2, 2, 3, 0.1))
    sigma_yx = np.array([[2.0, 0, 0], [0, 1.0, 0]])
    with pytest.raises(np.linalg.LinAlgError):
        textbook(1.0, w1, w2, sigma_yx)
    assert np.isfinite(exact_two_layer(np.array([1.0]), w1, w2, sigma_yx)).all()


def test_error_of_an_unbalanced_start_grows_with_the_imbalance():
    rng = np.random.default_rng(4)
    w1, w2 = balanced_start(rng, 3, 4, 3, 0.3, runs=1)
    tilt = 0.3 * rng.normal(size=w1.shape)
    w1 = w1 + np.array([0.0, 1e-4, 1e-3, 1e-2, 1e-1])[:, None, None] * tilt
    w2 = np.broadcast_to(w2, (5, 3, 4)).copy()
    sigma_yx, time = rng.normal(size=(3, 3)), np.linspace(0, 10, 30)
    first, second = linear_flow(time, [w1, w2], sigma_yx, np.eye(3))
    error = np.abs(exact_two_layer(time, w1, w2, sigma_yx) - second @ first).max(axis=(1, 2, 3))
    unbalanced = imbalance(w1, w2)
    assert error[0] < 1e-9
    assert np.all(np.diff(np.linalg.norm(unbalanced, axis=(-2, -1))) > 0)
    assert np.all(error[1:] / error[:-1] > 5)
    drift = imbalance(first, second) - unbalanced[:, None]
    np.testing.assert_allclose(drift, 0, rtol=0, atol=1e-11)


def test_bad_shapes_are_refused(monkeypatch):
    monkeypatch.setattr(config, "jaxtyping_disable", True)  # as users run the library
    time, sigma_yx = np.array([1.0]), np.ones((2, 3))
    good = np.ones((4, 3)), np.ones((2, 4))
    exact_two_layer(time, *good, sigma_yx)
    for w1, w2 in [(good[0].T, good[1]), (good[0], good[1].T), (np.ones((5, 3)), good[1])]:
        with pytest.raises(ValueError, match="shapes disagree"):
            exact_two_layer(time, w1, w2, sigma_yx)
    with pytest.raises(ValueError, match="time must not"):
        exact_two_layer(-time, *good, sigma_yx)


# Lambda-balanced starts ------------------------------------------------------------------------


def lambda_start(widths, lambda_, scales=(1.0,)):
    """Initial weights of a run at each scale; widths are inputs, hidden units, outputs."""
    initialiser = LambdaBalanced(name="lambda_balanced", lambda_=lambda_)
    modes = Data(x=np.ones((1, widths[0])), y=np.ones((1, widths[-1]))).modes
    w1, w2 = initial_weights(initialiser, widths, modes, scales, range(1))
    return w1[:, 0], w2[:, 0]


def integrated(time, w1, w2, sigmas, starts):
    """Both layers of one run at the times, by an ODE solver that begins anew with each task."""
    shapes = w1.shape, w2.shape
    now, paths = np.concatenate([w1.ravel(), w2.ravel()]), []
    for sigma, start, end in zip(sigmas, starts, [*starts[1:], time[-1] + 1], strict=True):
        inside = time[(time >= start) & (time < end)]

        def rate(_, flat, sigma=sigma):
            a, b = flat[: w1.size].reshape(shapes[0]), flat[w1.size :].reshape(shapes[1])
            error = sigma - b @ a
            return np.concatenate([(b.T @ error).ravel(), (error @ a.T).ravel()])

        solver = {"method": "DOP853", "rtol": 1e-10, "atol": 1e-13}
        path = solve_ivp(rate, (start, end), now, t_eval=np.append(inside, end), **solver).y.T
        paths.append(path[: len(inside)])
        now = path[-1]
    flat = np.concatenate(paths)
    return flat[:, : w1.size].reshape(-1, *shapes[0]), flat[:, w1.size :].reshape(-1, *shapes[1])


LAMBDA_WIDTHS = [
    ((3, 3, 3), 0.8),
    ((5, 3, 4), 2.0),
    ((5, 4, 3), -1.5),
    ((2, 4, 4), 0.7),  # more hidden units than inputs
    ((4, 4, 2), -3.0),
    ((6, 1, 2), 10.0),
    ((3, 6, 2), 0.0),
]


@pytest.mark.parametrize(("widths", "lambda_"), LAMBDA_WIDTHS)
def test_lambda_balanced_weights_solve_the_flow_of_a_sequence_of_tasks(widths, lambda_):
    n_in, _, n_out = widths
    rng = np.random.default_rng(sum(widths))
    sigmas = [rng.normal(size=(n_out, n_in)) for _ in range(2)]
    sigmas.append(-sigmas[1])
    time, starts = np.array([0.0, 0.1, 0.5, 1.5, 2.0, 3.0, 3.5, 6.0]), [0.0, 1.0, 3.0]
    w1, w2 = lambda_start(widths, lambda_, scales := (1.0, 0.3))
    first, second = lambda_balanced_weights(time, w1, w2, sigmas, starts)
    for run, scale in enumerate(scales):
        a, b = integrated(time, w1[run], w2[run], sigmas, starts)
        for exact, solved in (
            (second[run] @ first[run], b @ a),
            (first[run].mT @ first[run], a.mT @ a),
            (second[run] @ second[run].mT, b @ b.mT),
        ):
            np.testing.assert_allclose(exact, solved, rtol=0, atol=2e-8)
        # lambda stays what it was
        rank = first.shape[-2]
        expected = np.broadcast_to(lambda_ * scale**2 * np.eye(rank), (len(time), rank, rank))
        balance = imbalance(first[run], second[run])
        np.testing.assert_allclose(balance, expected, rtol=0, atol=1e-11 * (1 + abs(lambda_)))


def test_small_lambda_approaches_the_zero_balanced_solution():
    rng, time = np.random.default_rng(0), np.linspace(0, 5, 9)
    sigma_yx = rng.normal(size=(4, 3))
    expected = exact_two_layer(time, *lambda_start((3, 2, 4), 0.0), sigma_yx)
    errors = []
    for lambda_ in (1e-3, 1e-6, 0.0):
        first, second = lambda_balanced_weights(time, *lambda_start((3, 2, 4), lambda_), [sigma_yx])
        errors.append(np.abs(second @ first - expected).max())
    assert errors[0] > 1e-5
    assert errors[1] < 2e-3 * errors[0]
    assert errors[2] < 1e-14


@pytest.mark.parametrize("lambda_", [2.0, -2.0, 1e-3])
def test_aligned_lambda_balanced_modes_follow_the_hyperbolic_law(lambda_):
    """One mode: p = |lambda|/2 sinh(theta), and u = tanh(theta/2) has a closed form.

    du/dt = s - |lambda| u - s u^2, so (u - u+)/(u - u-) decays with the rate
    sqrt(lambda^2 + 4 s^2), twice the larger eigenvalue of F.
    """
    s, small = np.array([3.0, 1.0]), np.array([0.1, 0.4])
    large = np.sqrt(small**2 + abs(lambda_))
    a, b = (small, large) if lambda_ > 0 else (large, small)
    time = np.array([0.0, 0.2, 1.0, 3.0, 40.0])
    w1, w2 = np.diag(a)[None], np.diag(b)[None]
    first, second = lambda_balanced_weights(time, w1, w2, [np.diag(s)])
    size, rate = abs(lambda_), np.sqrt(lambda_**2 + 4 * s**2)
    stable, unstable = (rate - size) / (2 * s), (-rate - size) / (2 * s)
    start = np.tanh(np.arcsinh(2 * a * b / size) / 2)
    decay = (start - stable) / (start - unstable) * np.exp(-rate * time[:, None])
    u = (stable - decay * unstable) / (1 - decay)
    expected = size * u / (1 - u**2)  # sinh(2 artanh u) / 2
    total = (second @ first)[0]
    modes = np.diagonal(total, axis1=-2, axis2=-1)
    np.testing.assert_allclose(modes, expected, rtol=1e-9)
    np.testing.assert_allclose(total, modes[..., None] * np.eye(2), rtol=0, atol=1e-12)


def test_weights_without_a_lambda_are_refused():
    w1, w2 = lambda_start((3, 2, 4), 0.5)
    np.testing.assert_allclose(balance_coefficient(w1, w2), 0.5, rtol=1e-12)
    w1 = w1 * [[1.0, 1.0, 1.001]]
    with pytest.raises(ValueError, match="not lambda-balanced"):
        lambda_balanced_weights(np.array([1.0]), w1, w2, [np.ones((4, 3))])
