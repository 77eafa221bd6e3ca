"""Tied initialisation: the decoder equals the encoder in the modes of the task."""

from typing import ClassVar, Literal

from neuralrace.datasets.base import Modes
from neuralrace.networks.initialisers.base import Initialiser, Weights, layer


class Tied(Initialiser):
    """Tied encoder and decoder in the modes of the task: W_2^T u_k = W_1 v_k, normal entries."""

    in_modes: ClassVar[bool] = True
    name: Literal["tied"]

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Initialiser.draw`."""
        self.require_one_hidden(widths)
        shared = layer(seed, 1).normal(size=(widths[1], len(modes.s)))
        return [shared @ modes.v.T, modes.u @ shared.T]
