"""Uniform initialisation."""

from typing import Literal

import numpy as np

from neuralrace.networks.initialisers.base import EdgeInitialiser


class Uniform(EdgeInitialiser):
    """Uniform initialisation: independent entries around zero, standard deviation `init_scale`."""

    name: Literal["uniform"]

    def edge(self, rng: np.random.Generator, n_out: int, n_in: int) -> np.ndarray:
        """See `EdgeInitialiser.edge`."""
        return rng.uniform(-np.sqrt(3), np.sqrt(3), size=(n_out, n_in))
