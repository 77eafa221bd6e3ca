"""Mean-field flow of ReLU units, against quadrature, random draws, autodiff and networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.linalg import toeplitz
from scipy.special import erf
from scipy.stats import norm

from neuralrace.theory.mean_field import _interpolated, mean_field_flow, response

ISING = np.array([-1.0, 1.0]), np.array([0.5, 0.5])


def marginal(gain):
    """x = erf(g z)/Z by Gauss-Legendre on panels that resolve small values, and the value 0."""
    ends = np.concatenate([[0], np.geomspace(1e-4 / max(gain, 1), 9, 16)])
    nodes, weights = np.polynomial.legendre.leggauss(20)
    width = np.diff(ends)[:, None] / 2
    z = (ends[:-1, None] + width * (nodes + 1)).ravel()
    half = (width * weights).ravel() * norm.pdf(z)
    x, weights = erf(gain * np.concatenate([-z, [0], z])), np.concatenate([half, [0], half])
    return x / np.sqrt(weights @ x**2), weights


GAUSSIAN = marginal(1e-5)


def ring(length, xi):
    distance = np.minimum(np.arange(length), length - np.arange(length))
    return toeplitz(np.exp(-((distance / xi) ** 2)))


def starts(*shape, scale=0.1, seed=0):
    return scale * np.random.default_rng(seed).normal(size=shape)


def test_response_of_a_uniform_marginal_by_quadrature_and_in_closed_form():
    """E[X erf(X k)] by parts, X uniform within +-c, c^2 = 3."""
    c = np.sqrt(3)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    for a in (-0.99, -0.3, 0.02, 0.5, 0.97):
        k = a / np.sqrt(2 * (1 - a**2))
        closed = (
            c / 2 * erf(k * c) + np.exp(-((k * c) ** 2)) / (2 * k * np.sqrt(np.pi))
            - erf(k * c) / (4 * c * k**2)
        )  # fmt: skip
        integral = quad(lambda x, k=k: x * erf(k * x) / (2 * c), -c, c, epsabs=1e-13)[0]
        ours = response(np.array(a), (c * nodes, weights / 2))
        np.testing.assert_allclose([ours, integral], closed, rtol=0, atol=1e-12)


def test_response_at_its_ends_and_of_known_marginals():
    a = np.array([-1.0, -0.6, 0.0, 1e-9, 0.4, 1 - 1e-12, 1.0])
    np.testing.assert_allclose(response(a, GAUSSIAN), np.sqrt(2 / np.pi) * a, rtol=1e-7)
    with np.errstate(divide="ignore"):
        ising = erf(a / np.sqrt(2 * (1 - a**2)))
    np.testing.assert_allclose(response(a, ISING), ising, rtol=1e-12)
    for gain in (0.5, 3.0, 100.0):
        values, weights = marginal(gain)
        size = weights @ np.abs(values)
        got = response(np.array([1.0, -1.0, 1 - 1e-15, 0.0]), (values, weights))
        np.testing.assert_allclose(got, size * np.array([1, -1, 1, 0]), rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match=r"between -1 and 1, not 1\.5"):
        response(np.array([0.2, -1.5]), ISING)


@settings(max_examples=30)
@given(gain=st.floats(0.01, 100), a=st.floats(-1, 1))
def test_response_is_odd_rises_and_bends_with_the_kurtosis(gain, a):
    law = marginal(gain)
    up, down, more = response(np.array([a, -a, min(a + 0.01, 1)]), law)
    assert up == -down
    assert more >= up - 1e-15
    values, weights = law
    kurtosis, sixth = weights @ values**4 - 3, weights @ values**6
    small = np.array([0.02, 0.05])
    error = response(small, law) - np.sqrt(2 / np.pi) * (small - kurtosis * small**3 / 6)
    fifth = np.sqrt(2 / np.pi) * (3 / 8 - (kurtosis + 3) / 4 + sixth / 40)
    np.testing.assert_allclose(error, fifth * small**5, rtol=0.05, atol=1e-12)


@pytest.mark.parametrize("law", [GAUSSIAN, marginal(0.7), marginal(3.0), marginal(100.0), ISING])
def test_interpolated_response_is_the_response(law):
    near = np.geomspace(1e-15, 0.5, 200)
    a = np.concatenate([np.linspace(-1, 1, 3001), 1 - near, near - 1])
    np.testing.assert_allclose(_interpolated(law)(a), response(a, law), rtol=0, atol=1e-11)


def test_one_unit_obeys_the_equation_of_the_notes():
    """dw/dt = [phi(a) - (S0 + S1) w]/4, targets 1 and 0, by a plain fourth-order method."""
    s1, s0, law = ring(10, 3.0), ring(10, 1.0), marginal(3.0)

    def velocity(w):
        a = np.clip(s1 @ w / np.sqrt(w @ s1 @ w), -1, 1)
        return (response(a, law) - (s0 + s1) @ w) / 4

    w, h = starts(10), 0.01
    flow = mean_field_flow(
        np.array([2.0, 4.0]), w[None], np.stack([s1, s0]), np.array([1.0, 0.0]), law
    )
    for step in range(1, 401):
        k1 = velocity(w)
        k2 = velocity(w + h / 2 * k1)
        k3 = velocity(w + h / 2 * k2)
        w = w + h / 6 * (k1 + 2 * k2 + 2 * k3 + velocity(w + h * k3))
        if step in (200, 400):
            np.testing.assert_allclose(flow[step // 200 - 1, 0], w, rtol=0, atol=1e-7)


def gaussian_loss(w, covariances, targets):
    """Loss by the arc-cosine kernel E[ReLU ReLU], which JAX can differentiate twice."""
    loss = 0.0
    for S, y in zip(covariances, targets, strict=True):
        gram = w @ S @ w.T
        size = jnp.sqrt(jnp.diagonal(gram))
        norms = jnp.outer(size, size)
        theta = jnp.arccos((gram / norms) * (1 - 1e-12))
        kernel = norms * (jnp.sin(theta) + (jnp.pi - theta) * jnp.cos(theta)) / (2 * jnp.pi)
        loss += (y**2 - 2 * y * size.mean() / np.sqrt(2 * np.pi) + kernel.mean()) / 2
    return loss / len(targets)


@settings(max_examples=5)
@given(
    seed=st.integers(0, 2**32 - 1),
    units=st.sampled_from([1, 3]),
    targets=st.sampled_from([(1.0, 0.0), (1.0, -1.0), (0.0, 2.0)]),
)
def test_gaussian_flow_descends_its_loss(seed, units, targets):
    """A finite difference in time equals the gradient of another formula for the loss."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(2, 5, 7)) / np.sqrt(7)
    covariances, y, w = factors @ factors.mT, np.array(targets), rng.normal(size=(units, 5))
    with jax.enable_x64(True):
        slope = np.asarray(jax.grad(gaussian_loss)(jnp.asarray(w), covariances, y))
    h = 1e-3
    path = mean_field_flow(
        np.array([0.0, h, 2 * h]), w, covariances, y, GAUSSIAN, rtol=1e-12, atol=1e-14
    )
    velocity = (4 * path[1] - path[2] - 3 * path[0]) / (2 * h)
    np.testing.assert_allclose(velocity, -slope, rtol=0, atol=1e-5)


def test_averages_over_gaussian_draws():
    """The velocity of several units is within 5 standard errors of means over a sample."""
    rng = np.random.default_rng(1)
    covariances = np.stack([ring(6, 1.5), 0.3 * ring(6, 0.7)])  # variances other than 1 as well
    y, w, n = np.array([0.7, -1.2]), starts(3, 6, scale=1.0), 200_000
    x = rng.normal(size=(2, n, 6)) @ np.linalg.cholesky(covariances).mT
    rates = []
    for inputs, target in zip(x, y, strict=True):
        on = inputs @ w.T
        error = target - np.maximum(on, 0).mean(1)
        rates.append((error[:, None] * (on > 0))[:, :, None] * inputs[:, None] / 3)
    rate, spread = np.mean(rates, axis=(0, 1)), np.std(rates, axis=1).max(0) / np.sqrt(2 * n)
    h = 1e-4
    path = mean_field_flow(np.array([h]), w, covariances, y, GAUSSIAN, rtol=1e-13, atol=1e-15)
    assert (np.abs((path[0] - w) / h - rate) < 5 * spread + 10 * h).all()


def test_runs_are_independent_and_the_flow_commutes_with_shifts():
    covariances = np.stack([ring(8, 2.0), ring(8, 1.0)])
    y, law, time = np.array([1.0, 0.0]), marginal(3.0), np.array([0.0, 3.0, 30.0])
    start = starts(2, 3, 4, 8)
    together = mean_field_flow(time, start, covariances, y, law)
    assert together.shape == (2, 3, 3, 4, 8)
    np.testing.assert_array_equal(together[:, :, 0], start)
    alone = mean_field_flow(time, start[1, 2], covariances, y, law)
    np.testing.assert_allclose(together[1, 2], alone, rtol=0, atol=1e-6)
    moved = mean_field_flow(time, np.roll(start[1, 2], 3, axis=-1), covariances, y, law)
    np.testing.assert_allclose(moved, np.roll(alone, 3, axis=-1), rtol=0, atol=1e-6)


def test_silent_units_stay_and_count_as_units():
    covariances, y = np.stack([ring(8, 2.0), ring(8, 1.0)]), np.array([1.0, 0.0])
    one, time = starts(1, 8), np.array([5.0, 9.0])
    padded = mean_field_flow(4 * time, np.vstack([one, 0 * one]), covariances, y, ISING)
    np.testing.assert_array_equal(padded[:, 1], 0)
    # halved output: w/2 moves as a lone unit does, K dw/dt = 2 d(w/2)/dt K, four times as late
    lone = mean_field_flow(time, one / 2, covariances, y, ISING)
    np.testing.assert_allclose(padded[:, :1] / 2, lone, rtol=0, atol=1e-7)


def test_class_one_localises_at_high_gain_and_not_at_low():
    covariances, y, time = np.stack([ring(20, 4.0), ring(20, 1.0)]), np.array([1.0, 0.0]), [200.0]
    shares = {}
    for gain in (0.05, 3.0):
        z2 = 2 * gain**2 / (1 + 2 * gain**2)
        squashed = np.arcsin(z2 * covariances) / np.arcsin(z2)
        w = mean_field_flow(np.array(time), starts(5, 1, 20), squashed, y, marginal(gain))
        shares[gain] = ((w**4).sum(-1) / (w**2).sum(-1) ** 2).ravel()
    assert shares[0.05].max() < 1.2 / 20
    assert shares[3.0].min() > 2.5 / 20


def test_solver_refuses_time_that_does_not_increase():
    with pytest.raises(ValueError, match="time must increase"):
        mean_field_flow(
            np.array([1.0, 1.0]), starts(1, 4), ring(4, 1.0)[None], np.array([1.0]), ISING
        )
