"""Labelled images: what a set of them holds, and how it is loaded as a dataset."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import prod
from typing import Annotated, ClassVar

import numpy as np
from jaxtyping import Int, UInt8
from pydantic import Field

from neuralrace.datasets.base import Data, Dataset, Sizes

CLASSES = 10
"""Classes of every image set here."""
Labelled = tuple[np.ndarray, np.ndarray]
"""Pixels (image, pixel), unsigned bytes, and labels (image,), from 0."""


@dataclass(frozen=True)
class Images:
    """Labelled images to train on, and others to test on.

    Pixels are listed channel by channel, each channel row by row.
    """

    pixels: UInt8[np.ndarray, "image pixel"]
    labels: Int[np.ndarray, " image"]
    held_out_pixels: UInt8[np.ndarray, "held_out pixel"]
    held_out_labels: Int[np.ndarray, " held_out"]
    shape: tuple[int, int, int]
    """Channels, rows and columns of an image."""


class ImageSet(Dataset, ABC):
    """Labelled images of ten classes."""

    may_be_white: ClassVar[bool] = False
    shape: ClassVar[tuple[int, int, int]]
    """Channels, rows and columns of an image."""
    class_names: ClassVar[tuple[str, ...]] = tuple("0123456789")
    """Names of the classes, by label."""

    name: str  # stands before `samples` in the canonical text, as in all datasets
    samples: Annotated[int, Field(gt=0)]
    """Images to train on."""

    @property
    def sizes(self) -> Sizes:
        """Pixels in, classes out."""
        return Sizes(self.samples, prod(self.shape), CLASSES)

    @property
    @abstractmethod
    def tested(self) -> int:
        """Images that training never sees."""

    @abstractmethod
    def training(self) -> Labelled:
        """Images to train on.

        Raises:
            UserError: files are missing or damaged.
        """

    @abstractmethod
    def held_out(self) -> Labelled:
        """Images that training never sees.

        Raises:
            UserError: files are missing or damaged.
        """

    def images(self) -> Images:
        """Images to train on and images held out.

        Raises:
            UserError: files are missing or damaged.
        """
        return Images(*self.training(), *self.held_out(), shape=self.shape)

    def load(self) -> Data:
        """Images to train on as rows: centred pixels with unit overall variance, one-hot labels."""
        pixels, labels = self.training()
        x = pixels.astype(np.float64)
        x = (x - x.mean()) / x.std()
        return Data(x=x, y=np.eye(CLASSES)[labels], output_names=self.class_names)
