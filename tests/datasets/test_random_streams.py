"""Normal numbers of JAX keys: their law, in single and in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from neuralrace.datasets.random_streams import normal_quantile, standard_normal

SHAPE = 50_000, 40


@pytest.fixture(scope="module")
def numbers():
    """Two million numbers in single precision, and as many of another key."""
    draw = jax.jit(jax.vmap(standard_normal, (0, None)), static_argnums=1)
    return np.asarray(draw(jax.random.split(jax.random.key(7), 2), SHAPE))


def test_quantiles_are_exact_to_rounding_for_all_random_bits():
    x = (2 * np.arange(2**23) + 1 - 2**23) / 2**23
    computed = np.asarray(normal_quantile(jnp.asarray(x, np.float32)))
    assert computed.dtype == np.float32
    # of the smaller tail, which is exact
    exact = np.sign(x) * -special.ndtri((1 - np.abs(x)) / 2)
    assert np.abs(computed / exact - 1).max() < 4e-7
    assert (np.diff(computed) >= -1e-6).all()
    np.testing.assert_array_equal(computed, -computed[::-1])


def test_single_precision_numbers_are_standard_normal(numbers):
    sample = numbers[0].ravel().astype(float)
    assert numbers.dtype == np.float32
    assert stats.kstest(sample, "norm").pvalue > 1e-4
    # far tails, which the largest distance of distributions hardly sees
    for threshold in (2, 3, 4):
        for tail in (sample > threshold, sample < -threshold):
            share = special.ndtr(-threshold)
            assert abs(tail.mean() - share) < 4.5 * np.sqrt(share / sample.size)
    # <z^n>, and <z^2n> for its standard error
    moments = {1: (0, 1), 2: (1, 3), 3: (0, 15), 4: (3, 105), 6: (15, 10395)}
    for power, (mean, second) in moments.items():
        error = np.sqrt((second - mean**2) / sample.size)
        assert abs((sample**power).mean() - mean) < 4.5 * error, power


def test_numbers_of_one_block_of_random_bits_are_independent(numbers):
    first, second = numbers[0].reshape(2, -1).astype(float)
    pairs = {
        "block": (first, second),
        "neighbours": (first[1:], first[:-1]),
        "samples": (numbers[0][1:].ravel(), numbers[0][:-1].ravel()),
        "keys": numbers.reshape(2, -1),
    }
    for name, (one, other) in pairs.items():
        assert not (one == other).all(), name
        for power in (1, 2):
            correlation = stats.pearsonr(one**power, other**power).statistic
            assert abs(correlation) < 4.5 / np.sqrt(len(one)), (name, power)
    # uniform in the unit square, in 32 x 32 parts
    parts = (special.ndtr([first, second]) * 32).astype(int)
    counts = np.bincount(parts[0] * 32 + parts[1], minlength=32**2)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_numbers_of_a_key_are_the_same_each_time_and_of_each_generator():
    key = jax.random.key(3)
    np.testing.assert_array_equal(standard_normal(key, (3, 5)), standard_normal(key, (3, 5)))
    for implementation in ("threefry2x32", "rbg"):
        keys = jax.random.split(jax.random.key(3, impl=implementation), 2)
        one, other = (np.asarray(standard_normal(key, (1001,))) for key in keys)
        assert (one != other).mean() > 0.99
        assert stats.kstest(one, "norm").pvalue > 1e-4


def test_double_precision_numbers_are_those_of_jax():
    with jax.enable_x64(True):
        key = jax.random.key(5)
        numbers = standard_normal(key, (7, 3))
        assert numbers.dtype == np.float64
        np.testing.assert_array_equal(numbers, jax.random.normal(key, (7, 3)))
