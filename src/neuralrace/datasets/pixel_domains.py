"""Images under the transformation of each input domain, and their pixel moments."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from neuralrace.datasets.images import CLASSES, Images, Labelled
from neuralrace.extensions.representation import short_repr

BATCH = 256
"""Number of images in a batch of a sum over all images."""


@dataclass(frozen=True)
class RawMoments:
    """Averages over untransformed images: pixels from 0 to 255, followed by the constant 1."""

    joint: Float[np.ndarray, "raw raw"]
    """Second moments; the last row holds the mean image."""
    by_class: Float[np.ndarray, "class raw"]
    """Correlation with the one-hot class."""

    __repr__ = short_repr


@dataclass(frozen=True)
class PixelDomains:
    """Images in every input domain; each transformed pixel is a weighted sum of a few raw pixels.

    Pixels are standardised after the transformation, by mean and standard deviation over all pixels
    of all untransformed training images. So the area outside a rotated image is as dark as a raw
    zero.
    """

    images: Images
    taps: Int[np.ndarray, "domain pixel tap"]
    """Indices of the raw pixels in the sum for each transformed pixel."""
    tap_weights: Float[np.ndarray, "domain pixel tap"]
    """Weights of these raw pixels."""

    __repr__ = short_repr

    @property
    def count(self) -> int:
        """Number of input domains, which is also that of output domains."""
        return len(self.taps)

    @cached_property
    def scale_and_offset(self) -> tuple[float, float]:
        """The factor of raw pixels and the number then subtracted, which standardise them."""
        pixels = self.images.pixels
        square = np.einsum("np,np->", pixels, pixels, dtype=np.int64) / pixels.size
        mean = pixels.mean()
        deviation = np.sqrt(square - mean**2)
        return float(1 / deviation), float(mean / deviation)

    def standardised(self, pixels: Any) -> Any:
        """Standardised pixels, from raw pixels of any precision."""
        scale, offset = self.scale_and_offset
        return pixels * scale - offset

    def transformed(self, taps: Any, tap_weights: Any, pixels: Any) -> Any:
        """Standardised pixels in some input domains; JAX-traceable.

        Args:
            taps: (domain, pixel, tap).
            tap_weights: (domain, pixel, tap).
            pixels: raw (image, pixel).

        Returns:
            (domain, image, pixel), in the precision of the weights.
        """
        import jax  # imported here because configuration must load without JAX

        # one row for each pixel of all images: gathering rows is several times faster than entries
        rows = pixels.T.astype(tap_weights.dtype)

        def in_domain(taps: Any, weights: Any) -> Any:
            # tap by tap: gathering all taps at once takes a multiple of the memory
            return sum(rows[taps[:, tap]] * weights[:, tap, None] for tap in range(taps.shape[1]))

        return self.standardised(jax.vmap(in_domain)(taps, tap_weights).swapaxes(1, 2))

    def affine(self, domain: int) -> Any:
        """Sparse matrix (pixel, raw) from raw pixels and the constant 1 to standardised pixels."""
        from scipy.sparse import csr_array  # configuration must load without SciPy

        scale, offset = self.scale_and_offset
        pixels, taps = self.taps.shape[1:]
        constant = np.full((pixels, 1), pixels)
        columns = np.hstack([self.taps[domain], constant])
        values = np.hstack([scale * self.tap_weights[domain], np.full((pixels, 1), -offset)])
        rows = np.repeat(np.arange(pixels), taps + 1)
        return csr_array((values.ravel(), (rows, columns.ravel())), shape=(pixels, pixels + 1))

    @cached_property
    def raw(self) -> RawMoments:
        """Averages over the training images."""
        return raw_moments(self.images.pixels, self.images.labels)

    @cached_property
    def pooled(self) -> tuple[Float[np.ndarray, " pixel"], Float[np.ndarray, "pixel pixel"]]:
        """Mean and second moments of standardised pixels over all input domains."""
        pixels = self.taps.shape[1]
        mean, second = np.zeros(pixels), np.zeros((pixels, pixels))
        for domain in range(self.count):
            affine = self.affine(domain)
            mean += affine @ self.raw.joint[-1] / self.count
            second += affine @ (affine @ self.raw.joint).T / self.count
        return mean, second


def batches(pixels: np.ndarray, labels: np.ndarray) -> Iterator[Labelled]:
    """Batches of images, each with one-hot classes (image, class)."""
    for start in range(0, len(pixels), BATCH):
        batch = slice(start, start + BATCH)
        yield pixels[batch], np.eye(CLASSES)[labels[batch]]


def raw_moments(pixels: np.ndarray, labels: np.ndarray) -> RawMoments:
    """Averages over untransformed images. Sums of whole numbers are exact in any order."""
    joint = np.zeros((pixels.shape[1] + 1,) * 2)
    by_class = np.zeros((CLASSES, len(joint)))
    for batch, classes in batches(pixels, labels):
        raw = np.column_stack([batch.astype(float), np.ones(len(batch))])
        joint += raw.T @ raw
        by_class += classes.T @ raw
    return RawMoments(joint=joint / len(pixels), by_class=by_class / len(pixels))
