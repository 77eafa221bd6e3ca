"""Exclusive or of two signs, with or without a third input that gives it away."""

from itertools import product
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from neuralrace.datasets.base import Data, Dataset

CROSSOVER = np.sqrt(2 / 3)
"""Margin at which pathways of one class each and of one example each learn equally fast."""


class Xor(Dataset):
    """Corners of a square, target -x_1 x_2: +1 where signs differ (Saxe et al. 2022, fig. 3).

    A linear network learns none of it: sigma_yx = 0, with sigma_xx = I. A pathway that is open on
    one corner has a single mode, s = sqrt(2)/4 and d = 1/2.

    A margin Delta adds the third input Delta y, and the classes are linearly separable for any
    Delta > 0 (Jarvis et al., "Make Haste Slowly", fig. 2 and appendix C). A pathway that is open on
    one class then has the mode s = Delta/2 and d = Delta^2/2, one that is open on one corner
    s = sqrt(2 + Delta^2)/4 and d = (2 + Delta^2)/4. They learn equally fast at
    Delta = sqrt(2/3), the pathways of corners faster below it.
    """

    name: Literal["xor"]
    margin: Annotated[float, Field(gt=0, le=2)] | None = None
    """Half the distance Delta between the classes along a third input; none when absent."""

    def load(self) -> Data:
        """Corners in counting order: (-1, -1), (-1, +1), (+1, -1), (+1, +1)."""
        corners = np.array(list(product((-1.0, 1.0), repeat=2)))
        y = -corners.prod(axis=1, keepdims=True)
        return Data(
            x=corners if self.margin is None else np.hstack([corners, self.margin * y]),
            y=y,
            item_names=tuple(f"({a:+.0f}, {b:+.0f})" for a, b in corners),
        )
