"""Semantic hierarchy of four living things."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from neuralrace.datasets.base import Data, Dataset

ITEMS = ("canary", "salmon", "oak", "rose")
PROPERTIES = {
    "grow": (1, 1, 1, 1),
    "move": (1, 1, 0, 0),
    "roots": (0, 0, 1, 1),
    "fly": (1, 0, 0, 0),
    "swim": (0, 1, 0, 0),
    "leaves": (0, 0, 1, 0),
    "petals": (0, 0, 0, 1),
}


class Hierarchy(Dataset):
    """Four one-hot items with seven properties on a binary tree (Jarvis et al., fig. 7).

    Its singular values, times the number of items, are sqrt 7 (all items), sqrt 3 (animals against
    plants) and twice 1 (contrasts between two animals and between two plants), times `scale`;
    sigma_xx = I/4.
    """

    name: Literal["hierarchy"]
    scale: Annotated[float, Field(gt=0, exclude_if=lambda scale: scale == 1)] = 1.0
    """Value of a property that an item has."""

    def load(self) -> Data:
        """Inputs are the identity, targets the 4 x 7 table of properties times `scale`."""
        return Data(
            x=np.eye(len(ITEMS)),
            y=self.scale * np.array(list(PROPERTIES.values()), dtype=float).T,
            item_names=ITEMS,
            output_names=tuple(PROPERTIES),
        )
