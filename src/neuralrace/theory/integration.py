"""Integration of flows of several arrays: explicit Runge-Kutta methods, and Euler steps."""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import scipy
from jaxtyping import Float, Int


def solve_flow(
    time: Float[np.ndarray, " time"],
    start: Sequence[Float[np.ndarray, "..."]],
    velocity: Callable[[list[np.ndarray]], Sequence[np.ndarray]],
    rtol: float,
    atol: float,
    method: Literal["DOP853", "RK45"] = "DOP853",
) -> list[Float[np.ndarray, "time ..."]]:
    """Integrates an autonomous flow of several arrays with an explicit Runge-Kutta method.

    The tolerances bound the root mean square error over all entries of all arrays in each step.
    Growth from a small start amplifies this error by about (final size)/(initial size), so choose
    `atol` far below the start.

    Args:
        time: increasing, from 0.
        start: arrays of any shapes.
        velocity: function from the arrays to their rates.
        rtol: relative tolerance of the solver.
        atol: absolute tolerance of the solver.
        method: of order eight, or of order five, which takes less where rates have jumps.

    Returns:
        The arrays at the times.

    Raises:
        ValueError: if `time` does not increase from 0 or later.
        RuntimeError: if the solver fails, or the rates at the start are not finite.
    """
    if time[0] < 0 or np.any(np.diff(time) <= 0):
        raise ValueError("time must increase from 0 or later")
    ends = np.cumsum([part.size for part in start])

    def unpack(flat: np.ndarray) -> list[np.ndarray]:
        parts = np.split(flat, ends[:-1], axis=-1)
        return [part.reshape(flat.shape[:-1] + like.shape)
                for part, like in zip(parts, start, strict=True)]  # fmt: skip

    def rate(_: float, flat: np.ndarray) -> np.ndarray:
        return np.concatenate([part.ravel() for part in velocity(unpack(flat))])

    flat = np.concatenate([part.ravel() for part in start])
    # With rates that are not finite, scipy would search for a first step forever.
    if not np.isfinite(rate(0.0, flat)).all():
        raise RuntimeError(
            f"gradient flow not solved to t = {time[-1]:g}: the initial rates are not finite"
        )
    span = (0.0, time[-1])
    solution = scipy.integrate.solve_ivp(
        rate, span, flat, method=method, t_eval=time, rtol=rtol, atol=atol
    )
    if not solution.success:
        raise RuntimeError(f"gradient flow not solved to t = {time[-1]:g}: {solution.message}")
    return unpack(solution.y.T)


def descend(
    step: Int[np.ndarray, " time"],
    learning_rate: float,
    start: Sequence[Float[np.ndarray, "..."]],
    velocity: Callable[[list[np.ndarray]], Sequence[np.ndarray]],
) -> list[Float[np.ndarray, "time ..."]]:
    """Integrates a flow of several arrays with Euler's method: gradient descent.

    Args:
        step: numbers of steps at which to record, non-decreasing, from 0.
        learning_rate: time per step.
        start: arrays of any shapes.
        velocity: function from the arrays to their rates.

    Returns:
        The arrays after those numbers of steps.

    Raises:
        ValueError: if `step` is negative or decreases.
    """
    gaps = np.diff(step, prepend=0)
    if np.any(gaps < 0):
        raise ValueError("step must not be negative or decrease")
    current, recorded = list(start), []
    with np.errstate(over="ignore", invalid="ignore"):
        for gap in gaps:
            for _ in range(gap):
                rates = velocity(current)
                current = [w + learning_rate * v for w, v in zip(current, rates, strict=True)]
            recorded.append(current)
    return [np.stack(part) for part in zip(*recorded, strict=True)]
