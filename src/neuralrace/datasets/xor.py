"""XOR: exclusive or of two signs, optionally with a third input that encodes the class."""

from itertools import product
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from neuralrace.datasets.base import Data, Dataset

CROSSOVER = np.sqrt(2 / 3)
"""Margin at which pathways for one class and pathways for one example learn equally fast."""


class Xor(Dataset):
    """Corners of a square with target -x_1 x_2, +1 where signs differ (Saxe et al. 2022, fig. 3).

    A linear network cannot learn it: sigma_yx = 0, with sigma_xx = I. A pathway that is open on one
    corner has a single mode, s = sqrt(2)/4 and d = 1/2.

    A margin Delta adds the third input Delta y, and the classes are linearly separable for any
    Delta > 0 (Jarvis et al., "Make Haste Slowly", fig. 2 and appendix C). Then a pathway that is
    open on one class has the mode s = Delta/2 and d = Delta^2/2. A pathway that is open on one
    corner has s = sqrt(2 + Delta^2)/4 and d = (2 + Delta^2)/4. They learn equally fast at
    Delta = sqrt(2/3); below it, pathways for corners are faster.
    """

    name: Literal["xor"]
    margin: Annotated[float, Field(gt=0, le=2)] | None = None
    """Margin Delta: half the distance of the classes along a third input; no such input when
    absent."""

    def load(self) -> Data:
        """Corners in the order (-1, -1), (-1, +1), (+1, -1), (+1, +1)."""
        corners = np.array(list(product((-1.0, 1.0), repeat=2)))
        y = -corners.prod(axis=1, keepdims=True)
        return Data(
            x=corners if self.margin is None else np.hstack([corners, self.margin * y]),
            y=y,
            item_names=tuple(f"({a:+.0f}, {b:+.0f})" for a, b in corners),
        )
