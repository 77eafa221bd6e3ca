"""Normal entries with a variance that depends on the widths."""

from typing import Literal

import numpy as np

from neuralrace.networks.initialisers.base import EdgeInitialiser


class Glorot(EdgeInitialiser):
    """Glorot normal initialisation; `init_scale` is its gain.

    `standard` has entry variance 2/(n_in + n_out); `product` the beta/(n_in n_out) with beta = 1
    that Basu et al. write in corollary 2.3.
    """

    name: Literal["glorot"]
    variance: Literal["standard", "product"] = "standard"
    """Entry variance: 2/(n_in + n_out), or 1/(n_in n_out)."""

    def edge(self, rng: np.random.Generator, n_out: int, n_in: int) -> np.ndarray:
        """See `EdgeLaw.edge`."""
        variance = 2 / (n_in + n_out) if self.variance == "standard" else 1 / (n_in * n_out)
        return rng.normal(size=(n_out, n_in)) * np.sqrt(variance)
