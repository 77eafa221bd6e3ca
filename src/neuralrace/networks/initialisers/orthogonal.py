"""Orthogonal initialisation (Saxe, McClelland and Ganguli 2013)."""

from typing import ClassVar, Literal

import numpy as np

from neuralrace.networks.initialisers.base import EdgeInitialiser, orthonormal


class Orthogonal(EdgeInitialiser):
    """Orthogonal initialisation: every layer is random semi-orthogonal times `init_scale`.

    Source: Saxe, McClelland, Ganguli 2013.
    """

    orthogonal: ClassVar[bool] = True
    name: Literal["orthogonal"]

    def edge(self, rng: np.random.Generator, n_out: int, n_in: int) -> np.ndarray:
        """See `EdgeInitialiser.edge`."""
        return orthonormal(rng, n_out, n_in)
