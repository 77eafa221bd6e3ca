"""Values of metrics: their type, and matrix norms and crossing times that several metrics need."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr
from jaxtyping import Float

from neuralrace.results.cells import CellResults

Values = dict[str, xr.DataArray]
"""What a metric returns: its variables by their declared names."""
LOSS_LEVELS = (0.5, 0.2, 0.1, 0.05, 0.02)
"""Shares of the initial loss at which learning times are compared."""


def per_run(cell: CellResults, values: Any, **labels: Sequence[Any] | np.ndarray) -> xr.DataArray:
    """An array with the axes (init_scale, seed, ...) and their coordinates.

    Args:
        cell: has the runs.
        values: numbers in the order of these axes.
        labels: the coordinate of every further axis, in the order of the axes.
    """
    runs = {name: cell.trajectory[name].values for name in ("init_scale", "seed")}
    coords = runs | {name: np.asarray(each) for name, each in labels.items()}
    return xr.DataArray(values, coords, tuple(coords))


def matrix_norm(
    matrices: Float[np.ndarray, "*runs _ _"], order: Literal[2, "fro"]
) -> Float[np.ndarray, "*runs"]:
    """Spectral or Frobenius norm of each matrix; NaN where an entry is not finite."""
    finite = np.asarray(np.isfinite(matrices).all(axis=(-2, -1)))
    # the singular value decomposition raises an error if an entry is NaN, as after divergence
    norms = np.linalg.norm(np.where(finite[..., None, None], matrices, 0), order, (-2, -1))
    return np.where(finite, norms, np.nan)


def relative_distance(
    matrices: Float[np.ndarray, "*#runs _row _column"],
    reference: Float[np.ndarray, "*#runs _row _column"],
) -> Float[np.ndarray, "*runs"]:
    """|matrices - reference| / |reference| in the Frobenius norm."""
    axes = (-2, -1)
    return np.asarray(
        np.linalg.norm(matrices - reference, axis=axes) / np.linalg.norm(reference, axis=axes)
    )


def loss_levels(cell: CellResults) -> xr.DataArray:
    """`LOSS_LEVELS` times the initial loss of the simulation, along `loss_level`."""
    shares = xr.DataArray(list(LOSS_LEVELS), {"loss_level": list(LOSS_LEVELS)}, "loss_level")
    return cell.trajectory["loss"].isel(time=0, drop=True) * shares


def crossing_time(curve: xr.DataArray, level: xr.DataArray, time: xr.DataArray) -> xr.DataArray:
    """First time at which a curve reaches a level, by linear interpolation; NaN if it never does.

    The time is 0 for a curve that starts at or above the level.

    Args:
        curve: has the dimension `time`.
        level: broadcasts against the curve without `time`.
        time: times along the dimension `time`.
    """
    return xr.apply_ufunc(
        _first_crossing, curve, level, time, input_core_dims=[["time"], [], ["time"]]
    )


def _first_crossing(
    curve: Float[np.ndarray, "*#runs time"],
    level: Float[np.ndarray, "*#runs"] | float,
    time: Float[np.ndarray, " time"],
) -> Float[np.ndarray, "*runs"]:
    """`crossing_time` of arrays: xarray would align all operands of each operation."""
    curve, level = np.broadcast_arrays(curve, np.asarray(level)[..., None])
    above = curve >= level
    index = above.argmax(axis=-1, keepdims=True).clip(min=1)
    before, after = (np.take_along_axis(curve, at, axis=-1) for at in (index - 1, index))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (level[..., :1] - before) / (after - before)
        start, end = time[index - 1], time[index]
        crossed = (start + share * (end - start))[..., 0]
    return np.where(above[..., 0], 0.0, np.where(above.any(axis=-1), crossed, np.nan))


def time_ratio(time: xr.DataArray, reference: xr.DataArray) -> xr.DataArray:
    """One time over another; NaN where the latter is 0, as for a curve that starts at its level."""
    return time / reference.where(reference > 0)
