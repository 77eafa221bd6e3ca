"""Images under the transformation of each input domain, pixel by pixel."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from neuralrace.datasets.images import CLASSES, Images, Labelled

BATCH = 256
"""Images that sums over all images take at once."""


@dataclass(frozen=True)
class RawMoments:
    """Averages over untransformed images, their pixels from 0 to 255, then the constant 1."""

    joint: Float[np.ndarray, "raw raw"]
    """Second moments; the last row holds the mean image."""
    by_class: Float[np.ndarray, "class raw"]
    """Correlation with the one-hot class."""


@dataclass(frozen=True)
class PixelDomains:
    """Images in every input domain, each pixel a weighted sum of few pixels of the image.

    Pixels are standardised after the transformation, by mean and standard deviation over all pixels
    of all untransformed training images: what lies outside an image is as dark as raw zeros.
    """

    images: Images
    taps: Int[np.ndarray, "domain pixel tap"]
    """Pixels of the image that a transformed pixel is a sum of."""
    tap_weights: Float[np.ndarray, "domain pixel tap"]
    """Weights of this sum."""

    @property
    def count(self) -> int:
        """Input domains, and as many output domains."""
        return len(self.taps)

    @cached_property
    def scale_and_offset(self) -> tuple[float, float]:
        """What raw pixels are multiplied by, and what is then taken off, to standardise them."""
        pixels = self.images.pixels
        square = np.einsum("np,np->", pixels, pixels, dtype=np.int64) / pixels.size
        mean = pixels.mean()
        deviation = np.sqrt(square - mean**2)
        return float(1 / deviation), float(mean / deviation)

    def standardised(self, pixels: Any) -> Any:
        """Raw pixels, as numbers of any precision, in standard units."""
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
        import jax  # only where images are shown; configuration must load without JAX

        # a pixel of all images is one row: rows are gathered several times faster than numbers
        rows = pixels.T.astype(tap_weights.dtype)

        def in_domain(taps: Any, weights: Any) -> Any:
            # tap by tap: all taps at once would take as many times the memory
            return sum(rows[taps[:, tap]] * weights[:, tap, None] for tap in range(taps.shape[1]))

        return self.standardised(jax.vmap(in_domain)(taps, tap_weights).swapaxes(1, 2))

    def affine(self, domain: int) -> Any:
        """Sparse matrix (pixel, raw) from raw pixels and the constant 1 to standardised ones."""
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
        """Mean and second moments of standardised pixels over all input domains together."""
        pixels = self.taps.shape[1]
        mean, second = np.zeros(pixels), np.zeros((pixels, pixels))
        for domain in range(self.count):
            affine = self.affine(domain)
            mean += affine @ self.raw.joint[-1] / self.count
            second += affine @ (affine @ self.raw.joint).T / self.count
        return mean, second


def batches(pixels: np.ndarray, labels: np.ndarray) -> Iterator[Labelled]:
    """Images and one-hot classes (image, class), some at a time."""
    for start in range(0, len(pixels), BATCH):
        shown = slice(start, start + BATCH)
        yield pixels[shown], np.eye(CLASSES)[labels[shown]]


def raw_moments(pixels: np.ndarray, labels: np.ndarray) -> RawMoments:
    """Averages over untransformed images; sums of whole numbers, exact whatever their order."""
    joint = np.zeros((pixels.shape[1] + 1,) * 2)
    by_class = np.zeros((CLASSES, len(joint)))
    for shown, classes in batches(pixels, labels):
        raw = np.column_stack([shown.astype(float), np.ones(len(shown))])
        joint += raw.T @ raw
        by_class += classes.T @ raw
    return RawMoments(joint=joint / len(pixels), by_class=by_class / len(pixels))
