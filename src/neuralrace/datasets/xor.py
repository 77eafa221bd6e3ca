"""Exclusive or of two signs."""

from itertools import product
from typing import Literal

import numpy as np

from neuralrace.datasets.base import Data, Dataset


class Xor(Dataset):
    """Corners of a square, target -x_1 x_2: +1 where signs differ (Saxe et al. 2022, fig. 3).

    A linear network learns none of it: sigma_yx = 0, with sigma_xx = I. A pathway that is open on
    one corner has a single mode, s = sqrt(2)/4 and d = 1/2.
    """

    name: Literal["xor"]

    def load(self) -> Data:
        """Corners in counting order: (-1, -1), (-1, +1), (+1, -1), (+1, +1)."""
        x = np.array(list(product((-1.0, 1.0), repeat=2)))
        return Data(
            x=x,
            y=-x.prod(axis=1, keepdims=True),
            item_names=tuple(f"({a:+.0f}, {b:+.0f})" for a, b in x),
        )
