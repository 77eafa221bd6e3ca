"""Transformations of images: taps against SciPy's rotation and against exact permutations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import rotate

from neuralrace.datasets.transformations import identities, pixel_permutations, rotations

SHAPES = [(1, 8, 8), (1, 28, 28), (3, 32, 32), (2, 9, 9), (1, 6, 9)]


def images(shape, seed=0):
    return np.random.default_rng(seed).uniform(0, 255, shape)


def matrices(taps, weights):
    """Dense matrices (domain, pixel, raw pixel), entry by entry."""
    dense = np.zeros((*taps.shape[:2], taps.shape[1]))
    for index in np.ndindex(taps.shape):
        dense[index[0], index[1], taps[index]] += weights[index]
    return dense


def turned(image, *degrees):
    """Rotations of one image (domain, channel, row, column)."""
    taps, weights = rotations(image.shape, np.array(degrees, dtype=float))
    return (image.ravel()[taps] * weights).sum(axis=2).reshape(-1, *image.shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_rotations_agree_with_scipy(shape):
    image = images(shape)
    degrees = [0, 2.7, 13.5, 27, 45, 90, 121.5, 180, 229.5, 256.5, 270, -30, 359, 400]
    for rotated, angle in zip(turned(image, *degrees), degrees, strict=True):
        expected = [
            rotate(channel, angle, reshape=False, order=1, mode="constant", cval=0)
            for channel in image
        ]
        np.testing.assert_allclose(rotated, expected, rtol=0, atol=255e-14)


@given(angle=st.floats(-720, 720), side=st.integers(2, 12))
def test_any_rotation_agrees_with_scipy(angle, side):
    image = images((1, side, side), seed=side)
    expected = rotate(image[0], angle, reshape=False, order=1, mode="constant", cval=0)
    # rounding decides whether a source on the border is inside or outside
    position = np.indices((side, side)).reshape(2, -1) - (side - 1) / 2
    radians = np.deg2rad(angle)
    rotation = [[np.cos(radians), np.sin(radians)], [-np.sin(radians), np.cos(radians)]]
    margin = np.abs(np.abs(rotation @ position).max(axis=0) - (side - 1) / 2).reshape(side, side)
    clear = (margin > 1e-12) | (angle % 90 == 0)
    np.testing.assert_allclose(turned(image, angle)[0, 0][clear], expected[clear], atol=255e-13)


@pytest.mark.parametrize("shape", SHAPES[:4])
def test_right_angles_are_exact_permutations(shape):
    image = images(shape)
    for turns, rotated in enumerate(turned(image, 0, 90, 180, 270, 360)):
        np.testing.assert_array_equal(rotated, np.rot90(image, turns, axes=(1, 2)))
    taps, weights = rotations((1, 7, 7), np.array([90.0]))
    (quarter,) = matrices(taps, weights)
    assert set(quarter.ravel()) == {0, 1}
    np.testing.assert_array_equal(quarter.sum(axis=0), 1)
    np.testing.assert_array_equal(np.linalg.matrix_power(quarter, 4), np.eye(49))


# Cosines of whole degrees are irrational except for multiples of 60 and 90. So no other angle has a
# source on the border, where rounding decides.
@given(angle=st.integers(0, 359), turns=st.integers(0, 3), side=st.integers(2, 9))
@settings(max_examples=50)
def test_rotation_and_quarter_turns_combine(angle, turns, side):
    image = images((2, side, side), seed=side)
    first, both = turned(image, angle, angle + 90 * turns)
    np.testing.assert_allclose(both, np.rot90(first, turns, axes=(1, 2)), atol=255e-13)


@given(angle=st.floats(0, 360), row=st.floats(-2, 2), column=st.floats(-2, 2))
def test_rotation_conserves_the_mass_of_a_bump_in_the_interior(angle, row, column):
    # A sum over any unit lattice gives the mass of this bump to rounding. The interpolation error
    # is at most an eighth of the second differences along rows and along columns, whose sum is
    # 0.97 mass / deviation^2 each. The border is more than four deviations away.
    deviation = 3
    y, x = np.indices((33, 33)) - 16
    bump = np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * deviation**2))[None]
    off = 2 * 0.97 / deviation**2 / 8
    np.testing.assert_allclose(turned(bump, angle).sum(), bump.sum(), rtol=off)


@given(angle=st.floats(0, 360), side=st.integers(2, 9), channels=st.integers(1, 3))
def test_taps_of_rotations_stay_within_channels(angle, side, channels):
    taps, weights = rotations((channels, side, side), np.array([angle]))
    assert taps.dtype == np.int32
    assert taps.shape == weights.shape == (1, channels * side**2, 4)
    assert (weights >= 0).all()
    total = weights.sum(axis=2)
    assert ((np.abs(total - 1) < 1e-12) | (total == 0)).all()
    channel = np.arange(channels * side**2)[None, :, None] // side**2
    np.testing.assert_array_equal(taps // side**2, np.broadcast_to(channel, taps.shape))


@given(pixels=st.integers(1, 80), domains=st.integers(1, 5), seed=st.integers(0, 2**32))
def test_pixel_permutations_are_permutations(pixels, domains, seed):
    taps, weights = pixel_permutations(pixels, domains, seed)
    assert taps.dtype == np.int32
    np.testing.assert_array_equal(np.sort(taps[:, :, 0], axis=1), [np.arange(pixels)] * domains)
    np.testing.assert_array_equal(weights, np.ones((domains, pixels, 1)))
    more, _ = pixel_permutations(pixels, domains + 1, seed)
    np.testing.assert_array_equal(more[:-1], taps)


def test_permutations_differ_by_domain_and_seed():
    (first, second), _ = pixel_permutations(64, 2, 0)
    (other, _), _ = pixel_permutations(64, 2, 1)
    # two random permutations agree at one position on average, and at 8 once in a million
    for a, b in ((first, second), (first, other), (first[:, 0], np.arange(64))):
        assert (a == b).sum() < 8


def test_identities_are_identities():
    np.testing.assert_array_equal(matrices(*identities(5, 2)), [np.eye(5)] * 2)
