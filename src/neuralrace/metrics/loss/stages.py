"""Number of separate drops of the loss."""

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from scipy.signal import find_peaks

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults

LEAST_HEIGHT = 1e-3
"""Least height of a drop, a peak of -dL/dt, as a share of the highest peak."""
LEAST_PROMINENCE = 0.5
"""Least prominence of a stage, as a share of its height."""


@Metric(
    variables={
        "stages": ("", "separate drops of the loss"),
        "initial_rate_share": ("", "initial rate at which the loss falls over the largest"),
    },
)
def stages(cell: CellResults) -> Values:
    """Number of separate drops of the loss, and its initial rate over its largest rate.

    A drop is a peak of the rate -dL/dt. Between two drops, and before the first, the rate is less
    than half of that of the lower drop. A sum of decaying exponentials falls fastest at the start:
    it has no drops and an initial rate share of 1. The share is near 0 if the loss starts on a
    plateau. Neither number depends on the units of loss and time; both are NaN for a diverged run.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 6, which distinguishes the two regimes by eye.
    """
    loss = cell.trajectory["loss"]
    axis = loss.get_axis_num("time")
    rate = loss.copy(data=-np.gradient(loss.values, cell.flow_time.values, axis=axis))
    count = xr.apply_ufunc(
        lambda curve: float(len(drops(curve, LEAST_PROMINENCE))),
        rate,
        input_core_dims=[["time"]],
        vectorize=True,
    )
    return {
        "stages": count.where(rate.notnull().all("time")),
        "initial_rate_share": rate.isel(time=0, drop=True) / rate.max("time", skipna=False),
    }


def drops(rate: Float[np.ndarray, " time"], least_prominence: float) -> Int[np.ndarray, " drop"]:
    """Indices of the separate peaks of one curve of the rate -dL/dt.

    Args:
        rate: the curve.
        least_prominence: least prominence of a peak, as a share of its height.
    """
    peaks, properties = find_peaks(rate, height=LEAST_HEIGHT * np.max(rate), prominence=0)
    return peaks[properties["prominences"] >= least_prominence * properties["peak_heights"]]
