"""Gates that the network sets itself."""

from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float

from neuralrace.datasets import Data
from neuralrace.networks.gates.base import SampleScheme
from neuralrace.networks.gates.half_space import half_spaces


class Learned(SampleScheme):
    """Every hidden unit opens where its own weights point: a ReLU network."""

    learned: ClassVar[bool] = True
    name: Literal["learned"]

    def gates(
        self, data: Data, encoder: Float[np.ndarray, "unit input"] | None = None
    ) -> Float[np.ndarray, "pathway sample"]:
        """See `SampleScheme.gates`; pathways are hidden units.

        Raises:
            ValueError: no encoder is given.
        """
        if encoder is None:
            raise ValueError("learned gates depend on the weights: give the encoder")
        return half_spaces(data.x, encoder)
