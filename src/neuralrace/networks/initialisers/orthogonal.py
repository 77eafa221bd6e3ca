"""Semi-orthogonal layers."""

from typing import ClassVar, Literal

import numpy as np

from neuralrace.networks.initialisers.base import EdgeInitialiser, orthonormal


class Orthogonal(EdgeInitialiser):
    """Semi-orthogonal layers: every singular value equals `init_scale`."""

    orthogonal: ClassVar[bool] = True
    name: Literal["orthogonal"]

    def edge(self, rng: np.random.Generator, n_out: int, n_in: int) -> np.ndarray:
        """See `EdgeLaw.edge`."""
        return orthonormal(rng, n_out, n_in)
