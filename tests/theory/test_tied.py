"""Tied linear networks, against the flow of separate encoder and decoder weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import config
from scipy.integrate import quad, solve_ivp

from neuralrace.theory.gradient_flow import linear_flow
from neuralrace.theory.modes import deep_mode
from neuralrace.theory.tied import cosines, first_order_interference, tied_gram, tied_weights


def rotation(rng, n):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def symmetric(rng, s):
    R = rotation(rng, len(s))
    return (R * s) @ R.T


@pytest.mark.parametrize("hidden", [1, 2, 4, 9])
@pytest.mark.parametrize("s", [[3.0, 1.0, 0.3, 0.1], [2.0, 1.0, 0.0, 0.0], [2.0, 0.5, 0.0, -1.0]])
def test_gram_solves_the_full_network(hidden, s):
    """Against the flow of separate encoder and decoder weights from an equal start."""
    rng = np.random.default_rng(hidden)
    sigma = symmetric(rng, np.array(s))
    W = 0.1 * rng.normal(size=(3, 4, hidden))
    time = np.array([0.0, 0.01, 1.0, 3.0, 3.5, 12.0, 40.0])
    encoder, decoder = linear_flow(time, [W.mT, W], sigma, np.eye(4))
    gram = tied_gram(time, W, sigma)
    np.testing.assert_allclose(gram, decoder @ encoder, rtol=0, atol=1e-9)
    np.testing.assert_allclose(gram, decoder @ decoder.mT, rtol=0, atol=1e-9)


def test_gram_solves_the_vector_equations():
    """Against dW_i/dt = (s_i - u_i) W_i - sum_{j != i} (W_i . W_j) W_j for every mode."""
    rng = np.random.default_rng(0)
    s, W = np.array([1.5, 1.0, 0.4]), 0.3 * rng.normal(size=(3, 2))

    def velocity(_, flat):
        w = flat.reshape(3, 2)
        return np.concatenate(
            [
                (s[i] - w[i] @ w[i]) * w[i] - sum((w[i] @ w[j]) * w[j] for j in range(3) if j != i)
                for i in range(3)
            ]
        )

    solution = solve_ivp(velocity, (0, 6), W.ravel(), "DOP853", [2.0, 6.0], rtol=1e-12, atol=1e-14)
    path = solution.y.T.reshape(2, 3, 2)
    gram = tied_gram(np.array([2.0, 6.0]), W, np.diag(s))
    np.testing.assert_allclose(gram, path @ path.mT, rtol=0, atol=1e-10)


def test_orthogonal_start_is_logistic_at_long_times_and_from_tiny_starts():
    s = np.array([3.0, 1.0, 0.2, 0.0, -1.0])
    u0 = np.array([1e-12, 1e-3, 1e-30, 0.5, 1e-2])
    time = np.array([0.0, 1.0, 10.0, 33.3, 400.0, 2000.0])
    gram = tied_gram(time, np.diag(np.sqrt(u0)), np.diag(s))
    expected = deep_mode(time, s, np.ones(5), u0)
    np.testing.assert_allclose(np.diagonal(gram, axis1=1, axis2=2), expected, rtol=1e-12, atol=0)
    assert np.all(gram[:, ~np.eye(5, dtype=bool)] == 0)


def test_without_correlation_the_weights_decay_algebraically():
    W = np.random.default_rng(0).normal(size=(2, 3))
    gram0 = W @ W.T
    (gram,) = tied_gram(np.array([5.0]), W, np.zeros((2, 2)))
    np.testing.assert_allclose(gram, gram0 @ np.linalg.inv(np.eye(2) + 10 * gram0), rtol=1e-12)


def test_narrow_layer_learns_only_as_many_modes_as_fit_at_long_times():
    rng = np.random.default_rng(1)
    sigma = np.diag([3.0, 2.0, 1.0, 0.5])
    gram = tied_gram(np.array([3000.0]), 1e-3 * rng.normal(size=(5, 4, 2)), sigma)[:, 0]
    np.testing.assert_allclose(
        gram, np.broadcast_to(np.diag([3.0, 2, 0, 0]), gram.shape), atol=1e-13
    )


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    hidden=st.integers(1, 5),
    log_scale=st.floats(-6, 0.5),
    gaps=st.lists(st.floats(0, 8), min_size=1, max_size=4),
)
def test_gram_flow_is_a_semigroup_and_equivariant(seed, hidden, log_scale, gaps):
    rng = np.random.default_rng(seed)
    sigma, R, hidden_turn = (
        symmetric(rng, rng.normal(size=3)),
        rotation(rng, 3),
        rotation(rng, hidden),
    )
    W = 10**log_scale * rng.normal(size=(3, hidden))
    time = np.cumsum(gaps)
    gram = tied_gram(time, W, sigma)
    np.testing.assert_array_equal(gram, gram.mT)
    assert np.linalg.eigvalsh(gram).min() > -1e-13
    turned = tied_gram(time, R @ W @ hidden_turn, R @ sigma @ R.T)
    np.testing.assert_allclose(turned, R @ gram @ R.T, rtol=0, atol=1e-10)
    resumed = tied_gram(time[-1:] - time[0], tied_weights(time[:1], W, sigma)[0], sigma)
    np.testing.assert_allclose(resumed[0], gram[-1], rtol=0, atol=1e-10)


def test_two_vectors_have_an_exact_interference():
    """For two modes cot(angle) decays at the sum of the squared norms, not the larger one."""
    s = np.array([2.0, 0.7])
    W = np.array([[0.1, 0.02, 0.0], [0.05, -0.03, 0.06]])
    time = np.array([0.0, 0.5, 1.5, 3.0, 6.0])
    cos = cosines(tied_gram(time, W, np.diag(s)))[:, 0, 1]
    cot = cos / np.sqrt(1 - cos**2)

    def summed_norms(t):
        return np.trace(tied_gram(np.array([t]), W, np.diag(s))[0])

    for k, t in enumerate(time):
        decay = np.exp(-quad(summed_norms, 0, t, epsabs=1e-12)[0])
        assert cot[k] == pytest.approx(cot[0] * decay, rel=1e-9)


@pytest.mark.parametrize("cosine", [0.1, 0.01])
def test_first_order_interference_holds_with_the_sum_and_fails_with_the_larger(cosine):
    s = np.array([2.0, 1.7])
    W = 0.1 * np.array([[1.0, 0.0], [cosine, np.sqrt(1 - cosine**2)]])
    time = np.linspace(0, 4, 400)
    gram = tied_gram(time, W, np.diag(s))
    true = cosines(gram)[:, 0, 1]
    ratio = {
        rate: first_order_interference(time, gram, rate)[:, 0, 1] / true
        for rate in ("sum", "larger")
    }
    np.testing.assert_allclose(ratio["sum"], 1, rtol=0, atol=cosine**2)
    assert ratio["larger"][-1] > 20


def test_first_order_interference_integrates_the_norms():
    """Against the logistic integral, exp(-int u) = (1 + (u0/s)(e^(2 s t) - 1))^(-1/2)."""
    s, u0, cosine = np.array([1.5, 0.8]), np.array([1e-3, 0.1]), 0.25
    time = np.linspace(0, 5, 201)
    gram = np.zeros((2, 201, 2, 2))
    u = deep_mode(time, s, np.ones(2), u0)
    gram[..., [0, 1], [0, 1]] = u
    gram[:, 0, 0, 1] = gram[:, 0, 1, 0] = cosine * np.sqrt(u0.prod())
    predicted = first_order_interference(time, gram)
    one_by_one = (1 + u0 / s * np.expm1(2 * s * time[:, None])) ** -0.5
    np.testing.assert_allclose(predicted[0, :, 0, 1], cosine * one_by_one.prod(-1), rtol=1e-5)
    np.testing.assert_allclose(predicted[..., [0, 1], [0, 1]], 1.0, rtol=1e-15)
    # with u_1 the larger throughout, the weaker claim keeps the faster vector only
    gram[..., 0, 0] = u[:, 1] / 2
    gram[:, 0, 0, 1] *= np.sqrt(u0[1] / 2 / u0[0])
    weaker = first_order_interference(time, gram, "larger")
    np.testing.assert_allclose(weaker[0, :, 0, 1], cosine * one_by_one[:, 1], rtol=1e-5)


@pytest.mark.parametrize("hidden", [2, 4, 16])
def test_random_untied_start_follows_the_tied_network_of_its_growing_half(hidden):
    """With equal singular values too, where no order of modes exists.

    When the first mode is learned, after log(1/scale)/s_max, the decaying half of the slowest is
    scale^(1 + s_min/s_max): this is the error that remains.
    """
    rng = np.random.default_rng(hidden)
    sigma, time = np.diag([2.6, 1.7, 1.0, 1.0]), np.linspace(0, 20, 100)
    unit1, unit2 = rng.normal(size=(5, hidden, 4)), rng.normal(size=(5, 4, hidden))
    error = []
    for scale in (10**-2.5, 10**-3.5):
        w1, w2 = scale * unit1, scale * unit2
        first, second = linear_flow(time, [w1, w2], sigma, np.eye(4))
        error.append(np.abs(tied_gram(time, (w1.mT + w2) / 2, sigma) - second @ first).max())
    assert error[0] < 1e-3
    assert np.log10(error[0] / error[1]) == pytest.approx(1 + 1.0 / 2.6, abs=0.03)


def test_times_that_need_too_many_steps_are_refused():
    with pytest.raises(RuntimeError, match=r"not solved to t = 1e\+30: it would take 2e\+30 steps"):
        tied_weights(np.array([0.0, 1e30]), np.eye(2), np.diag([4.0, 1.0]))


def test_cosines():
    W = np.array([[3.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    cos = cosines(W @ W.T)
    np.testing.assert_allclose(cos[:2, :2], [[1, 0.5**0.5], [0.5**0.5, 1]], rtol=1e-15)
    assert np.isnan(cos[2]).all()


def test_bad_input_is_refused(monkeypatch):
    monkeypatch.setattr(config, "jaxtyping_disable", True)  # as users run the library
    W, time = np.ones((2, 1)), np.array([1.0])
    with pytest.raises(ValueError, match="symmetric"):
        tied_gram(time, W, np.array([[1.0, 2.0], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="2 rows"):
        tied_gram(time, W, np.eye(3))
    for bad in ([-1.0], [2.0, 1.0]):
        with pytest.raises(ValueError, match="time must not"):
            tied_gram(np.array(bad), W, np.eye(2))
