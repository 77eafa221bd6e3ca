"""Exact two-layer networks, against numerical flow, descent and the textbook formula."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import config
from scipy.linalg import expm

from neuralrace.theory.balance import imbalance
from neuralrace.theory.gradient_flow import linear_descent, linear_flow
from neuralrace.theory.modes import deep_mode
from neuralrace.theory.two_layer import exact_two_layer


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
