"""Layered networks with any activation: their signals, slopes and outputs.

The network is yhat = W_L s(W_{L-1} ... s(W_1 x)). Biases are left out, since they start at zero.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import erf, expit

Function = Callable[[np.ndarray], np.ndarray]

ACTIVATIONS: dict[str, tuple[Function, Function]] = {
    "linear": (lambda z: z, np.ones_like),
    "relu": (lambda z: np.maximum(z, 0), lambda z: (z > 0).astype(float)),
    "erf": (lambda z: erf(z / np.sqrt(2)), lambda z: np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2)),
    "sigmoid": (expit, lambda z: expit(z) * expit(-z)),
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
}
"""Value and derivative of each activation; the derivative of relu at 0 is 0, as in training."""


@dataclass(frozen=True)
class ForwardPass:
    """All signals of a network on some inputs."""

    signals: tuple[Float[np.ndarray, "*runs sample _source"], ...]
    """What each layer of weights receives, the inputs first."""
    slopes: tuple[Float[np.ndarray, "*runs sample _unit"], ...]
    """Derivative of the activation in each hidden layer."""
    outputs: Float[np.ndarray, "*runs sample output"]


def forward_pass(
    x: Float[np.ndarray, "sample input"],
    weights: Sequence[Float[np.ndarray, "*runs _target _source"]],
    activation: str,
) -> ForwardPass:
    """Signals, slopes and outputs of a network, for all runs at once.

    Args:
        x: inputs, a sample per row.
        weights: W_1, ..., W_L, first layer first.
        activation: activation of the hidden layers, a key of `ACTIVATIONS`.
    """
    value, slope = ACTIVATIONS[activation]
    signals, slopes = [x], []
    for weight in weights[:-1]:
        z = signals[-1] @ weight.mT
        slopes.append(slope(z))
        signals.append(value(z))
    return ForwardPass(tuple(signals), tuple(slopes), signals[-1] @ weights[-1].mT)
