"""Natural images through many transformations, with classes under many names."""

from typing import Annotated, Literal

import numpy as np
from jaxtyping import Int
from pydantic import Field, model_validator

from neuralrace.base import generator
from neuralrace.datasets.base import DomainDataset, Domains, Sizes
from neuralrace.datasets.cifar10 import Cifar10
from neuralrace.datasets.digits import DIGITS, Digits
from neuralrace.datasets.features import Pixels, PrincipalComponents, RandomConvolutions
from neuralrace.datasets.image_domains import ImageDomains
from neuralrace.datasets.images import CLASSES
from neuralrace.datasets.mnist import Mnist
from neuralrace.datasets.transformations import Taps, identities, pixel_permutations, rotations


class TransformedImages(DomainDataset):
    """Images from M input domains, their classes asked for by M output domains.

    Input domain i shows images through a transformation of its own; output domain j asks for their
    classes under names of its own (Saxe et al. 2022, fig. 7). Every pair of domains shows the same
    images. A network whose initial weights are exchangeable, in each domain for itself, cannot tell
    permuted pixels from others, nor permuted labels: only rotations test what domains share.
    """

    name: Literal["transformed_images"]
    images: Annotated[Digits | Mnist | Cifar10, Field(discriminator="name")]
    """Images to train on; those that they hold out test."""
    inputs: Literal["rotation", "pixel_permutation", "identity"] = "rotation"
    """Transformation of input domains: a rotation about the centre with zeros outside the image, a
    random permutation of all pixels, or none."""
    arc: float = 270.0
    """Degrees that rotations share out: domain i of M is rotated by i/M of it."""
    outputs: Literal["label_permutation", "identity"] = "label_permutation"
    """Names of classes in output domains: permuted at random, or the same in all."""
    features: Annotated[
        Pixels | PrincipalComponents | RandomConvolutions, Field(discriminator="name")
    ] = Pixels(name="pixels")
    """What networks see of an image."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of permutations."""

    @model_validator(mode="after")
    def _images_are_held_out(self) -> "TransformedImages":
        if isinstance(self.images, Digits) and self.images.samples == DIGITS:
            raise ValueError(
                f"images.samples: {DIGITS}: these are all digits, and none is left to test on; "
                f"use fewer than {DIGITS}"
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

    def image_domains(self) -> ImageDomains:
        """The images, their transformations and names of classes.

        Raises:
            UserError: files are missing or damaged.
        """
        taps, tap_weights = self._taps()
        return ImageDomains(
            images=self.images.images(),
            taps=taps,
            tap_weights=tap_weights,
            renamed=self._renamed(),
            features=self.features,
        )

    def domains(self) -> Domains:
        """Inputs of the training images and one-hot targets; see `ImageDomains.spelled_out`."""
        return self.image_domains().spelled_out()

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
