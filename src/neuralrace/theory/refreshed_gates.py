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
from scipy.special import ive

BLOCK = 2**9
"""Most samples that a pass computes at a time: what it knows of them then stays in the cache."""

Weights = Float[np.ndarray, "run unit input"]
Gates = list[Float[np.ndarray, "run unit _"]]
"""Values of every gate, by block of samples."""
Samples = list[tuple[Float[np.ndarray, "_ input"], Float[np.ndarray, " _"]]]
"""Inputs and targets, by block of samples."""


def relinearised_flow(
    time: Float[np.ndarray, " time"],
    refresh: float,
    start: Float[np.ndarray, "*runs unit input"],
    x: Float[np.ndarray, "sample input"],
    y: Float[np.ndarray, " sample"],
) -> Float[np.ndarray, "*runs time unit input"]:
    """Gradient flow with gates refreshed at every multiple of `refresh`, exact in between.

    The distance to the gradient flow of the ReLU network is of first order in `refresh`. With d the
    largest eigenvalue of sigma_xx, the work for each refresh is about 6 + 5 sqrt(refresh d/K)
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
    rate = float(np.linalg.norm(x.T @ x, 2)) / len(x) / start.shape[-2]
    samples = _blocks(x, y)
    without_targets = _blocks(x, np.zeros_like(y))

    def advance(weights: Weights, gates: Gates | None, gap: float) -> tuple[Weights, Gates]:
        velocity, gates = _velocity(weights, gates, samples)
        return weights + gap * _mean_velocity(velocity, gates, gap, rate, without_targets), gates

    return _relinearised("time", time, refresh, start, advance)


def relinearised_descent(
    step: Int[np.ndarray, " time"],
    learning_rate: float,
    every: int,
    start: Float[np.ndarray, "*runs unit input"],
    x: Float[np.ndarray, "sample input"],
    y: Float[np.ndarray, " sample"],
    normals: Callable[[Weights], Weights] | None = None,
) -> Float[np.ndarray, "*runs time unit input"]:
    """Full-batch gradient descent with gates refreshed every few steps.

    With `every` = 1 and without `normals` this is gradient descent of the ReLU network. A step size
    that is too large returns infinite or NaN weights and raises no error.

    Args:
        step: numbers of steps at which to record, non-decreasing, from 0.
        learning_rate: gradient-flow time per step.
        every: steps between refreshes.
        start: initial weights.
        x: inputs, a sample per row.
        y: targets.
        normals: the normals of the half-spaces on which gates are open, as a function of the
            weights; the weights themselves if absent.

    Returns:
        The weights after those numbers of steps.

    Raises:
        ValueError: if `step` is negative or decreases, or `every` is not positive.

    Source: notes on localisation, section 2.3; eq. 4.
    """
    samples = _blocks(x, y)

    def advance(weights: Weights, gates: Gates | None, gap: int) -> tuple[Weights, Gates | None]:
        if gates is None and normals is not None:
            gates = [(normals(weights) @ x.T > 0).astype(float) for x, _ in samples]
        for _ in range(gap):
            velocity, gates = _velocity(weights, gates, samples)
            weights = weights + learning_rate * velocity
        return weights, gates

    with np.errstate(over="ignore", invalid="ignore"):
        return _relinearised("step", step, every, start, advance)


def _relinearised(
    name: str,
    moments: np.ndarray,
    refresh: float | int,
    start: Float[np.ndarray, "*runs unit input"],
    advance: Callable[[Weights, Gates | None, Any], tuple[Weights, Gates | None]],
) -> Float[np.ndarray, "*runs time unit input"]:
    """Weights of all runs at the recorded moments.

    `advance` moves weights over a gap with constant gates, and returns both. Without gates, it
    takes those of the weights: one pass over the samples gives gates and the first velocity.
    """
    if np.any(np.diff(moments, prepend=0) < 0):
        raise ValueError(f"{name} must not be negative or decrease")
    if not refresh > 0:
        raise ValueError(f"gates must be refreshed after a positive {name}, not {refresh:g}")
    weights, gates, now, refreshed, recorded = start.reshape(-1, *start.shape[-2:]), None, 0, 0, []

    def move(moment: float | int) -> None:
        nonlocal weights, gates, now
        if moment > now:
            weights, gates = advance(weights, gates, moment - now)
            now = moment

    for moment in moments.tolist():
        while (refreshed + 1) * refresh <= moment:
            refreshed += 1
            move(refreshed * refresh)
            gates = None
        move(moment)
        recorded.append(weights)
    path = np.stack(recorded, axis=1)
    return path.reshape(*start.shape[:-2], *path.shape[1:])


def _blocks(x: Float[np.ndarray, "sample input"], y: Float[np.ndarray, " sample"]) -> Samples:
    starts = range(0, len(x), BLOCK)
    return [(x[first : first + BLOCK], y[first : first + BLOCK]) for first in starts]


def _velocity(weights: Weights, gates: Gates | None, samples: Samples) -> tuple[Weights, Gates]:
    """dw/dt = [b - A w/K]/K, without A, and the gates; those of the weights if none are given."""
    (_, units, inputs), count = weights.shape, sum(len(y) for _, y in samples)
    flat, total, used = weights.reshape(-1, inputs), 0.0, []
    for number, (x, y) in enumerate(samples):
        fields = (flat @ x.T).reshape(*weights.shape[:2], len(x))
        gate = (fields > 0).astype(float) if gates is None else gates[number]
        fields *= gate
        residual = y - fields.sum(1) / units
        # the weights of all runs in one product, as those of one are few
        total += np.multiply(gate, residual[:, None], out=fields).reshape(len(flat), -1) @ x
        used.append(gate)
    return (total / (units * count)).reshape(weights.shape), used


def _mean_velocity(
    start: Weights, gates: Gates, gap: float, rate: float, samples: Samples
) -> Weights:
    """Velocity phi_1(-A gap/K^2) v, averaged over a gap with constant gates, from its start v.

    Chebyshev interpolation to machine precision, summed by Clenshaw's recurrence. Its degree grows
    as the square root of gap x rate, where that of a Taylor series grows in proportion.

    Args:
        start: velocity at the start of the gap.
        gates: value of every gate on every sample.
        gap: length of the gap.
        rate: no smaller than the largest eigenvalue of A/K^2.
        samples: inputs, with targets 0.
    """
    reach = gap * rate
    if not reach:
        return start

    def phi(position: np.ndarray) -> np.ndarray:
        exponent = reach * (1 + position) / 2
        return -np.expm1(-exponent) / exponent

    def shifted(weights: Weights) -> Weights:
        """2 A w/(K^2 rate) - w, whose eigenvalues lie between -1 and 1."""
        return -2 / rate * _velocity(weights, gates, samples)[0] - weights

    # phi_1 is a mean of exponentials, whose coefficients are Bessel functions. Coefficients that
    # are computed would not show the degree, as their rounding errors exceed the last ones.
    largest = 2 * ive(np.arange(16 + int(6 * np.sqrt(reach))), reach / 2)
    degree = max(np.count_nonzero(largest > np.finfo(float).eps) - 1, 1)
    coefficients = chebinterpolate(phi, degree)  # pyright: ignore
    above, total = np.zeros_like(start), coefficients[degree] * start
    for coefficient in coefficients[degree - 1 : 0 : -1]:
        above, total = total, coefficient * start + 2 * shifted(total) - above
    return coefficients[0] * start + shifted(total) - above
