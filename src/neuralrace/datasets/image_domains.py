"""Images by domain: transformations in input domains, permuted classes in output domains."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from neuralrace.datasets.base import DomainDataset, Domains, refuse_large_domains
from neuralrace.datasets.features import Features
from neuralrace.datasets.pixel_domains import PixelDomains, batches, raw_moments
from neuralrace.datasets.second_moments import eigenmodes
from neuralrace.extensions.representation import short_repr


@dataclass(frozen=True)
class Moments:
    """Correlations over images, with classes in their original order."""

    sigma_xx: Float[np.ndarray, "domain input input"]
    """Input correlation <x_i x_i^T> of every input domain."""
    sigma_yx: Float[np.ndarray, "domain class input"]
    """Correlation <y x_i^T> of the one-hot class with the input, of every input domain."""

    __repr__ = short_repr

    @cached_property
    def modes(
        self,
    ) -> tuple[Float[np.ndarray, "domain mode"], Float[np.ndarray, "domain input mode"]]:
        """Ascending eigenvalues of sigma_xx, 0 where they are rounding; eigenvectors in columns."""
        modes = [eigenmodes(sigma_xx, "sigma_xx") for sigma_xx in self.sigma_xx]
        values, vectors, _ = zip(*modes, strict=True)
        return np.stack(values), np.stack(vectors)


@dataclass(frozen=True)
class ImageDomains(PixelDomains):
    """Images in every input domain, and the order of their classes in every output domain.

    In sample (i, j, n), input domain i has image n under transformation i, and the target is its
    class in the order of output domain j. Squared error depends on the images only through their
    `Moments`.
    """

    class_order: Int[np.ndarray, "domain class"]
    """Output unit of each class, in every output domain."""
    features: Features
    """Features of an image, which are the inputs of a network."""

    __repr__ = short_repr

    @property
    def inputs(self) -> int:
        """Number of inputs of every input domain."""
        return self.features.inputs(self.images.shape)

    @property
    def outputs(self) -> int:
        """Number of outputs of every output domain, one for each class."""
        return self.class_order.shape[1]

    @property
    def items(self) -> int:
        """Number of training images."""
        return len(self.images.pixels)

    @cached_property
    def fitted(self) -> dict[str, np.ndarray]:
        """Arrays of the features."""
        return self.features.fit(self)

    @cached_property
    def moments(self) -> Moments:
        """Averages over the training images."""
        return self._moments(self.images.pixels, self.images.labels)

    @cached_property
    def held_out_moments(self) -> Moments:
        """Averages over the held-out images, with features and scale of the training images."""
        return self._moments(self.images.held_out_pixels, self.images.held_out_labels)

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays for `network_inputs` and training, which are moved to the device.

        Returns:
            pixels (image, pixel) and labels (image,); held_out_pixels and held_out_labels; taps and
            tap_weights (domain, pixel, tap); class_order (domain, class); arrays of the features.
        """
        return {
            "pixels": self.images.pixels,
            "labels": self.images.labels,
            "held_out_pixels": self.images.held_out_pixels,
            "held_out_labels": self.images.held_out_labels,
            "taps": self.taps,
            "tap_weights": self.tap_weights,
            "class_order": self.class_order,
        } | self.fitted

    def network_inputs(self, arrays: Mapping[str, Any], pixels: Any) -> Any:
        """Inputs of images in every input domain; JAX-traceable.

        An array (domain, image, pixel) has to fit into memory, so call it with a batch of images.

        Args:
            arrays: from `arrays`; its taps may be those of some domains only.
            pixels: raw pixels (image, pixel).

        Returns:
            (domain, image, input), in the precision of arrays["tap_weights"].
        """
        weights = arrays["tap_weights"]
        fitted = {name: arrays[name].astype(weights.dtype) for name in self.fitted}
        return self.features.of(fitted, self.transformed(arrays["taps"], weights, pixels))

    def of_batches(
        self, domain: int, pixels: np.ndarray, labels: np.ndarray
    ) -> Iterator[tuple[Float[np.ndarray, "image input"], Float[np.ndarray, "image class"]]]:
        """Inputs of images in one input domain, and their one-hot classes, batch by batch.

        Args:
            domain: number of the input domain, from 0.
            pixels: raw pixels (image, pixel).
            labels: class of each image.

        Yields:
            Inputs in double precision, and classes in their original order.
        """
        import jax

        one = slice(domain, domain + 1)
        arrays = self.fitted | {"taps": self.taps[one], "tap_weights": self.tap_weights[one]}
        for batch, classes in batches(pixels, labels):
            with jax.enable_x64(True), jax.default_matmul_precision("highest"):
                inputs = np.asarray(self._compiled_inputs(arrays, batch)[0])
            yield inputs, classes  # outside, as callers have a precision of their own

    @cached_property
    def _compiled_inputs(self) -> Callable[[Mapping[str, Any], Any], Any]:
        """`network_inputs`, compiled once for arrays of equal shapes."""
        import jax

        return jax.jit(self.network_inputs)

    def in_memory(self) -> Domains:
        """Inputs of the training images and one-hot targets, in every domain.

        Raises:
            UserError: the arrays would be too large.
        """
        import jax
        import jax.numpy as jnp

        numbers = self.count * self.items * (self.inputs + self.outputs)
        contents = f"{self.items} images in {self.count} domains"
        refuse_large_domains(self.count, numbers, contents)
        inputs = np.empty((self.count, self.items, self.inputs))
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            arrays = {name: jnp.asarray(value) for name, value in self.arrays().items()}
            first = 0
            for pixels, _ in batches(self.images.pixels, self.images.labels):
                inputs[:, first : first + len(pixels)] = self._compiled_inputs(arrays, pixels)
                first += len(pixels)
        classes = self.class_order[:, self.images.labels]
        return Domains(inputs=inputs, targets=np.eye(self.outputs)[classes])

    def _moments(self, pixels: np.ndarray, labels: np.ndarray) -> Moments:
        """Averages over images, from raw moments where inputs are affine functions of pixels."""
        moments = Moments(
            sigma_xx=np.empty((self.count, self.inputs, self.inputs)),
            sigma_yx=np.empty((self.count, self.outputs, self.inputs)),
        )
        if self.features.after(self.fitted, self.affine(0)) is None:
            self._sum(moments, pixels, labels)
            return moments
        # `raw` is cached for the training images
        raw = self.raw if pixels is self.images.pixels else raw_moments(pixels, labels)
        for domain in range(self.count):
            matrix = self.features.after(self.fitted, self.affine(domain))
            moments.sigma_xx[domain] = matrix @ (matrix @ raw.joint).T
            moments.sigma_yx[domain] = (matrix @ raw.by_class.T).T
        return moments

    def _sum(self, moments: Moments, pixels: np.ndarray, labels: np.ndarray) -> None:
        """Fills in moments as averages over images, in double precision."""
        for domain in range(self.count):
            xx, yx = 0.0, 0.0
            for x, classes in self.of_batches(domain, pixels, labels):
                xx, yx = xx + x.T @ x, yx + classes.T @ x
            moments.sigma_xx[domain] = xx / len(pixels)
            moments.sigma_yx[domain] = yx / len(pixels)


class ImageDomainDataset(DomainDataset, ABC):
    """A dataset of images in many domains; its moments replace arrays that would be too large."""

    may_be_white: ClassVar[bool] = False

    @property
    @abstractmethod
    def held_out_count(self) -> int:
        """Number of held-out images."""

    @abstractmethod
    def image_domains(self) -> ImageDomains:
        """The images, their transformations and the order of classes in each output domain.

        Raises:
            UserError: files are missing or damaged.
        """

    def domains(self) -> Domains:
        """Inputs of the training images and one-hot targets; see `ImageDomains.in_memory`."""
        return self.image_domains().in_memory()


@lru_cache(maxsize=1)
def image_domains(dataset: ImageDomainDataset) -> ImageDomains:
    """The images of a dataset; the cache serves successive cells with the same dataset.

    Raises:
        UserError: files are missing or damaged.
    """
    return dataset.image_domains()
