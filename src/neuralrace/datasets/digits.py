"""The digits embedded in scikit-learn."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from neuralrace.datasets.images import ImageSet, Labelled

DIGITS = 1797
"""Images of the set."""


class Digits(ImageSet):
    """1797 handwritten digits of 8 x 8 pixels that ship with scikit-learn: no download."""

    shape: ClassVar = (1, 8, 8)

    example: ClassVar[Mapping[str, Any]] = {"samples": 20}
    name: Literal["digits"]
    samples: Annotated[int, Field(gt=0, le=DIGITS)] = DIGITS
    """Images used, from the start of the set; those after them are held out."""

    @property
    def tested(self) -> int:
        """Those that are not used."""
        return DIGITS - self.samples

    def training(self) -> Labelled:
        """The first images of the set."""
        pixels, labels = _digits()
        return pixels[: self.samples], labels[: self.samples]

    def held_out(self) -> Labelled:
        """The images after the first; none are left where all are used."""
        pixels, labels = _digits()
        return pixels[self.samples :], labels[self.samples :]


def _digits() -> Labelled:
    from sklearn.datasets import load_digits  # a second to import, and needed here alone

    pixels, labels = cast(Labelled, load_digits(return_X_y=True))
    return pixels.astype(np.uint8), labels.astype(np.int32)  # whole numbers from 0 to 16
