"""What metrics have in common: norms, and the times at which curves cross."""

from typing import Literal

import numpy as np
import xarray as xr
from jaxtyping import Float

Values = dict[str, xr.DataArray]
"""What a metric gives: variables by the names that it declares."""


def matrix_norm(
    matrices: Float[np.ndarray, "*runs _ _"], order: Literal[2, "fro"]
) -> Float[np.ndarray, "*runs"]:
    """Spectral or Frobenius norm of each matrix; NaN where it is not finite, as after diverging."""
    known = np.asarray(np.isfinite(matrices).all(axis=(-2, -1)))
    norms = np.linalg.norm(np.where(known[..., None, None], matrices, 0), order, (-2, -1))
    return np.where(known, norms, np.nan)


def crossing_time(curve: xr.DataArray, level: xr.DataArray, time: xr.DataArray) -> xr.DataArray:
    """First time at which a curve reaches a level, interpolated; NaN where it never does.

    Args:
        curve: has dimension `time`.
        level: broadcasts against the curve without `time`.
        time: clock along `time`.
    """
    above = (curve >= level).transpose("time", ...)
    curve, level = xr.broadcast(curve, level)
    curve, level = curve.transpose(*above.dims), level.transpose(*above.dims)
    index = above.argmax("time").clip(min=1)
    before, after = curve.isel(time=index - 1), curve.isel(time=index)
    share = (level.isel(time=0) - before) / (after - before)
    start, end = time.isel(time=index - 1), time.isel(time=index)
    crossed = (start + share * (end - start)).where(above.any("time"))
    return crossed.where(~above.isel(time=0), 0.0).drop_vars(["time", "flow_time"], errors="ignore")


def time_ratio(time: xr.DataArray, other: xr.DataArray) -> xr.DataArray:
    """One time over another; NaN where the other is zero, as that of a curve past its level."""
    return time / other.where(other > 0)
