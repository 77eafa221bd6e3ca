"""Lambda-balanced initialisation, W_2^T W_2 - W_1 W_1^T = lambda I (Dominé et al. 2024)."""

from typing import Literal

import numpy as np

from neuralrace.datasets.base import Modes
from neuralrace.datasets.random_streams import generator
from neuralrace.errors import UserError
from neuralrace.networks.initialisers.base import Initialiser, Weights, orthonormal


class LambdaBalanced(Initialiser):
    """Two layers with W_2^T W_2 - W_1 W_1^T = lambda init_scale^2 I, with random bases.

    A positive lambda makes the last layer the larger one, a negative one the first layer. The
    smaller layer has random singular values, uniform on [0.5, 1.5] times `init_scale`, as many as
    the narrowest layer has units. With lambda = 0 the network is that of `zero_balanced`. Where
    |lambda| init_scale^2 is well above the singular values of the task, learning is lazy.

    The larger layer has a singular value for each hidden unit. So a positive lambda requires at
    least as many outputs as hidden units, and a negative one at least as many inputs.

    Source: Dominé, Anguita, Proca, Braun, Kunin, Mediano, Saxe 2024, "From Lazy to Rich".
    """

    name: Literal["lambda_balanced"]
    lambda_: float = 0.0
    """Lambda, the common imbalance of all hidden directions at an init scale of 1."""

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Initialiser.draw`."""
        self.require_one_hidden(widths)
        inputs, hidden, outputs = widths
        side, most = ("outputs", outputs) if self.lambda_ > 0 else ("inputs", inputs)
        if self.lambda_ and hidden > most:
            raise UserError(
                f"needs as many {side} as hidden units, at least: the network has {most} {side} "
                f"and {hidden} hidden units",
                key="init.lambda_",
                value=self.lambda_,
                remedy="use fewer hidden units, the other sign, or 0",
            )
        rank = min(widths)
        squares = np.zeros(hidden)
        squares[:rank] = generator(seed, "strengths").uniform(0.5, 1.5, size=rank) ** 2
        below = np.sqrt(squares + max(-self.lambda_, 0.0))
        above = np.sqrt(squares + max(self.lambda_, 0.0))
        # at lambda = 0, directions beyond the rank have no strength in either layer
        used = hidden if self.lambda_ else rank
        first, middle, last = (
            orthonormal(generator(seed, f"basis of layer {number}"), width, min(width, used))
            for number, width in enumerate(widths)
        )
        encoder = (middle[:, : first.shape[1]] * below[: first.shape[1]]) @ first.T
        decoder = (last * above[: last.shape[1]]) @ middle[:, : last.shape[1]].T
        return [encoder, decoder]
