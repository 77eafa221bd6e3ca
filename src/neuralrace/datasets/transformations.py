"""Linear transformations of images: rotations and permutations of pixels."""

import numpy as np
from jaxtyping import Float, Int

from neuralrace.datasets.random_streams import generator

Taps = tuple[Int[np.ndarray, "domain pixel tap"], Float[np.ndarray, "domain pixel tap"]]
"""Indices and weights of the raw pixels whose sum is each transformed pixel."""


def rotations(shape: tuple[int, int, int], degrees: Float[np.ndarray, " domain"]) -> Taps:
    """Rotations about the centre of the image, by bilinear interpolation.

    A pixel whose source lies outside the image is zero. For square images, rotations by multiples
    of a right angle are exact permutations of the pixels.

    Args:
        shape: channels, rows and columns.
        degrees: angle of each domain, counter-clockwise when row 0 is at the top.

    Returns:
        Taps and weights, four for each pixel, which are in the same channel.
    """
    from scipy.special import cosdg, sindg  # exact at right angles, unlike cos and sin of radians

    channels, rows, columns = shape
    centre = np.array([rows - 1, columns - 1])[:, None] / 2
    position = np.indices((rows, columns)).reshape(2, -1)
    taps, weights = [], []
    for angle in degrees:
        cos, sin = cosdg(angle), sindg(angle)
        source = np.array([[cos, sin], [-sin, cos]]) @ (position - centre) + centre
        inside = ((source >= 0) & (source <= 2 * centre)).all(axis=0)
        corner = np.floor(source)
        fraction = source - corner
        pixel_taps, pixel_weights = [], []
        for step in np.ndindex(2, 2):
            row, column = np.clip(corner + np.array(step)[:, None], 0, 2 * centre)
            weight = np.where(np.array(step)[:, None], fraction, 1 - fraction).prod(axis=0)
            pixel_taps.append(row * columns + column)
            pixel_weights.append(weight * inside)
        taps.append(np.stack(pixel_taps, axis=1))
        weights.append(np.stack(pixel_weights, axis=1))
    first = rows * columns * np.arange(channels)[:, None, None]  # first pixel of each channel
    return (
        np.stack([(first + tap).reshape(-1, 4) for tap in taps]).astype(np.int32),
        np.stack([np.tile(weight, (channels, 1)) for weight in weights]),
    )


def pixel_permutations(pixels: int, domains: int, seed: int) -> Taps:
    """Independent random permutations of all pixels, with one tap for each pixel.

    Args:
        pixels: number of pixels of an image, over all channels.
        domains: number of permutations.
        seed: seed of the draws.
    """
    orders = [
        generator(seed, f"pixels of input domain {domain}").permutation(pixels)
        for domain in range(domains)
    ]
    return _one_tap(np.stack(orders))


def identities(pixels: int, domains: int) -> Taps:
    """No transformation; one tap for each pixel."""
    return _one_tap(np.tile(np.arange(pixels), (domains, 1)))


def _one_tap(sources: Int[np.ndarray, "domain pixel"]) -> Taps:
    taps = sources[:, :, None].astype(np.int32)
    return taps, np.ones(taps.shape)
