"""The handwritten digits of scikit-learn."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from neuralrace.datasets.images import ImageSet, Labelled

DIGITS = 1797
"""Number of images in the set."""


class Digits(ImageSet):
    """1797 handwritten digits of 8 x 8 pixels, installed with scikit-learn: no download."""

    shape: ClassVar = (1, 8, 8)

    example: ClassVar[Mapping[str, Any]] = {"samples": 20}
    name: Literal["digits"]
    samples: Annotated[int, Field(gt=0, le=DIGITS)] = DIGITS
    """Number of training images, from the start of the set; the others are held out."""

    @property
    def held_out_count(self) -> int:
        """Number of images after the training images."""
        return DIGITS - self.samples

    def training(self) -> Labelled:
        """The first images of the set."""
        pixels, labels = _digits()
        return pixels[: self.samples], labels[: self.samples]

    def held_out(self) -> Labelled:
        """The images after the training images."""
        pixels, labels = _digits()
        return pixels[self.samples :], labels[self.samples :]


def _digits() -> Labelled:
    from sklearn.datasets import load_digits  # takes a second to import

    pixels, labels = cast(Labelled, load_digits(return_X_y=True))
    return pixels.astype(np.uint8), labels.astype(np.int32)  # whole numbers from 0 to 16
