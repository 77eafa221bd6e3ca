"""Convergence of the linear map of a network: when, and how evenly."""

import numpy as np
import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, crossing_time, per_run
from neuralrace.results.cells import CellResults


@Metric(
    observables="linear_map",
    variables={
        "final_residual": ("", "final distance from the target"),
        "convergence_time": ("", "time at which a tenth of the target is left", "tau"),
        "plateau_share": ("", "time below 10% of the target over time to 90%"),
        "peak_growth": ("", "largest growth rate of |P|", "1/tau"),
        "mean_growth": ("", "mean growth rate of |P| up to 90%", "1/tau"),
    },
)
def convergence(cell: CellResults) -> Values:
    """Times and rates at which the product of all weights P approaches the least-squares map.

    Times are flow times in units of tau; a time is NaN if its level is never reached. Norms are
    relative to the norm of the target: the final residual is 0 for perfect convergence.

    Source: Basu et al., section 4, which reads phases of growth and speed off curves.
    """
    total = cell.trajectory["linear_map"]
    target = cell.data.sigma_yx @ np.linalg.pinv(cell.data.sigma_xx)
    size = np.linalg.norm(target)
    like = cell.trajectory["loss"]
    strength = like.copy(data=np.linalg.norm(total.values, axis=(-2, -1)) / size)
    residual = like.copy(data=np.linalg.norm(target - total.values, axis=(-2, -1)) / size)
    time = cell.flow_time

    def reached(curve: xr.DataArray, level: float) -> xr.DataArray:
        return crossing_time(curve, xr.full_like(curve.isel(time=0, drop=True), level), time)

    tenth, most = reached(strength, 0.1), reached(strength, 0.9)
    rates = np.diff(strength.values, axis=-1) / np.diff(time.values)
    start = strength.isel(time=0, drop=True)
    return {
        "final_residual": residual.isel(time=-1, drop=True),
        "convergence_time": reached(-residual, -0.1),
        "plateau_share": (tenth / most).where(start < 0.1, 0.0),
        "peak_growth": per_run(cell, rates.max(axis=-1)),
        "mean_growth": ((0.9 - start) / most).where(most > 0),
    }
