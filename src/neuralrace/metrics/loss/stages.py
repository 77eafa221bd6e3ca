"""Whether the loss falls in stages or all at once."""

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from scipy.signal import find_peaks

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.results.cells import CellResults

# A drop is a peak of -dL/dt at least this high, as a share of the highest, ...
LEAST_HEIGHT = 1e-3
# ... that stands out from its surroundings by at least this share of its own height.
LEAST_PROMINENCE = 0.5


@Metric(
    variables={
        "stages": ("", "separate drops of the loss"),
        "initial_rate_share": ("", "initial rate at which the loss falls over the largest"),
    },
)
def stages(cell: CellResults) -> Values:
    """Separate drops of the loss, and whether it falls from the start.

    Between two drops, and before the first, the rate -dL/dt is less than half of what it is in the
    lower one. A loss that decays exponentially, or as any sum of exponentials, falls fastest at the
    start: it has no drops, and the initial rate is the largest, a share of 1. On a plateau before
    the first drop that share is near 0. Neither depends on the units of loss and time; both are NaN
    for a run that diverged.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 6, tells the two regimes apart by eye.
    """
    loss = cell.trajectory["loss"]
    axis = loss.get_axis_num("time")
    rate = loss.copy(data=-np.gradient(loss.values, cell.flow_time.values, axis=axis))
    count = xr.apply_ufunc(
        lambda curve: float(len(drops(curve))), rate, input_core_dims=[["time"]], vectorize=True
    )
    return {
        "stages": count.where(rate.notnull().all("time")),
        "initial_rate_share": rate.isel(time=0, drop=True) / rate.max("time", skipna=False),
    }


def drops(rate: Float[np.ndarray, " time"]) -> Int[np.ndarray, " drop"]:
    """Where the separate peaks of one curve of the rate -dL/dt are; see `stages`."""
    peaks, found = find_peaks(rate, height=LEAST_HEIGHT * np.max(rate), prominence=0)
    return peaks[found["prominences"] >= LEAST_PROMINENCE * found["peak_heights"]]
