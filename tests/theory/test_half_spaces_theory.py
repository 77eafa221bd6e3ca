"""Gaussian moments behind half-space gates, against quadrature and samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import dblquad
from scipy.linalg import circulant

from neuralrace.theory.half_spaces import flip_fraction, half_space_correlations, half_space_means

seeds = st.integers(0, 2**32 - 1)


def problem(seed, inputs=4, units=3, rank=None):
    """A covariance of rank `rank`, and normals."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(inputs, rank or inputs))
    return root @ root.T, rng.normal(size=(units, inputs))


def textbook(covariance, one, other):
    """<g_i g_j x x^T> from products of S u, the form of the literature, singular at the ends."""
    scale_one, scale_other = np.sqrt(one @ covariance @ one), np.sqrt(other @ covariance @ other)
    rho = one @ covariance @ other / (scale_one * scale_other)
    theta = np.arccos(rho)
    a, c = covariance @ one / scale_one, covariance @ other / scale_other
    products = np.outer(a, c) + np.outer(c, a) - rho * (np.outer(a, a) + np.outer(c, c))
    return (np.pi - theta) / (2 * np.pi) * covariance + products / (2 * np.pi * np.sin(theta))


@given(seeds, st.sampled_from([2, 3, 5]))
def test_correlations_are_the_textbook_form(seed, inputs):
    covariance, normals = problem(seed, inputs)
    a = half_space_correlations(covariance, normals)
    for i in range(3):
        for j in range(3):
            if i != j:
                expected = textbook(covariance, normals[i], normals[j])
                np.testing.assert_allclose(a[i, :, j], expected, atol=1e-9 * covariance.max())
        np.testing.assert_allclose(a[i, :, i], covariance / 2, atol=1e-14 * covariance.max())


def test_moments_are_integrals_of_the_density_over_the_wedge():
    """By quadrature in the plane, without square roots of S and without angles."""
    covariance = np.array([[1.5, -0.6], [-0.6, 0.8]])
    normals = np.array([[1.0, 0.3], [-0.4, 1.0]])
    precision, volume = np.linalg.inv(covariance), np.sqrt(np.linalg.det(covariance))
    # in the coordinates s = u_1.x, t = u_2.x the wedge is a quadrant
    back = np.linalg.inv(normals)
    density = abs(np.linalg.det(back)) / (2 * np.pi * volume)

    def integral(moment, lower):
        def integrand(t, s):
            x = back @ (s, t)
            return moment(x) * density * np.exp(-x @ precision @ x / 2)

        return dblquad(integrand, 0, 12, lower, 12, epsabs=1e-10, epsrel=1e-10)[0]

    a = half_space_correlations(covariance, normals)[0, :, 1]
    means = half_space_means(covariance, normals)[0]
    for i in range(2):
        np.testing.assert_allclose(means[i], integral(lambda x, i=i: x[i], -12), atol=1e-9)
        for j in range(i + 1):
            wedge = integral(lambda x, i=i, j=j: x[i] * x[j], 0)
            np.testing.assert_allclose(a[i, j], wedge, atol=1e-9)
    open_together = integral(lambda x: 1.0, 0)
    flips = flip_fraction(covariance, normals[:1], normals[1:])
    np.testing.assert_allclose(flips, 1 - 2 * open_together, atol=1e-9)


def test_moments_equal_the_means_of_a_large_sample():
    """Every entry within five standard errors, for the covariance of inputs on a ring."""
    rng = np.random.default_rng(0)
    covariance = circulant(np.exp(-(np.minimum(np.arange(6), 6 - np.arange(6)) ** 2) / 1.5**2))
    normals, after = rng.normal(size=(2, 4, 6))
    x = rng.multivariate_normal(np.zeros(6), covariance, size=200_000)
    gates = (x @ normals.T >= 0).astype(float)
    gated = np.einsum("sk,sl->skl", gates, x).reshape(len(x), -1)
    for exact, sample in (
        (half_space_means(covariance, normals).ravel(), gated),
        (flip_fraction(covariance, normals, after), gates != (x @ after.T >= 0)),
    ):
        error = sample.std(axis=0) / np.sqrt(len(x))
        assert np.all(np.abs(exact - sample.mean(axis=0)) < 5 * error)
    exact = half_space_correlations(covariance, normals).reshape(24, 24)
    mean, square = gated.T @ gated / len(x), (gated**2).T @ gated**2 / len(x)
    assert np.all(np.abs(exact - mean) <= 5 * np.sqrt((square - mean**2) / len(x)))


@given(seeds)
def test_a_gate_and_its_opposite_share_all_inputs(seed):
    covariance, normals = problem(seed)
    pair = np.concatenate([normals, -normals, -3.7 * normals[:1]])
    a, means = half_space_correlations(covariance, pair), half_space_means(covariance, pair)
    largest = covariance.max()
    for i in range(3):
        np.testing.assert_array_equal(a[i, :, 3 + i], 0)
        for j in range(3):
            total = a[i, :, j] + a[i, :, 3 + j]
            np.testing.assert_allclose(total, covariance / 2, atol=1e-14 * largest)
    np.testing.assert_allclose(a[0, :, 6], 0, atol=1e-14 * largest)
    np.testing.assert_allclose(a[3, :, 6], covariance / 2, atol=1e-14 * largest)
    np.testing.assert_allclose(means[:3], -means[3:6], atol=1e-15)
    flips = flip_fraction(covariance, pair[[0, 0]], pair[[3, 6]])
    np.testing.assert_allclose(flips, 1, atol=1e-15)


@given(seeds, st.floats(-14, -2))
def test_nearly_parallel_gates_differ_by_the_thin_wedge(seed, exponent):
    """The difference is of first order in the angle and lies in the plane of the normals."""
    covariance, normals = problem(seed, units=1)
    tilt = 10.0**exponent
    u, v = normals[0], np.linalg.inv(covariance) @ np.random.default_rng(seed).normal(size=4)
    v -= u * (u @ covariance @ v) / (u @ covariance @ u)
    v *= np.sqrt((u @ covariance @ u) / (v @ covariance @ v))
    both = np.stack([u, u + tilt * v])
    flips = flip_fraction(covariance, both[:1], both[1:])
    np.testing.assert_allclose(flips, np.arctan(tilt) / np.pi, rtol=1e-4, atol=1e-15)
    a = half_space_correlations(covariance, both)
    edge = covariance @ v / np.sqrt(v @ covariance @ v)
    # the wedge of angle t holds t/(2 pi) [S - own direction], plus twice that along its edge
    own = covariance @ u / np.sqrt(u @ covariance @ u)
    lost = tilt / (2 * np.pi) * (covariance - np.outer(own, own) + np.outer(edge, edge))
    got = covariance / 2 - a[0, :, 1]
    largest = np.abs(covariance).max()
    np.testing.assert_allclose(got, lost, atol=largest * (tilt**2 + 1e-14))


@given(seeds, st.integers(1, 4))
def test_moments_are_realisable_and_equivariant(seed, rank):
    """Positive semidefinite at any rank; lengths of normals and the frame do not matter."""
    covariance, normals = problem(seed, rank=rank)
    a = half_space_correlations(covariance, normals)
    flat = a.reshape(12, 12)
    np.testing.assert_array_equal(np.abs(flat - flat.T) < 1e-13 * covariance.max(), True)
    assert np.linalg.eigvalsh(flat)[0] > -1e-13 * covariance.max()
    scaled = half_space_correlations(covariance, normals * [[2.0], [1e-9], [1e9]])
    np.testing.assert_allclose(scaled, a, atol=1e-13 * covariance.max())
    frame, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(4, 4)))
    turned = half_space_correlations(frame @ covariance @ frame.T, normals @ frame.T)
    back = np.einsum("pm,kplq,qn->kmln", frame, turned, frame)
    np.testing.assert_allclose(back, a, atol=1e-11 * covariance.max())


def test_a_normal_without_variance_is_always_on():
    covariance, normals = problem(1)
    both = np.stack([np.zeros(4), normals[0]])
    a, means = half_space_correlations(covariance, both), half_space_means(covariance, both)
    np.testing.assert_allclose(a[0, :, 0], covariance, rtol=1e-14)
    np.testing.assert_allclose(a[0, :, 1], covariance / 2, rtol=1e-14)
    np.testing.assert_array_equal(means[0], 0)
    np.testing.assert_allclose(flip_fraction(covariance, both, both[[0, 0]]), [0, 0.5])
    flat = np.diag([1.0, 1.0, 0.0])
    a = half_space_correlations(flat, np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 5.0]]))
    np.testing.assert_allclose(a[0, :, 0], flat)
    np.testing.assert_allclose(a[0, :, 1], flat / 2)


def test_inputs_along_one_line_flip_all_gates_or_none():
    line, normals = np.random.default_rng(5).normal(size=(2, 5, 4))
    for direction in line:
        flips = flip_fraction(np.outer(direction, direction), normals[:-1], normals[1:])
        signs = np.sign(normals @ direction)
        np.testing.assert_allclose(flips, signs[1:] != signs[:-1], atol=1e-15)


def test_runs_are_independent():
    covariance, _ = problem(2)
    before, after = np.random.default_rng(2).normal(size=(2, 3, 2, 5, 4))
    flips = flip_fraction(covariance, before, after)
    assert flips.shape == (3, 2, 5)
    alone = flip_fraction(covariance, before[1, 1], after[1, 1])
    np.testing.assert_allclose(flips[1, 1], alone, rtol=1e-13)


def test_bad_covariances_are_refused():
    _, normals = problem(3, inputs=2)
    for moments in (half_space_means, half_space_correlations):
        with pytest.raises(ValueError, match="not symmetric"):
            moments(np.array([[1.0, 0.1], [0.0, 1.0]]), normals)
        with pytest.raises(ValueError, match="its eigenvalues are -1 to 1"):
            moments(np.diag([1.0, -1.0]), normals)
    with pytest.raises(ValueError, match="positive semidefinite"):
        flip_fraction(np.diag([1.0, -1e-9]), normals, normals)
