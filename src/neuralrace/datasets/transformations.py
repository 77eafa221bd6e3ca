"""Linear transformations of images, as weighted sums of few pixels each."""

import numpy as np
from jaxtyping import Float, Int

from neuralrace.datasets.random_streams import generator

Taps = tuple[Int[np.ndarray, "domain pixel tap"], Float[np.ndarray, "domain pixel tap"]]
"""Which pixels each transformed pixel is a sum of, and with which weights."""


def rotations(shape: tuple[int, int, int], degrees: Float[np.ndarray, " domain"]) -> Taps:
    """Rotations about the centre of the image, by bilinear interpolation.

    Where the pixel looked up lies outside the image, the result is zero. Multiples of a right angle
    are exact permutations of the pixels of a square image.

    Args:
        shape: channels, rows and columns.
        degrees: angle of each domain, counter-clockwise where row 0 is drawn on top.

    Returns:
        Taps and weights, four a pixel; channels never mix.
    """
    from scipy.special import cosdg, sindg  # exact at right angles, unlike radians

    channels, rows, columns = shape
    centre = np.array([rows - 1, columns - 1])[:, None] / 2
    place = np.indices((rows, columns)).reshape(2, -1)
    taps, weights = [], []
    for angle in degrees:
        cos, sin = cosdg(angle), sindg(angle)
        source = np.array([[cos, sin], [-sin, cos]]) @ (place - centre) + centre
        inside = ((source >= 0) & (source <= 2 * centre)).all(axis=0)
        corner = np.floor(source)
        beyond = source - corner
        pixel_taps, pixel_weights = [], []
        for step in np.ndindex(2, 2):
            row, column = np.clip(corner + np.array(step)[:, None], 0, 2 * centre)
            weight = np.where(np.array(step)[:, None], beyond, 1 - beyond).prod(axis=0)
            pixel_taps.append(row * columns + column)
            pixel_weights.append(weight * inside)
        taps.append(np.stack(pixel_taps, axis=1))
        weights.append(np.stack(pixel_weights, axis=1))
    first = rows * columns * np.arange(channels)[:, None, None]  # of each channel
    return (
        np.stack([(first + tap).reshape(-1, 4) for tap in taps]).astype(np.int32),
        np.stack([np.tile(weight, (channels, 1)) for weight in weights]),
    )


def pixel_permutations(pixels: int, domains: int, seed: int) -> Taps:
    """Random permutations of all pixels of all channels, one tap a pixel.

    Args:
        pixels: pixels of an image, those of all channels together.
        domains: number of permutations, each drawn for itself.
        seed: seed of the draws.
    """
    orders = [
        generator(seed, f"pixels of input domain {domain}").permutation(pixels)
        for domain in range(domains)
    ]
    return _one_tap(np.stack(orders))


def identities(pixels: int, domains: int) -> Taps:
    """No transformation, one tap a pixel."""
    return _one_tap(np.tile(np.arange(pixels), (domains, 1)))


def _one_tap(sources: Int[np.ndarray, "domain pixel"]) -> Taps:
    taps = sources[:, :, None].astype(np.int32)
    return taps, np.ones(taps.shape)
