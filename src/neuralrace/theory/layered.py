"""Layered networks with any activation: signals; and gradient flow of ReLU networks.

The network is yhat = W_L s(W_{L-1} ... s(W_1 x)) with loss 1/2 <|y - yhat|^2>, without biases. Time
is gradient-flow time, dW/dt = -dloss/dW; one step of gradient descent advances it by the learning
rate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import erf, expit

from neuralrace.extensions.representation import short_repr

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

    __repr__ = short_repr


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


def relu_flow(
    weights: Sequence[Float[np.ndarray, "*runs _target _source"]],
    x: Float[np.ndarray, "sample input"],
    y: Float[np.ndarray, "sample output"],
    records: int,
    steps: int,
    step: float,
    trained_readout: bool = True,
) -> list[Float[np.ndarray, "*runs time _target _source"]]:
    """Gradient flow of all weights of a ReLU network, by Heun's method (Runge-Kutta of order two).

    The steps are fixed. The rates jump where a unit opens or closes on a sample, and near the end
    weights slide along such jumps, so that a solver that chooses its steps would choose ever
    shorter ones. Between jumps the error falls with the square of the step, across them with the
    step itself.

    Args:
        weights: initial W_1, ..., W_L, first layer first.
        x: inputs, a sample per row.
        y: targets.
        records: number of times after the start at which weights are returned.
        steps: steps between two of them.
        step: length of a step, in gradient-flow time.
        trained_readout: whether the last layer is trained.

    Returns:
        The weights at the times, layer by layer.
    """
    import jax

    runs = weights[0].shape[:-2]
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        paths = _program_of_flow(records, trained_readout)(
            [w.reshape(-1, *w.shape[-2:]) for w in weights], x, y, steps, step
        )
    return [np.asarray(w).reshape(*runs, *w.shape[1:]) for w in paths]


@cache  # compiling takes longer than many a flow; one program serves all data of equal shapes
def _program_of_flow(records: int, trained_readout: bool) -> Callable[..., list[Any]]:
    """What `relu_flow` compiles: a function of its initial weights, x, y, steps and step."""
    import jax
    import jax.numpy as jnp

    def path(start: list[Any], x: Any, y: Any, steps: Any, step: Any) -> list[Any]:
        def loss(now: list[Any]) -> Any:
            signal = x
            for weight in now[:-1]:
                signal = jax.nn.relu(signal @ weight.T)
            return jnp.sum((signal @ now[-1].T - y) ** 2) / (2 * len(x))

        def moved(now: list[Any], *rates: list[Any]) -> list[Any]:
            share = step / len(rates)
            ends = [w - share * sum(of_layer) for w, *of_layer in zip(now, *rates, strict=True)]
            return ends if trained_readout else [*ends[:-1], now[-1]]

        def heun(_: Any, now: list[Any]) -> list[Any]:
            first = jax.grad(loss)(now)
            return moved(now, first, jax.grad(loss)(moved(now, first)))

        def recorded(now: list[Any], _: None) -> tuple[list[Any], list[Any]]:
            now = jax.lax.fori_loop(0, steps, heun, now)
            return now, now

        _, later = jax.lax.scan(recorded, start, length=records)
        return [jnp.concatenate([w[None], ws]) for w, ws in zip(start, later, strict=True)]

    # one run after the other: its weights then stay in the cache
    return jax.jit(lambda starts, *rest: jax.lax.map(lambda start: path(start, *rest), starts))


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
