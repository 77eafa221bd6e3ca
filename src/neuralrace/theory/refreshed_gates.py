"""ReLU networks as gated linear networks whose gates are refreshed from the weights at intervals.

The network of K units is yhat(x) = (1/K) sum_k g_k(x) w_k.x. Its gates g_k(x) = 1(w_k.x > 0) are
computed from the weights at every refresh and kept in between. The loss is 1/2 <(y - yhat)^2> over
the samples. While the gates are kept, learning is linear, with b and A as in eqs. 5 and 6:

    K dw/dt = b - A w/K,   w(t + h) = w(t) + h phi_1(-A h/K^2) [b - A w(t)/K]/K,

phi_1(z) = (e^z - 1)/z. Components on which A vanishes never move. As the interval goes to 0, this
approaches the ReLU network. A sample on the boundary of a half-space is outside it, in agreement
with the derivative of ReLU.

Source: notes on localisation, sections 2.3 and 5; eqs. 3 to 7, eq. 7 with A/K for A.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from neuralrace.networks.gates.half_space import half_spaces
from neuralrace.theory.integration import descend


def relinearised_flow(
    time: Float[np.ndarray, " time"],
    refresh: float,
    start: Float[np.ndarray, "unit input"],
    x: Float[np.ndarray, "sample input"],
    y: Float[np.ndarray, " sample"],
) -> Float[np.ndarray, "time unit input"]:
    """Gradient flow with gates refreshed at every multiple of `refresh`, exact in between.

    The distance to the gradient flow of the ReLU network is of first order in `refresh`. The work
    is about 20 passes over the samples per K/d of time, with d the largest eigenvalue of sigma_xx,
    and some 8 more per refresh.

    Args:
        time: non-decreasing gradient-flow time, from 0.
        refresh: time between refreshes; infinite to keep the initial gates.
        start: initial weights.
        x: inputs, a sample per row.
        y: targets.

    Returns:
        The weights at the times, to rounding.

    Raises:
        ValueError: if `time` is negative or decreases, or `refresh` is not positive.

    Source: notes on localisation, section 2.3; eq. 7 with A/K for A.
    """
    # No eigenvalue of A exceeds K times the largest one of sigma_xx.
    rate = np.linalg.norm(x, 2) ** 2 / len(x) / len(start)

    def advance(weights: np.ndarray, gates: np.ndarray, gap: float) -> np.ndarray:
        pieces = max(1, int(np.ceil(gap * rate)))
        for _ in range(pieces):
            weights = _taylor(weights, gates, gap / pieces, x, y)
        return weights

    return _relinearised("time", time, refresh, start, x, advance)


def relinearised_descent(
    step: Int[np.ndarray, " time"],
    learning_rate: float,
    every: int,
    start: Float[np.ndarray, "unit input"],
    x: Float[np.ndarray, "sample input"],
    y: Float[np.ndarray, " sample"],
) -> Float[np.ndarray, "time unit input"]:
    """Full-batch gradient descent with gates refreshed every few steps.

    With `every` = 1 this is gradient descent of the ReLU network. A step size that is too large
    returns infinite or NaN weights and raises no error.

    Args:
        step: numbers of steps at which to record, non-decreasing, from 0.
        learning_rate: gradient-flow time per step.
        every: steps between refreshes.
        start: initial weights.
        x: inputs, a sample per row.
        y: targets.

    Returns:
        The weights after those numbers of steps.

    Raises:
        ValueError: if `step` is negative or decreases, or `every` is not positive.

    Source: notes on localisation, section 2.3; eq. 4.
    """

    def advance(weights: np.ndarray, gates: np.ndarray, gap: int) -> np.ndarray:
        (path,) = descend(np.array([gap]), learning_rate, [weights],
                          lambda now: [_velocity(now[0], gates, x, y)])  # fmt: skip
        return path[0]

    return _relinearised("step", step, every, start, x, advance)


def _relinearised(
    name: str,
    moments: np.ndarray,
    refresh: float | int,
    start: np.ndarray,
    x: np.ndarray,
    advance: Callable[[np.ndarray, np.ndarray, Any], np.ndarray],
) -> np.ndarray:
    """Weights at the recorded moments; `advance` moves them over a gap with constant gates."""
    if np.any(np.diff(moments, prepend=0) < 0):
        raise ValueError(f"{name} must not be negative or decrease")
    if not refresh > 0:
        raise ValueError(f"gates must be refreshed after a positive {name}, not {refresh:g}")
    weights, gates, now, refreshed, recorded = start, half_spaces(x, start), 0, 0, []
    for moment in moments.tolist():
        while (refreshed + 1) * refresh <= moment:
            refreshed += 1
            weights = advance(weights, gates, refreshed * refresh - now)
            gates, now = half_spaces(x, weights), refreshed * refresh
        weights, now = advance(weights, gates, moment - now), moment
        recorded.append(weights)
    return np.stack(recorded)


def _velocity(
    weights: np.ndarray, gates: np.ndarray, x: np.ndarray, y: np.ndarray | float
) -> np.ndarray:
    """dw/dt = [b - A w/K]/K, without A."""
    units = len(weights)
    residual = y - (gates * (weights @ x.T)).sum(0) / units
    return (gates * residual) @ x / (units * len(x))


def _taylor(
    weights: np.ndarray, gates: np.ndarray, gap: float, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Weights after a gap of at most 1/(largest rate), by a Taylor series with terms below 1/m!."""
    term, order = gap * _velocity(weights, gates, x, y), 1
    weights = weights + term
    while np.linalg.norm(term) > np.finfo(float).eps * np.linalg.norm(weights):
        order += 1
        term = gap / order * _velocity(term, gates, x, 0.0)
        weights = weights + term
    return weights
