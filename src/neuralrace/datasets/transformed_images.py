"""Natural images through many transformations, with classes under many names."""

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
from neuralrace.extensions.registry import ChoiceOf


class TransformedImages(ImageDomainDataset):
    """Images from M input domains, their classes asked for by M output domains.

    Input domain i shows images through a transformation of its own; output domain j asks for their
    classes under names of its own (Saxe et al. 2022, fig. 7). Every pair of domains shows the same
    images. A network whose initial weights are exchangeable, in each domain for itself, cannot tell
    permuted pixels from others, nor permuted labels: only rotations test what domains share.
    """

    model_config = ConfigDict(defer_build=True)
    example: ClassVar[Mapping[str, Any]] = {
        "count": 2,
        "images": {"name": "digits", "samples": 20},
    }
    name: Literal["transformed_images"]
    images: Annotated[ImageSet, ChoiceOf("datasets")]
    """Images to train on; those that they hold out test."""
    inputs: Literal["rotation", "pixel_permutation", "identity"] = "rotation"
    """Transformation of input domains: a rotation about the centre with zeros outside the image, a
    random permutation of all pixels, or none."""
    arc: float = 270.0
    """Degrees that rotations share out: domain i of M is rotated by i/M of it."""
    outputs: Literal["label_permutation", "identity"] = "label_permutation"
    """Names of classes in output domains: permuted at random, or the same in all."""
    features: Annotated[Features, ChoiceOf("datasets")] = Pixels(name="pixels")
    """What networks see of an image."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of permutations."""

    @model_validator(mode="after")
    def _images_are_held_out(self) -> "TransformedImages":
        if not self.images.tested:
            raise ValueError(
                f"images.samples: all of {self.images.name!r} are used, and none is left to test "
                "on; use fewer"
            )
        return self

    @model_validator(mode="after")
    def _images_have_the_features(self) -> "TransformedImages":
        self.features.inputs(self.images.shape)
        return self

    @property
    def sizes(self) -> Sizes:
        """Features in, classes out."""
        features = self.features.inputs(self.images.shape)
        return Sizes(self.images.samples, features, CLASSES)

    @property
    def tested(self) -> int:
        """See `ImageDomainDataset.tested`."""
        return self.images.tested

    def image_domains(self) -> ImageDomains:
        """See `ImageDomainDataset.image_domains`."""
        taps, tap_weights = self._taps()
        return ImageDomains(
            images=self.images.images(),
            taps=taps,
            tap_weights=tap_weights,
            renamed=self._renamed(),
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

    def _renamed(self) -> Int[np.ndarray, "domain class"]:
        """Output that stands for each class, in every output domain."""
        if self.outputs == "identity":
            return np.tile(np.arange(CLASSES, dtype=np.int32), (self.count, 1))
        names = [
            generator(self.seed, f"labels of output domain {domain}").permutation(CLASSES)
            for domain in range(self.count)
        ]
        return np.stack(names).astype(np.int32)
