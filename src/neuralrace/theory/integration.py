"""Integration of flows of several arrays: Runge-Kutta of order eight, and Euler steps."""

from collections.abc import Callable, Sequence

import numpy as np
import scipy
from jaxtyping import Float, Int

from neuralrace.training.memory import available_memory

INTEGRATED = ("flow", "gated_flow")
"""Solutions that integrate all weights, and assume nothing about the start."""
MOST_RATES = 5 * 10**6
"""Evaluations of the rates after which a flow is given up: minutes for a small network. The papers'
flows need at most 10^4."""
WINDOW, PESSIMISM = 2000, 30
"""A flow is also given up at once if it would need more than `PESSIMISM` times as many at the pace
of the last `WINDOW`. Steps are up to that much shorter while a mode is learned than after it."""
COPIES = 3
"""Copies of the path that exist at once: that of the solver, its transpose, and a product of it."""
SMALL = 10**8
"""Bytes of a path for which the free memory is not looked up."""


def solve_flow(
    time: Float[np.ndarray, " time"],
    start: Sequence[Float[np.ndarray, "..."]],
    velocity: Callable[[list[np.ndarray]], Sequence[np.ndarray]],
    rtol: float,
    atol: float,
) -> list[Float[np.ndarray, "time ..."]]:
    """Integrates an autonomous flow of several arrays with DOP853, an explicit order-eight method.

    The tolerances bound the root mean square error over all entries of all arrays in each step.
    Growth from a small start amplifies this error by about (final size)/(initial size), so choose
    `atol` far below the start.

    Args:
        time: increasing, from 0.
        start: arrays of any shapes.
        velocity: function from the arrays to their rates.
        rtol: relative tolerance of the solver.
        atol: absolute tolerance of the solver.

    Returns:
        The arrays at the times.

    Raises:
        ValueError: if `time` does not increase from 0 or later.
        RuntimeError: if the solver fails, the rates at the start are not finite, they are so large
            that the flow would need more than `MOST_RATES` evaluations, or the path does not fit
            into memory.
    """
    if time[0] < 0 or np.any(np.diff(time) <= 0):
        raise ValueError("time must increase from 0 or later")
    refuse_path(len(time), sum(part.size for part in start))
    ends = np.cumsum([part.size for part in start])

    def unpack(flat: np.ndarray) -> list[np.ndarray]:
        parts = np.split(flat, ends[:-1], axis=-1)
        return [part.reshape(flat.shape[:-1] + like.shape)
                for part, like in zip(parts, start, strict=True)]  # fmt: skip

    made, reached = 0, 0.0

    def rate(now: float, flat: np.ndarray) -> np.ndarray:
        nonlocal made, reached
        made += 1
        if made % WINDOW == 0:
            left = (time[-1] - now) * WINDOW
            if made > MOST_RATES or left > PESSIMISM * MOST_RATES * (now - reached):
                raise RuntimeError(
                    f"gradient flow not solved to t = {time[-1]:g}: after {made} evaluations of "
                    f"its rates it is at t = {now:.2g}; lower the learning rate, or scale inputs "
                    "down"
                )
            reached = now
        return np.concatenate([part.ravel() for part in velocity(unpack(flat))])

    flat = np.concatenate([part.ravel() for part in start])
    # With rates that are not finite, scipy would search for a first step forever.
    if not np.isfinite(rate(0.0, flat)).all():
        raise RuntimeError(
            f"gradient flow not solved to t = {time[-1]:g}: the initial rates are not finite"
        )
    span = (0.0, time[-1])
    solution = scipy.integrate.solve_ivp(
        rate, span, flat, method="DOP853", t_eval=time, rtol=rtol, atol=atol
    )
    if not solution.success:
        raise RuntimeError(f"gradient flow not solved to t = {time[-1]:g}: {solution.message}")
    return unpack(solution.y.T)


def refuse_path(times: int, numbers: int) -> None:
    """Raises RuntimeError if a path of so many numbers at so many times does not fit into memory.

    Args:
        times: times at which it is recorded.
        numbers: numbers in all arrays of a flow.
    """
    needed = 8 * COPIES * times * numbers
    if needed > SMALL and needed > (available := available_memory()):
        raise RuntimeError(
            f"gradient flow at {times} times takes {needed / 1e9:.3g} GB of memory, and the "
            f"machine has {available / 1e9:.3g} GB left; record less often, or fewer seeds"
        )


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
