"""Images by domain: inputs transformed, classes renamed."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from neuralrace.datasets.base import MOST_NUMBERS, DomainDataset, Domains
from neuralrace.datasets.features import Features
from neuralrace.datasets.pixel_domains import PixelDomains, RawMoments, batches, raw_moments
from neuralrace.datasets.second_moments import eigenmodes
from neuralrace.errors import UserError


@dataclass(frozen=True)
class Moments:
    """Averages over images, with classes under their own names."""

    sigma_xx: Float[np.ndarray, "domain input input"]
    """Input correlation <x_i x_i^T> of every input domain."""
    sigma_yx: Float[np.ndarray, "domain class input"]
    """Correlation <y x_i^T> of the one-hot class with the input, of every input domain."""

    @cached_property
    def modes(
        self,
    ) -> tuple[Float[np.ndarray, "domain mode"], Float[np.ndarray, "domain input mode"]]:
        """Eigenvalues of sigma_xx, ascending, 0 where rounding; eigenvectors in columns."""
        modes = [eigenmodes(each, "sigma_xx") for each in self.sigma_xx]
        values, vectors, _ = zip(*modes, strict=True)
        return np.stack(values), np.stack(vectors)


@dataclass(frozen=True)
class ImageDomains(PixelDomains):
    """Images in every input domain, and the names of their classes in every output domain.

    Datum (i, j, n) shows image n through transformation i and asks for its class as output domain
    j calls it. `Moments` hold what squared error depends on, whatever the number of images.
    """

    renamed: Int[np.ndarray, "domain class"]
    """Output that stands for each class, in every output domain."""
    features: Features
    """What networks see of an image."""

    @property
    def inputs(self) -> int:
        """Inputs of every input domain."""
        return self.features.inputs(self.images.shape)

    @property
    def outputs(self) -> int:
        """Outputs of every output domain, one a class."""
        return self.renamed.shape[1]

    @property
    def items(self) -> int:
        """Training images."""
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
        """Averages over the images held out, with features and units of the training images."""
        return self._moments(self.images.held_out_pixels, self.images.held_out_labels)

    def arrays(self) -> dict[str, np.ndarray]:
        """What `show` and training need, to be put on the device.

        Returns:
            pixels (image, pixel) and labels (image,); held_out_pixels and held_out_labels; taps and
            tap_weights (domain, pixel, tap); renamed (domain, class); arrays of the features.
        """
        return {
            "pixels": self.images.pixels,
            "labels": self.images.labels,
            "held_out_pixels": self.images.held_out_pixels,
            "held_out_labels": self.images.held_out_labels,
            "taps": self.taps,
            "tap_weights": self.tap_weights,
            "renamed": self.renamed,
        } | self.fitted

    def show(self, arrays: Mapping[str, Any], pixels: Any) -> Any:
        """Inputs of images in every input domain; JAX-traceable.

        All of (domain, image, pixel) is in memory at once: show a batch.

        Args:
            arrays: those of `arrays`; the domains shown are those of its taps.
            pixels: raw pixels (image, pixel).

        Returns:
            (domain, image, input), in the precision of arrays["tap_weights"].
        """
        weights = arrays["tap_weights"]
        fitted = {name: arrays[name].astype(weights.dtype) for name in self.fitted}
        return self.features.of(fitted, self.transformed(arrays["taps"], weights, pixels))

    def spelled_out(self) -> Domains:
        """Inputs of the training images and one-hot targets, in every domain.

        Raises:
            UserError: these are too many numbers.
        """
        import jax
        import jax.numpy as jnp

        numbers = self.count * self.items * (self.inputs + self.outputs)
        if numbers > MOST_NUMBERS:
            raise UserError(
                f"dataset.count: {self.count}: {self.items} images in {self.count} domains are "
                f"{numbers:.1e} numbers, and at most {MOST_NUMBERS:.0e} are written out; use a "
                "routing network, which needs their moments only, or fewer domains or "
                "`images.samples`"
            )
        inputs = np.empty((self.count, self.items, self.inputs))
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            arrays = {name: jnp.asarray(value) for name, value in self.arrays().items()}
            show = jax.jit(self.show)
            first = 0
            for pixels, _ in batches(self.images.pixels, self.images.labels):
                inputs[:, first : first + len(pixels)] = show(arrays, jnp.asarray(pixels))
                first += len(pixels)
        named = self.renamed[:, self.images.labels]
        return Domains(inputs=inputs, targets=np.eye(self.outputs)[named])

    def _moments(self, pixels: np.ndarray, labels: np.ndarray) -> Moments:
        """Averages over images: in closed form where inputs are affine in pixels, else summed."""
        moments = Moments(
            sigma_xx=np.empty((self.count, self.inputs, self.inputs)),
            sigma_yx=np.empty((self.count, self.outputs, self.inputs)),
        )
        if self.features.after(self.fitted, self.affine(0)) is None:
            self._sum(moments, pixels, labels)
        else:
            known = pixels is self.images.pixels  # training images have theirs at hand
            self._transform(moments, self.raw if known else raw_moments(pixels, labels))
        return moments

    def _transform(self, moments: Moments, raw: RawMoments) -> None:
        """Moments after the affine map of each domain."""
        for domain in range(self.count):
            matrix = self.features.after(self.fitted, self.affine(domain))
            moments.sigma_xx[domain] = matrix @ (matrix @ raw.joint).T
            moments.sigma_yx[domain] = (matrix @ raw.by_class.T).T

    def _sum(self, moments: Moments, pixels: np.ndarray, labels: np.ndarray) -> None:
        """Moments as averages over images, in double precision."""
        import jax
        import jax.numpy as jnp

        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            fitted = {name: jnp.asarray(value) for name, value in self.fitted.items()}

            @jax.jit
            def sums(taps: Any, weights: Any, pixels: Any, classes: Any) -> tuple[Any, Any]:
                arrays = fitted | {"taps": taps, "tap_weights": weights}
                x = self.show(arrays, pixels)[0]
                return x.T @ x, classes.T @ x

            for domain in range(self.count):
                one = slice(domain, domain + 1)
                here = jnp.asarray(self.taps[one]), jnp.asarray(self.tap_weights[one])
                xx, yx = 0.0, 0.0
                for shown, classes in batches(pixels, labels):
                    more = sums(*here, jnp.asarray(shown), jnp.asarray(classes))
                    xx, yx = xx + more[0], yx + more[1]
                moments.sigma_xx[domain] = np.asarray(xx) / len(pixels)
                moments.sigma_yx[domain] = np.asarray(yx) / len(pixels)


class ImageDomainDataset(DomainDataset, ABC):
    """A dataset that shows images in every input domain, too many to spell out."""

    may_be_white: ClassVar[bool] = False

    @property
    @abstractmethod
    def tested(self) -> int:
        """Images that are held out of training."""

    @abstractmethod
    def image_domains(self) -> ImageDomains:
        """The images, their transformations and names of classes.

        Raises:
            UserError: files are missing or damaged.
        """

    def domains(self) -> Domains:
        """Inputs of the training images and one-hot targets; see `ImageDomains.spelled_out`."""
        return self.image_domains().spelled_out()


@lru_cache(maxsize=1)
def image_domains(dataset: ImageDomainDataset) -> ImageDomains:
    """The images of a dataset; cells that follow each other load and average them once.

    Raises:
        UserError: files are missing or damaged.
    """
    return dataset.image_domains()
