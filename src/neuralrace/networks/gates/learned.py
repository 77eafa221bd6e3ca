"""Gates that follow the weights: ReLU units."""

from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.networks.gates.base import SampleScheme
from neuralrace.networks.gates.half_space import half_spaces


class Learned(SampleScheme):
    """Every hidden unit opens where its input weights point, as in a ReLU network."""

    learned: ClassVar[bool] = True
    name: Literal["learned"]

    def gates(
        self, data: Data, encoder: Float[np.ndarray, "unit input"] | None = None
    ) -> Float[np.ndarray, "pathway sample"]:
        """See `SampleScheme.gates`; pathways are hidden units.

        Raises:
            UserError: `encoder` is absent.
        """
        if encoder is None:
            raise UserError(
                "learned gates depend on the weights", key="encoder", remedy="give the encoder"
            )
        return half_spaces(data.x, encoder)
