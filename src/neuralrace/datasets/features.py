"""What a network sees of images: their pixels, principal components, random convolutions."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from neuralrace.datasets.pixel_domains import PixelDomains, batches
from neuralrace.datasets.random_streams import generator
from neuralrace.extensions.model import ConfigModel


class Features(ConfigModel, ABC):
    """A map from standardised pixels to inputs, the same in all input domains."""

    @abstractmethod
    def inputs(self, shape: tuple[int, int, int]) -> int:
        """Number of inputs.

        Args:
            shape: channels, rows and columns of an image.

        Raises:
            ValueError: images of this shape have no such features.
        """

    @abstractmethod
    def fit(self, domains: PixelDomains) -> dict[str, np.ndarray]:
        """Arrays of the map, from the training images."""

    @abstractmethod
    def of(self, fitted: Mapping[str, Any], pixels: Any) -> Any:
        """The inputs; JAX-traceable.

        Args:
            fitted: arrays from `fit`, in the precision of the pixels.
            pixels: standardised pixels (domain, image, pixel).

        Returns:
            (domain, image, input).
        """

    def after(self, fitted: Mapping[str, np.ndarray], affine: Any) -> Any:
        """The matrix of this map after an affine one; None where this map is not affine.

        Args:
            fitted: arrays from `fit`.
            affine: matrix (pixel, raw) to standardised pixels; its last column is for the
                constant 1.

        Returns:
            Matrix (input, raw).
        """
        return None


class Pixels(Features):
    """Standardised pixels, two numbers for all of them: they keep their contrast."""

    name: Literal["pixels"]

    def inputs(self, shape: tuple[int, int, int]) -> int:
        """All pixels of all channels."""
        return int(np.prod(shape))

    def fit(self, domains: PixelDomains) -> dict[str, np.ndarray]:
        """Nothing to fit."""
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
    """Components, those of largest variance."""

    def inputs(self, shape: tuple[int, int, int]) -> int:
        """The components."""
        if self.count > np.prod(shape):
            raise ValueError(
                f"features.count: {self.count}: images of {np.prod(shape)} pixels have at most as "
                "many components; use fewer"
            )
        return self.count

    def fit(self, domains: PixelDomains) -> dict[str, np.ndarray]:
        """Projection (pixel, component), and where it takes the mean image of all domains."""
        mean, second = domains.pooled
        values, vectors = np.linalg.eigh(second - np.outer(mean, mean))
        leading = vectors[:, ::-1][:, : self.count]
        largest = np.abs(leading).argmax(axis=0)
        # an eigenvector's sign is arbitrary: the largest entry is positive, on every machine
        leading = leading * np.sign(leading[largest, np.arange(self.count)])
        projection = leading / np.sqrt(values[::-1][: self.count].mean())
        return {"projection": projection, "centre": mean @ projection}

    def of(self, fitted: Mapping[str, Any], pixels: Any) -> Any:
        """The components."""
        return pixels @ fitted["projection"] - fitted["centre"][None, None]

    def after(self, fitted: Mapping[str, np.ndarray], affine: Any) -> Any:
        """Components of the pixels, with the centre taken off the constant."""
        matrix = fitted["projection"].T @ affine
        matrix[:, -1] -= fitted["centre"]
        return matrix


class RandomConvolutions(Features):
    """Rectified responses of random filters, averaged over the cells of a grid.

    Filters are normal, and slide over all places where they fit into the standardised image.
    Responses are rectified, then averaged over each cell of a grid that divides these places as
    evenly as can be. Every feature is centred, and all share one scale, which gives them unit
    variance on average; both are taken from all untransformed training images. Nothing is learned.
    """

    name: Literal["random_convolutions"]
    filters: Annotated[int, Field(ge=1)] = 64
    """Filters; each gives one input for every cell."""
    size: Annotated[int, Field(ge=1)] = 5
    """Side of a filter, in pixels; it sees all channels."""
    pool: Annotated[int, Field(ge=1)] = 2
    """Side of the grid, in cells."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the filters."""

    def inputs(self, shape: tuple[int, int, int]) -> int:
        """One for each filter and cell."""
        side = min(shape[1:])
        if self.size > side:
            raise ValueError(
                f"features.size: {self.size}: images have {side} pixels along a side and hold no "
                f"such filter; use up to {side}"
            )
        places = side - self.size + 1
        if self.pool > places:
            raise ValueError(
                f"features.pool: {self.pool}: filters of size {self.size} have {places} places "
                f"along a side; use up to {places}, or smaller filters"
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

            shown = batches(domains.images.pixels, domains.images.labels)
            found = [sums(jnp.asarray(pixels)) for pixels, _ in shown]
            total, squares = (np.sum(np.array(part), axis=0) for part in zip(*found, strict=True))
        items = len(domains.images.pixels)
        centre = total / items
        deviation = np.sqrt((squares / items - centre**2).mean())
        # rectification keeps positive factors, so that the scale can stand in the filters
        scaled = {"filters": unscaled["filters"] / deviation, "centre": centre / deviation}
        return unscaled | scaled

    def of(self, fitted: Mapping[str, Any], pixels: Any) -> Any:
        """Centred responses; filters outermost, then the cells row by row."""
        return _responses(fitted, pixels) - fitted["centre"][None, None]


def _cells(places: int, pool: int) -> Float[np.ndarray, "cell place"]:
    """Averages over as equal parts of a side as can be."""
    cells = np.zeros((pool, places))
    for cell, inside in zip(cells, np.array_split(np.arange(places), pool), strict=True):
        cell[inside] = 1 / len(inside)
    return cells


def _responses(fitted: Mapping[str, Any], pixels: Any) -> Any:
    """Rectified responses to standardised pixels, averaged over cells (domain, image, input)."""
    import jax
    import jax.numpy as jnp

    filters, rows, columns = (fitted[name] for name in ("filters", "row_cells", "column_cells"))
    _, channels, *size = filters.shape
    shape = (channels, rows.shape[1] + size[0] - 1, columns.shape[1] + size[1] - 1)
    # channels last: in a loop on processors the other order takes ten times as long
    images = jnp.moveaxis(pixels.reshape(-1, *shape), 1, -1)
    kernels = jnp.moveaxis(filters, (0, 1), (3, 2))
    order = ("NHWC", "HWIO", "NHWC")
    responses = jax.lax.conv_general_dilated(images, kernels, (1, 1), "VALID", None, None, order)
    over_rows = jnp.einsum("nrcf,ir->nicf", jnp.maximum(responses, 0), rows)
    cells = jnp.einsum("nicf,jc->nfij", over_rows, columns)
    return cells.reshape(*pixels.shape[:2], -1)
