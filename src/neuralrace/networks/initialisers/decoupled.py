"""Modes that share no hidden unit."""

from typing import ClassVar, Literal

import numpy as np

from neuralrace.datasets.base import Modes
from neuralrace.networks.initialisers.base import Initialiser, Weights, layer


class Decoupled(Initialiser):
    """Two layers without interference: each mode owns a block of hidden units.

    Within its block, the encoder vector W_1 v_k and the decoder vector W_2^T u_k are independent
    standard normal vectors times `init_scale`: unaligned and unbalanced, yet never coupled.
    """

    in_modes: ClassVar[bool] = True
    name: Literal["decoupled"]

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Law.draw`."""
        rank = len(modes.s)
        if len(widths) != 3 or widths[1] < rank:
            raise ValueError(
                f"law decoupled needs one hidden layer with at least {rank} units, one per mode; "
                f"got hidden layers {list(widths[1:-1])}"
            )
        owner = np.arange(widths[1]) % rank
        mask = owner[:, None] == np.arange(rank)
        encoder = layer(seed, 1).normal(size=(widths[1], rank)) * mask
        decoder = layer(seed, 2).normal(size=(widths[1], rank)) * mask
        return [encoder @ modes.v.T, modes.u @ decoder.T]
