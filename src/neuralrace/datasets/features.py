"""Image features: pixels, principal components or random convolutions as inputs of a network."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from neuralrace.datasets.pixel_domains import PixelDomains, batches
from neuralrace.datasets.random_streams import generator
from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel


class Features(ConfigModel, ABC):
    """A map from standardised pixels to inputs, the same for all input domains."""

    @abstractmethod
    def inputs(self, shape: tuple[int, int, int]) -> int:
        """Number of inputs.

        Args:
            shape: channels, rows and columns of an image.

        Raises:
            UserError: images of this shape are too small for the features.
        """

    @abstractmethod
    def fit(self, domains: PixelDomains) -> dict[str, np.ndarray]:
        """Arrays of the map, estimated from the training images."""

    @abstractmethod
    def of(self, fitted: Mapping[str, Any], pixels: Any) -> Any:
        """The inputs of a network for some images; JAX-traceable.

        Args:
            fitted: arrays from `fit`, in the precision of `pixels`.
            pixels: standardised pixels (domain, image, pixel).

        Returns:
            (domain, image, input).
        """

    def after(self, fitted: Mapping[str, np.ndarray], affine: Any) -> Any:
        """Matrix of an affine map followed by this map; None where this map is not affine.

        Args:
            fitted: arrays from `fit`.
            affine: matrix (pixel, raw) from raw pixels to standardised pixels; its last column
                multiplies the constant 1.

        Returns:
            Matrix (input, raw).
        """
        return None


class Pixels(Features):
    """Standardised pixels; one mean and one scale for all pixels keep the contrast of images."""

    name: Literal["pixels"]

    def inputs(self, shape: tuple[int, int, int]) -> int:
        """All pixels of all channels."""
        return int(np.prod(shape))

    def fit(self, domains: PixelDomains) -> dict[str, np.ndarray]:
        """No arrays."""
        return {}

    def of(self, fitted: Mapping[str, Any], pixels: Any) -> Any:
        """The pixels themselves."""
        return pixels

    def after(self, fitted: Mapping[str, np.ndarray], affine: Any) -> Any:
        """The affine map itself."""
        return affine


class PrincipalComponents(Features):
    """Leading principal components of the training images in all input domains together.

    One basis serves all domains. Components are centred on the mean image of all domains and share
    one scale, which gives them unit variance on average; they are not whitened.
    """

    name: Literal["principal_components"]
    count: Annotated[int, Field(ge=1)]
    """Number of components, those of largest variance."""

    def inputs(self, shape: tuple[int, int, int]) -> int:
        """The number of components."""
        if self.count > np.prod(shape):
            raise UserError(
                f"images of {np.prod(shape)} pixels have no more components than pixels",
                key="features.count",
                value=self.count,
                remedy=f"use up to {np.prod(shape)}",
            )
        return self.count

    def fit(self, domains: PixelDomains) -> dict[str, np.ndarray]:
        """Projection (pixel, component), and the mean of the projected images of all domains."""
        mean, second = domains.pooled
        values, vectors = np.linalg.eigh(second - np.outer(mean, mean))
        leading = vectors[:, ::-1][:, : self.count]
        largest = np.abs(leading).argmax(axis=0)
        # the sign of an eigenvector is arbitrary: a positive largest entry makes it reproducible
        leading = leading * np.sign(leading[largest, np.arange(self.count)])
        projection = leading / np.sqrt(values[::-1][: self.count].mean())
        return {"projection": projection, "centre": mean @ projection}

    def of(self, fitted: Mapping[str, Any], pixels: Any) -> Any:
        """The components."""
        return pixels @ fitted["projection"] - fitted["centre"][None, None]

    def after(self, fitted: Mapping[str, np.ndarray], affine: Any) -> Any:
        """The projected affine map, with the centre subtracted from the column of the constant."""
        matrix = fitted["projection"].T @ affine
        matrix[:, -1] -= fitted["centre"]
        return matrix


class RandomConvolutions(Features):
    """Rectified responses of random filters, averaged over the cells of a grid.

    Filter weights are normal, and filters slide over all positions inside the standardised image.
    Responses are rectified and averaged over each cell of a grid that divides these positions as
    evenly as possible. Every feature is centred, and all share one scale, which gives them unit
    variance on average. Centres and scale come from the untransformed training images; nothing is
    learned.
    """

    name: Literal["random_convolutions"]
    filters: Annotated[int, Field(ge=1)] = 64
    """Number of filters; each gives one input for every cell."""
    size: Annotated[int, Field(ge=1)] = 5
    """Side of a filter in pixels; a filter covers all channels."""
    pool: Annotated[int, Field(ge=1)] = 2
    """Side of the grid in cells."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the filters."""

    def inputs(self, shape: tuple[int, int, int]) -> int:
        """One input for each filter and cell."""
        side = min(shape[1:])
        if self.size > side:
            raise UserError(
                f"images have {side} pixels along a side, too few for the filters",
                key="features.size",
                value=self.size,
                remedy=f"use up to {side}",
            )
        positions = side - self.size + 1
        if self.pool > positions:
            raise UserError(
                f"filters of size {self.size} have {positions} positions along a side",
                key="features.pool",
                value=self.pool,
                remedy=f"use up to {positions}, or smaller filters",
            )
        return self.filters * self.pool**2

    def fit(self, domains: PixelDomains) -> dict[str, np.ndarray]:
        """Filters (filter, channel, row, column), averages over cells, and centres (input,)."""
        import jax
        import jax.numpy as jnp

        channels, rows, columns = domains.images.shape
        draws = generator(self.seed, "filters")
        unscaled = {
            "filters": draws.normal(size=(self.filters, channels, self.size, self.size)),
            "row_cells": _cells(rows - self.size + 1, self.pool),
            "column_cells": _cells(columns - self.size + 1, self.pool),
        }
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            arrays = {name: jnp.asarray(value) for name, value in unscaled.items()}

            @jax.jit
            def sums(pixels: Any) -> tuple[Any, Any]:
                x = _responses(arrays, domains.standardised(pixels.astype(float))[None])[0]
                return x.sum(axis=0), (x**2).sum(axis=0)

            images = batches(domains.images.pixels, domains.images.labels)
            parts = [sums(jnp.asarray(pixels)) for pixels, _ in images]
            total, squares = (np.sum(np.array(part), axis=0) for part in zip(*parts, strict=True))
        items = len(domains.images.pixels)
        centre = total / items
        deviation = np.sqrt((squares / items - centre**2).mean())
        # rectification commutes with positive factors, so the filters can absorb the scale
        scaled = {"filters": unscaled["filters"] / deviation, "centre": centre / deviation}
        return unscaled | scaled

    def of(self, fitted: Mapping[str, Any], pixels: Any) -> Any:
        """Centred responses: filter by filter, for each the cells row by row."""
        return _responses(fitted, pixels) - fitted["centre"][None, None]


def _cells(positions: int, pool: int) -> Float[np.ndarray, "cell position"]:
    """Matrix of averages over the parts of a side, whose lengths differ by at most one."""
    cells = np.zeros((pool, positions))
    for cell, inside in zip(cells, np.array_split(np.arange(positions), pool), strict=True):
        cell[inside] = 1 / len(inside)
    return cells


def _responses(fitted: Mapping[str, Any], pixels: Any) -> Any:
    """Rectified responses to standardised pixels, averaged over cells (domain, image, input)."""
    import jax
    import jax.numpy as jnp

    filters, rows, columns = (fitted[name] for name in ("filters", "row_cells", "column_cells"))
    _, channels, *size = filters.shape
    shape = (channels, rows.shape[1] + size[0] - 1, columns.shape[1] + size[1] - 1)
    # channels last: inside a loop on CPUs, the other order takes ten times as long
    images = jnp.moveaxis(pixels.reshape(-1, *shape), 1, -1)
    kernels = jnp.moveaxis(filters, (0, 1), (3, 2))
    order = ("NHWC", "HWIO", "NHWC")
    responses = jax.lax.conv_general_dilated(images, kernels, (1, 1), "VALID", None, None, order)
    over_rows = jnp.einsum("nrcf,ir->nicf", jnp.maximum(responses, 0), rows)
    cells = jnp.einsum("nicf,jc->nfij", over_rows, columns)
    return cells.reshape(*pixels.shape[:2], -1)
