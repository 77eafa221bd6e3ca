"""Deep linear networks: gradient flow and gradient descent, integrated numerically.

The network is yhat = W_L ... W_1 x with loss 1/2 <|y - yhat|^2>. Data matter only through the
correlations sigma_yx = <y x^T> and sigma_xx = <x x^T>. Time is gradient-flow time,
dW/dt = -dloss/dW; one step of gradient descent advances it by the learning rate.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
from jaxtyping import Float, Int

from neuralrace.theory.integration import descend, solve_flow


def linear_flow(
    time: Float[np.ndarray, " time"],
    weights: Sequence[Float[np.ndarray, "*runs _ _"]],
    sigma_yx: Float[np.ndarray, "*#runs out in"],
    sigma_xx: Float[np.ndarray, "*#runs in in"],
    rtol: float = 1e-13,
    atol: float = 1e-16,
) -> list[Float[np.ndarray, "*runs time _ _"]]:
    """Gradient flow of a linear network of any depth, solved for all runs at once.

    `solve_flow` explains the tolerances. Once a mode is learned, stability limits the step of this
    explicit method, and its error is 10 to 10,000 times `rtol`. So a tight tolerance costs little.

    Args:
        time: increasing, gradient-flow time, from 0.
        weights: initial W_1, ..., W_L, first layer first; W_l has shape (*runs, n_{l+1}, n_l).
        sigma_yx: input-output correlation.
        sigma_xx: input correlation.
        rtol: relative tolerance of the solver.
        atol: absolute tolerance of the solver, in units of the weights.

    Returns:
        The weights at the times, layer by layer, (*runs, time, n_{l+1}, n_l).

    Raises:
        ValueError: if shapes do not chain or `time` is not increasing from 0 or later.
        RuntimeError: if the solver fails.

    Source: Saxe, McClelland, Ganguli 2013; Basu, Mukherjee, Vasudevan, eqs. 5 and 14.
    """
    _check_chain(weights, sigma_yx, sigma_xx)
    path = solve_flow(
        time, weights, lambda now: _negative_gradient(now, sigma_yx, sigma_xx), rtol, atol
    )
    return [np.moveaxis(w, 0, -3) for w in path]


def linear_descent(
    step: Int[np.ndarray, " time"],
    learning_rate: float,
    weights: Sequence[Float[np.ndarray, "*runs _ _"]],
    sigma_yx: Float[np.ndarray, "*#runs out in"],
    sigma_xx: Float[np.ndarray, "*#runs in in"],
) -> list[Float[np.ndarray, "*runs time _ _"]]:
    """Full-batch gradient descent of a linear network of any depth.

    A step size that is too large returns infinite or NaN weights and raises no error.

    Args:
        step: numbers of steps at which to record, non-decreasing, from 0.
        learning_rate: gradient-flow time per step.
        weights: initial W_1, ..., W_L, first layer first; W_l has shape (*runs, n_{l+1}, n_l).
        sigma_yx: input-output correlation.
        sigma_xx: input correlation.

    Returns:
        The weights after those numbers of steps, layer by layer, (*runs, time, n_{l+1}, n_l).

    Raises:
        ValueError: if shapes do not chain or `step` is negative or decreases.
    """
    _check_chain(weights, sigma_yx, sigma_xx)
    path = descend(
        step, learning_rate, weights, lambda now: _negative_gradient(now, sigma_yx, sigma_xx)
    )
    return [np.moveaxis(w, 0, -3) for w in path]


def _negative_gradient(
    weights: Sequence[np.ndarray], sigma_yx: np.ndarray, sigma_xx: np.ndarray
) -> list[np.ndarray]:
    """-dloss/dW_l for every layer: (W_L..W_{l+1})^T (sigma_yx - W sigma_xx) (W_{l-1}..W_1)^T."""
    products = list(accumulate(weights, lambda below, w: w @ below))
    back = sigma_yx - products[-1] @ sigma_xx
    gradients = []
    for w, below in zip(weights[:0:-1], products[-2::-1], strict=True):
        gradients.append(back @ below.mT)
        back = w.mT @ back
    return [back, *gradients[::-1]]


def _check_chain(weights: Sequence[np.ndarray], sigma_yx: np.ndarray, sigma_xx: np.ndarray) -> None:
    widths = [weights[0].shape[-1], *(w.shape[-2] for w in weights)]
    chain = [(after, before) for before, after in pairwise(widths)]
    if [w.shape[-2:] for w in weights] != chain:
        raise ValueError(f"layers do not chain: {[w.shape[-2:] for w in weights]}")
    if len({w.shape[:-2] for w in weights}) > 1:
        raise ValueError(f"layers differ in runs: {[w.shape[:-2] for w in weights]}")
    expected = {"sigma_yx": (widths[-1], widths[0]), "sigma_xx": (widths[0], widths[0])}
    for (name, shape), sigma in zip(expected.items(), (sigma_yx, sigma_xx), strict=True):
        if sigma.shape[-2:] != shape:
            raise ValueError(f"{name} has shape {sigma.shape[-2:]}, the network needs {shape}")
