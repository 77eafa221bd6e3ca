"""Decay of the interference between modes of tied networks."""

import numpy as np
from scipy.integrate import cumulative_simpson

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, per_run
from neuralrace.results.cells import CellResults
from neuralrace.results.gram import vectors

READ_UNTIL = np.exp(-2.0)
"""Share of its initial value that the cosine falls to while its decay is read."""


@Metric(
    observables="gram",
    variables={
        "decay_over_sum": (
            "mode_pair",
            "decay of |cos| over the integral of the sum of squared norms",
        ),
        "decay_over_larger": (
            "mode_pair",
            "decay of |cos| over the integral of the larger squared norm",
        ),
        "decay_over_smaller": (
            "mode_pair",
            "decay of |cos| over the integral of the smaller squared norm",
        ),
        "fall_before_growth": ("mode_pair", "fall of log|cos| until the faster mode has grown"),
        "fall_after_growth": (
            "mode_pair",
            "fall of log|cos| in as long a time after the faster mode has grown",
        ),
        "first_order_error": (
            "mode_pair",
            "largest distance from the first-order decay over the initial cosine",
        ),
        "initial_cosine_between_modes": ("mode_pair", "initial |cos|"),
        "final_cosine_between_modes": ("mode_pair", "final |cos|"),
    },
)
def interference(cell: CellResults) -> Values:
    """Decay of cos(W_i, W_j) for pairs of modes i, j, relative to three candidate rates.

    The fall of log|cos| is divided by the time integral of |W_i|^2 + |W_j|^2, and by the integrals
    of the larger and of the smaller of the two. Integrals end when the cosine has fallen to exp(-2)
    of its initial value. A ratio is 1 if the rate describes the decay perfectly.

    The fall is also read before and after the faster mode has grown, over equal times. A mode has
    grown when its squared norm is half of its final value.
    """
    gram, _, _ = vectors(cell)
    gram = gram.transpose("init_scale", "seed", "time", ...)
    learned = np.flatnonzero(cell.target.values > 0)
    first, second = (learned[index] for index in np.triu_indices(len(learned), k=1))
    labels = [f"{i + 1}-{j + 1}" for i, j in zip(first, second, strict=True)]
    squares = np.diagonal(gram.values, axis1=-2, axis2=-1)
    one, other = squares[..., first], squares[..., second]
    cosine = gram.values[..., first, second] / np.sqrt(one * other)
    share = cosine / cosine[:, :, :1]
    time = cell.flow_time.values

    def integral(rate: np.ndarray) -> np.ndarray:
        return cumulative_simpson(rate, x=time, axis=2, initial=0)

    reached = share <= READ_UNTIL
    at = reached.argmax(axis=2)[:, :, None]
    fall = -np.log(np.abs(np.take_along_axis(share, at, axis=2)))

    def decay_over(rate: np.ndarray) -> np.ndarray:
        ratio = fall / np.take_along_axis(integral(rate), at, axis=2)
        return np.where(reached.any(axis=2), ratio[:, :, 0], np.nan)

    def fall_until(step: np.ndarray) -> np.ndarray:
        inside = np.minimum(step, len(time) - 1)[:, :, None]
        fallen = -np.log(np.abs(np.take_along_axis(share, inside, axis=2)))[:, :, 0]
        return np.where(step < len(time), fallen, np.nan)

    larger = np.maximum(one, other)
    grown = (larger >= larger[:, :, -1:] / 2).argmax(axis=2)
    before = fall_until(grown)

    predicted = cosine[:, :, :1] * np.exp(-integral(one + other))
    start = np.abs(cosine[:, :, 0])
    values = {
        "decay_over_sum": decay_over(one + other),
        "decay_over_larger": decay_over(larger),
        "decay_over_smaller": decay_over(np.minimum(one, other)),
        "fall_before_growth": before,
        "fall_after_growth": fall_until(2 * grown) - before,
        "first_order_error": np.abs(cosine - predicted).max(axis=2) / start,
        "initial_cosine_between_modes": start,
        "final_cosine_between_modes": np.abs(cosine[:, :, -1]),
    }
    return {name: per_run(cell, array, mode_pair=labels) for name, array in values.items()}
