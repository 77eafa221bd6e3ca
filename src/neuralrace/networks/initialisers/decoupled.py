"""Decoupled initialisation: modes of the task share no hidden unit."""

from typing import ClassVar, Literal

import numpy as np

from neuralrace.datasets.base import Modes
from neuralrace.errors import UserError
from neuralrace.networks.initialisers.base import Initialiser, Weights, layer


class Decoupled(Initialiser):
    """Two layers without interference: each mode has its own hidden units.

    On these units, the encoder vector W_1 v_k and the decoder vector W_2^T u_k are independent
    normal vectors with standard deviation `init_scale`: neither aligned nor balanced, and modes
    never interact during training.
    """

    in_modes: ClassVar[bool] = True
    name: Literal["decoupled"]

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Initialiser.draw`."""
        rank = len(modes.s)
        if len(widths) != 3 or widths[1] < rank:
            raise UserError(
                f"needs one hidden layer with at least {rank} units, one per mode, and the network "
                f"has hidden layers {list(widths[1:-1])}",
                key="init.name",
                value=self.name,
                remedy="change network.hidden, or use another initialiser",
            )
        owner = np.arange(widths[1]) % rank
        mask = owner[:, None] == np.arange(rank)
        encoder = layer(seed, 1).normal(size=(widths[1], rank)) * mask
        decoder = layer(seed, 2).normal(size=(widths[1], rank)) * mask
        return [encoder @ modes.v.T, modes.u @ decoder.T]
