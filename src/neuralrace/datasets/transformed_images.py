"""Transformed images: input domains transform the images, output domains permute the classes."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Int
from pydantic import ConfigDict, Field, model_validator

from neuralrace.datasets.base import Sizes
from neuralrace.datasets.features import Features, Pixels
from neuralrace.datasets.image_domains import ImageDomainDataset, ImageDomains
from neuralrace.datasets.images import CLASSES, ImageSet
from neuralrace.datasets.random_streams import generator
from neuralrace.datasets.transformations import Taps, identities, pixel_permutations, rotations
from neuralrace.errors import UserError
from neuralrace.extensions.registry import ChoiceOf


class TransformedImages(ImageDomainDataset):
    """Transformed images in M input domains, with permuted classes in M output domains.

    Each input domain has its own transformation of the images, and each output domain its own order
    of the classes (Saxe et al. 2022, fig. 7). Every pair of domains has the same images. If initial
    weights are exchangeable within each domain, permuting pixels or labels has no effect on
    learning. So only rotations test what domains share.
    """

    model_config = ConfigDict(defer_build=True)
    example: ClassVar[Mapping[str, Any]] = {
        "count": 2,
        "images": {"name": "digits", "samples": 20},
    }
    name: Literal["transformed_images"]
    images: Annotated[ImageSet, ChoiceOf("datasets")]
    """Image set: its training images, and its held-out images for testing."""
    inputs: Literal["rotation", "pixel_permutation", "identity"] = "rotation"
    """Transformation of input domains: a rotation about the centre, with zeros outside the image; a
    random permutation of all pixels; or none."""
    arc: float = 270.0
    """Range of rotations in degrees: domain i of M is rotated by i/M of it."""
    outputs: Literal["label_permutation", "identity"] = "label_permutation"
    """Order of classes in output domains: a random permutation, or the same in all."""
    features: Annotated[Features, ChoiceOf("datasets")] = Pixels(name="pixels")
    """Features of an image, which are the inputs of a network."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of permutations."""

    @model_validator(mode="after")
    def _images_are_held_out_and_large_enough(self) -> "TransformedImages":
        if not self.images.held_out_count:
            raise UserError(
                f"all images of {self.images.name} are used for training, and none is left for "
                "testing",
                key="images.samples",
                value=self.images.samples,
                remedy="use fewer",
            )
        self.features.inputs(self.images.shape)
        return self

    @property
    def sizes(self) -> Sizes:
        """Inputs are features, outputs are classes."""
        return Sizes(self.images.samples, self.features.inputs(self.images.shape), CLASSES)

    @property
    def held_out_count(self) -> int:
        """See `ImageDomainDataset.held_out_count`."""
        return self.images.held_out_count

    def image_domains(self) -> ImageDomains:
        """See `ImageDomainDataset.image_domains`."""
        taps, tap_weights = self._taps()
        return ImageDomains(
            images=self.images.images(),
            taps=taps,
            tap_weights=tap_weights,
            class_order=self._class_order(),
            features=self.features,
        )

    def _taps(self) -> Taps:
        """Transformations of the input domains."""
        pixels = int(np.prod(self.images.shape))
        match self.inputs:
            case "rotation":
                degrees = self.arc * np.arange(self.count) / self.count
                return rotations(self.images.shape, degrees)
            case "pixel_permutation":
                return pixel_permutations(pixels, self.count, self.seed)
            case "identity":
                return identities(pixels, self.count)

    def _class_order(self) -> Int[np.ndarray, "domain class"]:
        """Output unit of each class, in every output domain."""
        if self.outputs == "identity":
            return np.tile(np.arange(CLASSES, dtype=np.int32), (self.count, 1))
        orders = [
            generator(self.seed, f"labels of output domain {domain}").permutation(CLASSES)
            for domain in range(self.count)
        ]
        return np.stack(orders).astype(np.int32)
