"""Glorot normal initialisation (Glorot and Bengio 2010)."""

from typing import Literal

import numpy as np

from neuralrace.networks.initialisers.base import EdgeInitialiser


class Glorot(EdgeInitialiser):
    """Glorot normal initialisation; `init_scale` is its gain.

    `standard` is the entry variance of Glorot and Bengio (2010, eq. 12), 2/(n_in + n_out).
    `product` is the variance beta/(n_in n_out) of Basu et al., corollary 2.3, with beta = 1.
    """

    name: Literal["glorot"]
    variance: Literal["standard", "product"] = "standard"
    """Entry variance: 2/(n_in + n_out), or 1/(n_in n_out)."""

    def edge(self, rng: np.random.Generator, n_out: int, n_in: int) -> np.ndarray:
        """See `EdgeInitialiser.edge`."""
        variance = 2 / (n_in + n_out) if self.variance == "standard" else 1 / (n_in * n_out)
        return rng.normal(size=(n_out, n_in)) * np.sqrt(variance)
