"""Where the loss rests on its way down, and how much the time of its fall varies over seeds."""

import numpy as np
import xarray as xr
from jaxtyping import Float
from xarray import ufuncs

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values, crossing_time
from neuralrace.metrics.loss.stages import drops
from neuralrace.metrics.relu.imitation import LEVELS
from neuralrace.results.cells import CellResults


@Metric(
    variables={
        "level_time": ("loss_level", "flow time to a share of the initial loss"),
        "level_time_variation": (
            "loss_level",
            "standard deviation over seeds of the time to a share of the initial loss, over its "
            "mean",
        ),
        "level_time_deviation": (
            "loss_level",
            "distance of the time to a share of the initial loss from its mean over seeds, over "
            "that mean",
        ),
        "plateau_level": (
            "",
            "loss over initial loss where it falls most slowly between two drops",
        ),
        "plateau_time": ("", "flow time at which the loss falls most slowly between two drops"),
    },
)
def plateaus(cell: CellResults) -> Values:
    """Times at which the loss has fallen to shares of its initial value, and its longest rest.

    Drops are those of `stages`. The plateau is where the loss falls least for its size, at the
    smallest -d log L/dt between the first drop and the last; NaN for a run with fewer than two. The
    variation over seeds is the standard deviation over the mean of the times, the deviation of a
    run its distance from the mean over the mean; NaN where a run does not get to the level.

    Source: Jarvis et al., "Make Haste Slowly", sec. 6, fig. 6, tells plateaus and the variation of
    trajectories by eye.
    """
    loss = cell.trajectory["loss"]
    shares = xr.DataArray(list(LEVELS), {"loss_level": list(LEVELS)}, ("loss_level",))
    level = loss.isel(time=0, drop=True) * shares
    times = crossing_time(-loss, -level, cell.flow_time)
    mean = times.mean("seed", skipna=False)
    variance = ((times - mean) ** 2).sum("seed", skipna=False) / (times.sizes["seed"] - 1)
    share, time = xr.apply_ufunc(
        _plateau,
        loss / loss.isel(time=0, drop=True),
        cell.flow_time,
        input_core_dims=[["time"], ["time"]],
        output_core_dims=[[], []],
        vectorize=True,
    )
    return {
        "level_time": times,
        "level_time_variation": ufuncs.sqrt(variance) / mean,
        "level_time_deviation": abs(times - mean) / mean,
        "plateau_level": share,
        "plateau_time": time,
    }


def _plateau(
    loss: Float[np.ndarray, " time"], time: Float[np.ndarray, " time"]
) -> tuple[float, float]:
    """Loss and time on the plateau of one curve; NaN without one."""
    rate = -np.gradient(loss) / np.gradient(time)  # exactly 0 where the loss does not change
    found = drops(rate)
    if len(found) < 2:
        return np.nan, np.nan
    between = slice(found[0], found[-1] + 1)
    rest = found[0] + int(np.argmin(rate[between] / loss[between]))
    return float(loss[rest]), float(time[rest])
