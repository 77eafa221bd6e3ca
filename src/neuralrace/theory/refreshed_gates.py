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
from numpy.polynomial.chebyshev import chebinterpolate

Weights = Float[np.ndarray, "unit input"]
Fields = Float[np.ndarray, "unit sample"]


def relinearised_flow(
    time: Float[np.ndarray, " time"],
    refresh: float,
    start: Float[np.ndarray, "unit input"],
    x: Float[np.ndarray, "sample input"],
    y: Float[np.ndarray, " sample"],
) -> Float[np.ndarray, "time unit input"]:
    """Gradient flow with gates refreshed at every multiple of `refresh`, exact in between.

    The distance to the gradient flow of the ReLU network is of first order in `refresh`. With d the
    largest eigenvalue of sigma_xx, the work for each refresh is about 12 + 5 sqrt(refresh d/K)
    passes over the samples.

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
    rate = float(np.linalg.norm(x.T @ x, 2)) / len(x) / len(start)

    def advance(weights: Weights, fields: Fields, gates: Fields, gap: float) -> Weights:
        return weights + gap * _mean_velocity(_velocity(fields, gates, x, y), gates, gap, rate, x)

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

    def advance(weights: Weights, fields: Fields, gates: Fields, gap: int) -> Weights:
        for left in reversed(range(gap)):
            weights = weights + learning_rate * _velocity(fields, gates, x, y)
            if left:
                fields = weights @ x.T
        return weights

    with np.errstate(over="ignore", invalid="ignore"):
        return _relinearised("step", step, every, start, x, advance)


def _relinearised(
    name: str,
    moments: np.ndarray,
    refresh: float | int,
    start: Weights,
    x: np.ndarray,
    advance: Callable[[Weights, Fields, Fields, Any], Weights],
) -> Float[np.ndarray, "time unit input"]:
    """Weights at the recorded moments.

    `advance` moves weights over a gap with constant gates. It takes the fields w_k.x as well: a
    pass over the samples gives both gates and the first velocity.
    """
    if np.any(np.diff(moments, prepend=0) < 0):
        raise ValueError(f"{name} must not be negative or decrease")
    if not refresh > 0:
        raise ValueError(f"gates must be refreshed after a positive {name}, not {refresh:g}")
    weights, fields, now, refreshed, recorded = start, start @ x.T, 0, 0, []
    gates = (fields > 0).astype(float)

    def move(moment: float | int) -> None:
        nonlocal weights, fields, now
        if moment > now:
            weights = advance(weights, fields, gates, moment - now)
            fields, now = weights @ x.T, moment

    for moment in moments.tolist():
        while (refreshed + 1) * refresh <= moment:
            refreshed += 1
            move(refreshed * refresh)
            gates = (fields > 0).astype(float)
        move(moment)
        recorded.append(weights)
    return np.stack(recorded)


def _velocity(fields: Fields, gates: Fields, x: np.ndarray, y: np.ndarray | float) -> Weights:
    """dw/dt = [b - A w/K]/K, without A, from the fields w_k.x."""
    units = len(fields)
    residual = y - (gates * fields).sum(0) / units
    return (gates * residual) @ x / (units * len(x))


def _mean_velocity(
    start: Weights, gates: Fields, gap: float, rate: float, x: np.ndarray
) -> Weights:
    """Velocity phi_1(-A gap/K^2) v, averaged over a gap with constant gates, from its start v.

    Chebyshev interpolation to machine precision, summed by Clenshaw's recurrence. Its degree grows
    as the square root of gap x rate, where that of a Taylor series grows in proportion.

    Args:
        start: velocity at the start of the gap.
        gates: value of every gate on every sample.
        gap: length of the gap.
        rate: no smaller than the largest eigenvalue of A/K^2.
        x: inputs, a sample per row.
    """
    if not gap * rate:
        return start

    def phi(position: np.ndarray) -> np.ndarray:
        exponent = gap * rate * (1 + position) / 2
        return -np.expm1(-exponent) / exponent

    def shifted(weights: Weights) -> Weights:
        """2 A w/(K^2 rate) - w, whose eigenvalues lie between -1 and 1."""
        return -2 / rate * _velocity(weights @ x.T, gates, x, 0.0) - weights

    coefficients = chebinterpolate(phi, 16 + int(6 * np.sqrt(gap * rate)))  # pyright: ignore
    degree = np.flatnonzero(np.abs(coefficients) > np.finfo(float).eps).max(initial=1)
    above, total = np.zeros_like(start), coefficients[degree] * start
    for coefficient in coefficients[degree - 1 : 0 : -1]:
        above, total = total, coefficient * start + 2 * shifted(total) - above
    return coefficients[0] * start + shifted(total) - above
