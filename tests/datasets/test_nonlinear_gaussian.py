"""Nonlinear Gaussian processes: marginals by independent routes, and moments of both classes."""

import json
import subprocess
import sys
from functools import cache

import jax
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from refusals import check_refusal
from scipy import integrate, special, stats

from neuralrace.datasets.marginals import Erf, Gaussian, Ising, Laplace
from neuralrace.datasets.nonlinear_gaussian import NonlinearGaussian

MARGINALS = {
    "low gain": Erf(name="erf", gain=0.01),
    "gain 1": Erf(name="erf", gain=1.0),
    "gain 3": Erf(name="erf"),
    "high gain": Erf(name="erf", gain=100.0),
    "gain 2/sqrt(2)": Erf(name="erf", gain=2.0, convention="erf_root_two"),
    "gaussian": Gaussian(name="gaussian"),
    "ising": Ising(name="ising"),
    "laplace": Laplace(name="laplace"),
}
UNIFORM = Erf(name="erf", gain=1 / np.sqrt(2))
each_marginal = pytest.mark.parametrize("marginal", MARGINALS.values(), ids=MARGINALS)


def make(**parameters):
    return NonlinearGaussian.model_validate_json(
        json.dumps({"name": "nonlinear_gaussian"} | parameters)
    )


# Marginals --------------------------------------------------------------------------------------


def quantiles(marginal, z):
    """f(z) from the quantiles of known distributions."""
    match marginal.name:
        case "laplace":  # from the upper tail, which has no cancellation
            return np.sign(z) * stats.laplace(scale=np.sqrt(1 / 2)).isf(stats.norm.sf(np.abs(z)))
        case "ising":
            return np.where(stats.norm.cdf(z) > 1 / 2, 1.0, -1.0)
        case "gaussian":
            return np.sign(z) * stats.norm.isf(stats.norm.sf(np.abs(z)))
        case "erf":
            slope = marginal.gain * (1 if marginal.convention == "erf" else np.sqrt(1 / 2))
            p = stats.norm(scale=np.sqrt(1 / 2)).cdf(slope * z)
            return (2 * p - 1) / np.sqrt(np.arcsin(1 / (1 + 1 / (2 * slope**2))) * 2 / np.pi)


@each_marginal
def test_transfer_maps_quantiles_in_numpy_and_jax(marginal):
    z = np.linspace(-5, 5, 52).reshape(4, 13)
    x = marginal.transfer(z)
    np.testing.assert_allclose(x, quantiles(marginal, z), rtol=1e-8)
    with jax.enable_x64(True):
        np.testing.assert_allclose(marginal.transfer(jax.numpy.asarray(z)), x, rtol=1e-13)
    single = jax.jit(marginal.transfer)(jax.numpy.asarray(z))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, x, rtol=1e-5)


@given(gain=st.floats(1e-3, 1e3), rho=st.floats(-1, 1), z=st.floats(-8, 8))
@settings(max_examples=50)
def test_conventions_differ_by_a_factor_of_the_gain(gain, rho, z):
    one = Erf(name="erf", gain=gain)
    other = Erf(name="erf", gain=gain * np.sqrt(2), convention="erf_root_two")
    np.testing.assert_allclose(one.transfer(np.array(z)), other.transfer(np.array(z)), rtol=1e-13)
    rhos = np.array([rho])
    np.testing.assert_allclose(one.correlation(rhos), other.correlation(rhos), rtol=1e-8)
    np.testing.assert_allclose(one.kurtosis, other.kurtosis, atol=1e-13)


def test_default_convention_has_no_root():
    assert MARGINALS["gain 3"].convention == "erf"
    far, near = MARGINALS["gain 3"].transfer(np.array([9.0, 0.1]))
    np.testing.assert_allclose(near / far, special.erf(0.3))


def plane_integral(marginal, rho, step=0.02, reach=9.0):
    """<f(z_1) f(z_2)> by the trapezoidal rule; f has kinks on the axes, which are on the grid."""
    z = step * np.arange(-round(reach / step), round(reach / step) + 1)
    squares = z[:, None] ** 2 + z**2 - 2 * rho * np.outer(z, z)
    density = np.exp(-squares / (2 * (1 - rho**2))) / (2 * np.pi * np.sqrt(1 - rho**2))
    x = quantiles(marginal, z)
    return step**2 * (x @ density @ x)


@pytest.mark.parametrize("name", ["low gain", "gain 1", "gain 3", "gaussian", "laplace"])
@pytest.mark.parametrize("rho", [-0.6, 0.1, 0.9])
def test_correlation_is_the_integral_over_the_plane(name, rho):
    correlation = MARGINALS[name].correlation(np.array([rho]))
    np.testing.assert_allclose(correlation, plane_integral(MARGINALS[name], rho), rtol=1e-8)


@given(rho=st.floats(-0.99, 0.99))
@settings(max_examples=25)
def test_correlation_of_signs_follows_from_the_probability_of_quadrants(rho):
    same = stats.multivariate_normal.cdf([0, 0], cov=[[1, rho], [rho, 1]])
    np.testing.assert_allclose(
        MARGINALS["ising"].correlation(np.array([rho])), [4 * same - 1], atol=1e-9
    )


@each_marginal
def test_correlation_keeps_shape_and_goes_from_minus_one_to_one(marginal):
    rho = np.linspace(-1, 1, 42).reshape(2, 3, 7)
    correlation = marginal.correlation(rho)
    assert correlation.shape == rho.shape
    np.testing.assert_allclose(correlation.flat[[0, -1]], [-1, 1], rtol=1e-12)
    np.testing.assert_allclose(correlation.ravel(), -correlation.ravel()[::-1], atol=1e-12)
    assert (np.diff(correlation.ravel()) > 0).all()
    assert (np.abs(correlation) <= np.abs(rho) + 1e-12).all()


@given(gain=st.floats(1e-6, 1e6), rho=st.floats(-1, 1))
@settings(max_examples=50)
def test_limits_of_the_gain_are_gaussian_and_ising(gain, rho):
    marginal, rhos = Erf(name="erf", gain=gain), np.array([rho])
    bounds = sorted([float(2 / np.pi * np.arcsin(rho)), rho])
    assert bounds[0] - 1e-8 <= marginal.correlation(rhos) <= bounds[1] + 1e-8
    assert -2 - 1e-12 <= marginal.kurtosis <= 1e-12
    distance = [
        np.abs(marginal.correlation(rhos) - MARGINALS[limit].correlation(rhos))
        for limit in ("gaussian", "ising")
    ]
    assert distance[0] <= gain**2 + 1e-8  # a = 2 g^2 + ..., asin(a rho)/asin(a) = rho + O(a^2)
    assert distance[1] <= 2 / gain


@each_marginal
def test_random_samples_have_the_moments(marginal):
    """Mean, variance, kurtosis and correlation, each within 4.5 standard errors."""
    rho, (a, b) = 0.7, np.random.default_rng(0).normal(size=(2, 200_000))
    x, other = marginal.transfer(a), marginal.transfer(rho * a + np.sqrt(1 - rho**2) * b)
    fourth = marginal.kurtosis + 3
    (correlation,) = marginal.correlation(np.array([rho]))
    for draws, expected in ((x, 0), (x**2, 1), (x**4, fourth), (x * other, correlation)):
        error = draws.std() / np.sqrt(len(draws))
        assert abs(draws.mean() - expected) <= 4.5 * error + 1e-12


def test_kurtosis_has_the_closed_form():
    np.testing.assert_allclose(MARGINALS["gaussian"].kurtosis, 0, atol=1e-13)
    np.testing.assert_allclose(UNIFORM.kurtosis, -6 / 5, atol=1e-13)
    np.testing.assert_allclose(MARGINALS["laplace"].kurtosis, 3, atol=1e-12)
    assert MARGINALS["ising"].kurtosis == -2
    # erf(gz) = (2 g/sqrt(pi)) (z - g^2 z^3/3 + ...), so the leading term of the kurtosis is -8 g^2
    np.testing.assert_allclose(Erf(name="erf", gain=1e-3).kurtosis, -8e-6, rtol=1e-5)
    gains = [Erf(name="erf", gain=gain).kurtosis for gain in np.geomspace(1e-3, 1e5, 30)]
    assert (np.diff(gains) < 0).all()
    np.testing.assert_allclose(gains[-1], -2, atol=1e-4)


@pytest.mark.parametrize("t", [0.3, 1.0, 4.0])
def test_quadrature_gives_characteristic_functions(t):
    expected = {
        "gaussian": np.exp(-(t**2) / 2),
        "ising": np.cos(t),
        "laplace": 1 / (1 + t**2 / 2),
    }
    functions = {MARGINALS[name]: value for name, value in expected.items()}
    for marginal, value in (functions | {UNIFORM: np.sinc(np.sqrt(3) * t / np.pi)}).items():
        values, weights = marginal.quadrature
        np.testing.assert_allclose(weights @ np.cos(t * values), value, atol=1e-11)
        np.testing.assert_allclose(weights @ np.sin(t * values), 0, atol=1e-14)


SMOOTH = {
    "bell": lambda x: np.exp(-((x - 0.4) ** 2)),
    "steep": lambda x: x * special.erf(10 * x),
    "exponential": np.exp,
}


@pytest.mark.parametrize("gain", [0.01, 0.3, 3.0, 30.0, 100.0])
@pytest.mark.parametrize("h", SMOOTH.values(), ids=SMOOTH)
def test_quadrature_agrees_with_adaptive_quadrature(gain, h):
    marginal = Erf(name="erf", gain=gain)
    edges = np.unique([-12, 0, 12, *(s * c for s in (-1, 1) for c in (0.03, 0.3, 1, 3, 6))])
    expected = sum(
        integrate.quad(
            lambda z: h(quantiles(marginal, z)) * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi),
            *edge,
            epsabs=1e-13,
            epsrel=1e-12,
            limit=200,
        )[0]
        for edge in np.stack([edges[:-1], edges[1:]], axis=1)
    )
    values, weights = marginal.quadrature
    np.testing.assert_allclose(weights @ h(values), expected, rtol=1e-10)


@each_marginal
def test_quadrature_has_mean_zero_and_unit_variance(marginal):
    values, weights = marginal.quadrature
    assert (weights > 0).all()
    np.testing.assert_allclose([weights.sum(), weights @ values**2], 1, rtol=1e-13)
    np.testing.assert_allclose(weights @ values, 0, atol=1e-14)


# Moments of inputs ------------------------------------------------------------------------------


def kernel(inputs, xi):
    """The covariance C, entry by entry."""
    places = range(inputs)
    around = [[min((i - j) % inputs, (j - i) % inputs) for j in places] for i in places]
    return np.exp(-((np.array(around) / xi) ** 2))


@cache
def fixed(marginal):
    return make(inputs=16, xi=[2.0, 0.7], samples=20_000, marginal=json.loads(marginal)).load()


def largest_deviation(x, expected):
    """Largest deviation of second moments in standard errors; constant products must be exact."""
    i, j = np.triu_indices(x.shape[1])
    products = x[:, i] * x[:, j]
    error = products.std(axis=0) / np.sqrt(len(x))
    return (np.abs(products.mean(axis=0) - expected[i, j]) / np.maximum(error, 1e-12)).max()


@each_marginal
def test_fixed_sample_has_the_covariance_of_its_class(marginal):
    """136 moments agree within 5 standard errors, and differ from those of the other class."""
    x = fixed(marginal.model_dump_json()).x
    ours = [marginal.correlation(kernel(16, xi)) for xi in (2.0, 0.7)]
    for half, own, other in zip(np.split(x, 2), ours, ours[::-1], strict=True):
        assert largest_deviation(half, own) < 5
        assert largest_deviation(half, other) > 30
        assert np.abs(half.mean(axis=0)).max() < 5 * half.std() / np.sqrt(len(half))


@each_marginal
def test_mixture_has_the_closed_form(marginal):
    mixture = make(
        inputs=16, xi=[2, 0.7], marginal=json.loads(marginal.model_dump_json())
    ).mixture()
    expected = [marginal.correlation(kernel(16, xi)) for xi in (2.0, 0.7)]
    np.testing.assert_allclose(mixture.covariances, expected, atol=1e-14)
    np.testing.assert_array_equal(mixture.means, np.zeros((2, 16)))
    np.testing.assert_array_equal(mixture.targets, [1, 0])
    assert mixture.marginal == marginal


@given(
    inputs=st.integers(1, 50),
    part=st.tuples(st.floats(1e-3, 1 / 8), st.floats(1e-3, 1 / 8)),
    gain=st.floats(0.01, 100),
)
@settings(max_examples=30)
def test_covariance_is_translation_invariant_on_the_ring(inputs, part, gain):
    task = make(
        inputs=inputs,
        xi=[share * inputs for share in part],
        samples=6,
        marginal={"name": "erf", "gain": gain},
    )
    for covariance in task.mixture().covariances:
        np.testing.assert_array_equal(covariance, covariance.T)
        np.testing.assert_array_equal(covariance, np.roll(covariance, 1, axis=(0, 1)))
        np.testing.assert_allclose(np.diag(covariance), 1)
        assert np.linalg.eigvalsh(covariance).min() > -1e-6
    data = task.load()
    assert data.x.shape == (6, inputs)
    assert np.isfinite(data.x).all()
    np.testing.assert_array_equal(data.y[:, 0], [1, 1, 1, 0, 0, 0])


@given(inputs=st.integers(1, 60), share=st.floats(0.01, 1))
@settings(max_examples=100)
def test_lengths_are_refused_where_the_kernel_is_no_covariance(inputs, share):
    xi = share * inputs
    values = np.linalg.eigvalsh(kernel(inputs, xi))
    lowest = values.min() / values.max() / np.finfo(np.float32).eps
    assume(abs(lowest + 1) > 1e-3)
    if lowest > -1:
        make(inputs=inputs, xi=[xi, xi / 10])
    else:
        assert xi > inputs / 8  # the remedy in the message works
        parameters = {"inputs": inputs, "xi": [xi / 10, xi]}
        check_refusal(make, parameters, "xi", "is too long for a ring ... or more inputs")


def test_limit_of_lengths_for_forty_inputs():
    make(xi=[5.44, 1])
    words = "xi: 5.5: ... 40 inputs ... eigenvalue -1.52e-06; use a length up to 5, or more inputs"
    check_refusal(make, {"xi": [1, 5.5]}, "xi", words)
    make(xi=[1, 5.5], inputs=44)


def test_targets_and_seed_are_used():
    task = make(targets=[-2.0, 3.5], samples=10)
    np.testing.assert_array_equal(task.load().y[:, 0], [-2.0] * 5 + [3.5] * 5)
    np.testing.assert_array_equal(task.mixture().targets, [-2, 3.5])
    other = make(samples=10, seed=1).load().x
    assert not (task.load().x == other).any()
    assert make().load().x.shape == (2000, 40)


# New samples ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gain 3", "gaussian", "ising", "laplace"])
def test_new_samples_have_the_distribution_of_the_fixed_sample(name):
    marginal = MARGINALS[name]
    task = make(
        inputs=16,
        xi=[2.0, 0.7],
        targets=[3, -1],
        marginal=json.loads(marginal.model_dump_json()),
    )
    with jax.enable_x64(True):
        x, y = map(np.asarray, jax.jit(task.sampler(), static_argnums=1)(jax.random.key(0), 20_000))
    assert x.dtype == y.dtype == np.float64
    assert x.shape == (20_000, 16)
    assert y.shape == (20_000, 1)
    one = y[:, 0] == 3
    assert (y[~one] == -1).all()
    assert abs(one.mean() - 1 / 2) < 4.5 * np.sqrt(1 / 4 / len(y))
    halves = np.split(fixed(marginal.model_dump_json()).x, 2)
    for fresh, half, covariance in zip(
        (x[one], x[~one]), halves, task.mixture().covariances, strict=True
    ):
        assert largest_deviation(fresh, covariance) < 5
        assert largest_deviation(half, covariance) < 5
        fourth = (fresh**4).mean(axis=1)
        error = fourth.std() / np.sqrt(len(fresh))
        assert abs(fourth.mean() - 3 - marginal.kurtosis) < 4.5 * error + 1e-12


def test_new_samples_depend_on_their_key_in_single_precision():
    task = make()
    draw = jax.jit(jax.vmap(task.sampler(), (0, None)), static_argnums=1)
    keys = jax.random.split(jax.random.key(3), 2)
    (x, y), (again, _) = draw(keys, 50), draw(keys, 50)
    assert x.shape == (2, 50, 40)
    assert y.shape == (2, 50, 1)
    assert x.dtype == y.dtype == np.float32
    np.testing.assert_array_equal(x, again)
    assert (x[0] != x[1]).any(axis=-1).all()
    alone, _ = task.sampler()(keys[1], 50)
    np.testing.assert_allclose(x[1], alone, atol=1e-4)
    assert {0.0, 1.0} == set(np.asarray(y).flat)


def test_default_length_keeps_the_covariance_of_the_kernel():
    """With 40 inputs and xi = 5, some eigenvalues are set to zero, without a visible effect."""
    with jax.enable_x64(True):
        draw = jax.jit(make(marginal={"name": "gaussian"}).sampler(), static_argnums=1)
        x, y = map(np.asarray, draw(jax.random.key(1), 20_000))
    for target, xi in ((1, 5), (0, 1)):
        assert largest_deviation(x[y[:, 0] == target], kernel(40, xi)) < 5


# Configuration ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"xi": [0, 1]}, "xi", "0.0: is no correlation length ... 40 inputs; use a length above 0"),
        ({"xi": [1, -2.5]}, "xi", "-2.5: is no correlation length"),
        ({"xi": [40.5, 1]}, "xi", "40.5: is no correlation length ... up to 5"),
        ({"xi": [8, 1]}, "xi", "8.0: is too long ... eigenvalue -0.00217"),
        ({"xi": [1.0]}, "xi.1", "required"),
        ({"samples": 3}, "samples", "multiple of 2"),
        ({"samples": 0}, "samples", "greater than 0"),
        ({"inputs": 0}, "inputs", "greater than 0"),
        ({"marginal": {"name": "erf", "gain": 0}}, "marginal.erf.gain", "must be at least 1e-06"),
        ({"marginal": {"name": "erf", "gain": -3}}, "marginal.erf.gain", "must be at least 1e-06"),
        ({"marginal": {"name": "erf", "convention": "root"}}, "marginal.erf.convention", "erf"),
        ({"marginal": {"name": "ising", "gain": 3}}, "marginal.ising.gain", "unknown key"),
        ({"marginal": {"name": "cauchy"}}, "marginal", "cauchy"),
    ],
)
def test_invalid_configuration_is_refused(changes, key, words):
    check_refusal(make, changes, key, words)


def test_configuration_loads_neither_jax_nor_scipy():
    code = (
        "import sys; from neuralrace.datasets.nonlinear_gaussian import NonlinearGaussian as N;"
        "N(name='nonlinear_gaussian').canonical();"
        "print([name for name in ('jax', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
