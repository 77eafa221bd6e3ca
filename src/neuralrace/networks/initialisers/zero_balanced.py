"""Balanced initialisation, W_l W_l^T = W_{l+1}^T W_{l+1} (Arora et al. 2019)."""

import itertools
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from neuralrace.datasets.base import Modes
from neuralrace.datasets.random_streams import generator
from neuralrace.networks.initialisers.base import Initialiser, Weights, orthonormal


class ZeroBalanced(Initialiser):
    """Balanced initialisation, W_l W_l^T = W_{l+1}^T W_{l+1}, with random bases.

    All layers share random singular values, uniform on [0.5, 1.5] times `init_scale`. `imbalance`
    multiplies W_1 by exp(-imbalance/2) and W_L by exp(imbalance/2): it breaks the balance and
    leaves the product of all layers as it was.

    Source: Arora, Cohen, Golowich, Hu 2019, for balanced initialisation.
    """

    name: Literal["zero_balanced"]
    imbalance: Annotated[float, Field(ge=0)] = 0.0
    """Logarithm of the last layer's scale relative to the first."""

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Initialiser.draw`."""
        rank = min(widths)
        strengths = generator(seed, "strengths").uniform(0.5, 1.5, size=rank)
        bases = [
            orthonormal(generator(seed, f"basis of layer {number}"), width, rank)
            for number, width in enumerate(widths)
        ]
        weights = [(above * strengths) @ below.T for below, above in itertools.pairwise(bases)]
        weights[0] = weights[0] * np.exp(-self.imbalance / 2)
        weights[-1] = weights[-1] * np.exp(self.imbalance / 2)
        return weights
