"""Glorot initialisation (Glorot and Bengio 2010): normal, uniform or truncated normal."""

from math import erf, exp, pi, sqrt
from typing import Literal

import numpy as np

from neuralrace.networks.initialisers.base import EdgeInitialiser

TRUNCATION = 2.0
"""Largest entry of a truncated normal draw, in standard deviations before truncation."""
TRUNCATED_DEVIATION = sqrt(
    1 - 2 * TRUNCATION * exp(-(TRUNCATION**2) / 2) / sqrt(2 * pi) / erf(TRUNCATION / sqrt(2))
)
"""Standard deviation of a standard normal variable that is truncated, 0.8796."""


class Glorot(EdgeInitialiser):
    """Glorot initialisation, also called Xavier initialisation; `init_scale` is its gain.

    `standard` is the entry variance of Glorot and Bengio (2010, eq. 12), 2/(n_in + n_out).
    `product` is the variance beta/(n_in n_out) of Basu et al., corollary 2.3, with beta = 1.

    Entries have this variance in every distribution. `uniform` is that of Glorot and Bengio
    (2010, eq. 16). `truncated` is a normal distribution without values beyond two standard
    deviations, where the standard deviation before truncation is larger by 1/0.8796: the convention
    of `glorot_normal` in Flax (`jax.nn.initializers.variance_scaling`) and in TensorFlow
    (`VarianceScaling`).
    """

    name: Literal["glorot"]
    variance: Literal["standard", "product"] = "standard"
    """Entry variance: 2/(n_in + n_out), or 1/(n_in n_out)."""
    distribution: Literal["normal", "uniform", "truncated"] = "normal"
    """Distribution of entries: normal, uniform, or normal up to two standard deviations."""

    def edge(self, rng: np.random.Generator, n_out: int, n_in: int) -> np.ndarray:
        """See `EdgeInitialiser.edge`."""
        variance = 2 / (n_in + n_out) if self.variance == "standard" else 1 / (n_in * n_out)
        return self._unit_variance(rng, (n_out, n_in)) * np.sqrt(variance)

    def _unit_variance(self, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        if self.distribution == "uniform":
            return rng.uniform(-np.sqrt(3), np.sqrt(3), size=shape)
        entries = rng.normal(size=shape)
        if self.distribution == "normal":
            return entries
        while (beyond := np.abs(entries) > TRUNCATION).any():
            entries[beyond] = rng.normal(size=beyond.sum())
        return entries / TRUNCATED_DEVIATION
