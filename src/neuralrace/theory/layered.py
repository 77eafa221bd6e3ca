"""Layered networks with any activation: signals, and gradient flow, integrated numerically.

The network is yhat = W_L s(W_{L-1} ... s(W_1 x)) with loss 1/2 <|y - yhat|^2>, without biases. Time
is gradient-flow time, dW/dt = -dloss/dW; one step of gradient descent advances it by the learning
rate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import erf, expit

from neuralrace.theory.integration import solve_flow

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

    signals: tuple[Float[np.ndarray, "... sample _source"], ...]
    """What each layer of weights receives, the inputs first, which all runs share."""
    slopes: tuple[Float[np.ndarray, "... sample _unit"], ...]
    """Derivative of the activation in each hidden layer."""
    outputs: Float[np.ndarray, "... sample output"]


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


def layered_flow(
    time: Float[np.ndarray, " time"],
    x: Float[np.ndarray, "sample input"],
    y: Float[np.ndarray, "sample output"],
    weights: Sequence[Float[np.ndarray, "*runs _target _source"]],
    activation: str,
    trained_readout: bool = True,
    rtol: float = 3e-5,
    atol: float = 1e-8,
) -> list[Float[np.ndarray, "*runs time _target _source"]]:
    """Gradient flow of all weights, solved for all runs at once.

    `solve_flow` explains the tolerances. The rates of a ReLU network jump where a unit opens or
    closes on a sample. No method keeps its order across a jump, so that the solver shortens its
    steps there, and ten times less error takes about ten times as long. With these tolerances the
    loss of small networks is off by 1e-4 to 1e-3 of the initial loss. Smooth activations do better.

    Args:
        time: increasing, gradient-flow time, from 0.
        x: inputs, a sample per row.
        y: targets.
        weights: initial W_1, ..., W_L, first layer first.
        activation: activation of the hidden layers, a key of `ACTIVATIONS`.
        trained_readout: whether the last layer is trained.
        rtol: relative tolerance of the solver.
        atol: absolute tolerance of the solver, in units of the weights.

    Returns:
        The weights at the times, layer by layer.

    Raises:
        ValueError: if `time` is not increasing from 0 or later.
        RuntimeError: if the solver fails.
    """

    def velocity(now: list[np.ndarray]) -> list[np.ndarray]:
        there = forward_pass(x, now, activation)
        back, rates = (y - there.outputs) / len(x), []
        for layer in reversed(range(len(now))):
            rates.append(back.mT @ there.signals[layer])
            if layer:
                back = back @ now[layer] * there.slopes[layer - 1]
        rates.reverse()
        return rates if trained_readout else [*rates[:-1], np.zeros_like(now[-1])]

    path = solve_flow(time, weights, velocity, rtol, atol, method="RK45")
    return [np.moveaxis(w, 0, -3) for w in path]


def layered_loss(
    x: Float[np.ndarray, "sample input"],
    y: Float[np.ndarray, "sample output"],
    weights: Sequence[Float[np.ndarray, "*runs _target _source"]],
    activation: str,
) -> Float[np.ndarray, "*runs"]:
    """Loss 1/2 <|y - yhat|^2>; `runs` may end in an axis of time.

    Args:
        x: inputs, a sample per row.
        y: targets.
        weights: W_1, ..., W_L, first layer first.
        activation: activation of the hidden layers, a key of `ACTIVATIONS`.
    """
    runs, loss = weights[0].shape[:-2], np.empty(weights[0].shape[:-2])
    for run in np.ndindex(runs):  # one at a time, as all signals of all times may not fit
        outputs = forward_pass(x, [w[run] for w in weights], activation).outputs
        loss[run] = np.sum((y - outputs) ** 2) / (2 * len(x))
    return loss
