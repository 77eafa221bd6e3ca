"""Decoders that equal their encoders."""

from typing import ClassVar, Literal

from neuralrace.datasets.base import Modes
from neuralrace.networks.initialisers.base import Initialiser, Weights, layer


class Tied(Initialiser):
    """Encoder and decoder equal in the basis of the task: W_2^T u_k = W_1 v_k, normal entries."""

    in_modes: ClassVar[bool] = True
    name: Literal["tied"]

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Law.draw`."""
        if len(widths) != 3:
            raise ValueError(f"law tied needs one hidden layer; got {len(widths) - 2}")
        shared = layer(seed, 1).normal(size=(widths[1], len(modes.s)))
        return [shared @ modes.v.T, modes.u @ shared.T]
