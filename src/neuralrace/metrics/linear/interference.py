"""How fast the interference between modes decays."""

import numpy as np
import xarray as xr
from scipy.integrate import cumulative_simpson

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.results.cells import CellResults
from neuralrace.results.gram import vectors

# Decay is read while the cosine falls to this share of its start.
READ_UNTIL = np.exp(-2.0)


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
    """Decay of cos(W_i, W_j) of tied modes, in units of the candidate rates.

    The measured fall of log|cos| is divided by the integral of |W_i|^2 + |W_j|^2, and by those of
    the larger and of the smaller of the two, up to the time at which the cosine has fallen to
    exp(-2) of its start. Besides, the fall is read until the faster of the two has grown, which is
    when its squared norm is half of its last, and in as long a time after that.
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
    runs = {name: gram[name].values for name in ("init_scale", "seed")}

    def per_pair(values: np.ndarray) -> xr.DataArray:
        return xr.DataArray(
            values, dims=("init_scale", "seed", "mode_pair"), coords={**runs, "mode_pair": labels}
        )

    return {
        "decay_over_sum": per_pair(decay_over(one + other)),
        "decay_over_larger": per_pair(decay_over(larger)),
        "decay_over_smaller": per_pair(decay_over(np.minimum(one, other))),
        "fall_before_growth": per_pair(before),
        "fall_after_growth": per_pair(fall_until(2 * grown) - before),
        "first_order_error": per_pair(np.abs(cosine - predicted).max(axis=2) / start),
        "initial_cosine_between_modes": per_pair(start),
        "final_cosine_between_modes": per_pair(np.abs(cosine[:, :, -1])),
    }
