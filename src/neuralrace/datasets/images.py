"""Sets of labelled images, and the base classes of datasets that load them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import prod
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Int, UInt8
from pydantic import Field

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.datasets.random_streams import generator
from neuralrace.extensions.model import Positive
from neuralrace.extensions.representation import short_repr

CLASSES = 10
"""Number of classes of every image set."""
Labelled = tuple[np.ndarray, np.ndarray]
"""Pixels (image, pixel) as unsigned bytes, and labels (image,) from 0."""


@dataclass(frozen=True)
class Images:
    """Labelled images for training, and held-out images for testing.

    Pixels are listed channel by channel, each channel row by row.
    """

    pixels: UInt8[np.ndarray, "image pixel"]
    labels: Int[np.ndarray, " image"]
    held_out_pixels: UInt8[np.ndarray, "held_out pixel"]
    held_out_labels: Int[np.ndarray, " held_out"]
    shape: tuple[int, int, int]
    """Channels, rows and columns of an image."""

    __repr__ = short_repr


class ImageSet(Dataset, ABC):
    """Labelled images of ten classes."""

    may_be_white: ClassVar[bool] = False
    shape: ClassVar[tuple[int, int, int]]
    """Channels, rows and columns of an image."""
    class_names: ClassVar[tuple[str, ...]] = tuple("0123456789")
    """Names of the classes, by label."""

    name: str  # stands before `samples` in the canonical text, as in all datasets
    samples: Positive
    """Number of training images."""

    @property
    def sizes(self) -> Sizes:
        """Inputs are pixels, outputs are classes."""
        return Sizes(self.samples, prod(self.shape), CLASSES)

    @property
    @abstractmethod
    def held_out_count(self) -> int:
        """Number of held-out images."""

    @abstractmethod
    def training(self) -> Labelled:
        """The training images.

        Raises:
            UserError: files are missing or damaged.
        """

    @abstractmethod
    def held_out(self) -> Labelled:
        """The held-out images.

        Raises:
            UserError: files are missing or damaged.
        """

    def images(self) -> Images:
        """Training images and held-out images.

        Raises:
            UserError: files are missing or damaged.
        """
        return Images(*self.training(), *self.held_out(), shape=self.shape)

    def load(self) -> Data:
        """Training images as rows: centred pixels with unit variance overall, one-hot labels."""
        pixels, labels = self.training()
        x = pixels.astype(np.float64)
        x = (x - x.mean()) / x.std()
        return Data(x=x, y=np.eye(CLASSES)[labels], output_names=self.class_names)


class OfficialImageSet(ImageSet):
    """An image set that is published as training and test files, and downloaded if necessary."""

    reads_files: ClassVar[bool] = True
    folder: Annotated[str, Field(min_length=1)] | None
    """Folder of the official files; missing or damaged files are downloaded."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the random subset."""

    @abstractmethod
    def part(self, part: Literal["train", "test"]) -> Labelled:
        """All images of the official training or test set.

        Raises:
            UserError: files are missing or damaged, and cannot be downloaded.
        """

    @property
    def held_out_count(self) -> int:
        """Size of the official test set."""
        return 10000

    def training(self) -> Labelled:
        """A random subset of the official training set."""
        pixels, labels = self.part("train")
        chosen = generator(self.seed, f"{self.name} subset").permutation(len(pixels))
        return pixels[chosen[: self.samples]], labels[chosen[: self.samples]]

    def held_out(self) -> Labelled:
        """The official test set."""
        return self.part("test")
