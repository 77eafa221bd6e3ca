"""Plateau of the loss, times to given loss levels, and their variation over seeds."""

import numpy as np
import xarray as xr
from jaxtyping import Float
from xarray import ufuncs

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.loss.stages import drops
from neuralrace.metrics.values import Values, crossing_time, loss_levels
from neuralrace.results.cells import CellResults


@Metric(
    variables={
        "level_time": ("loss_level", "flow time to a share of the initial loss", "tau"),
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
        "plateau_time": (
            "",
            "flow time at which the loss falls most slowly between two drops",
            "tau",
        ),
    },
)
def plateaus(cell: CellResults) -> Values:
    """Flow times at which the loss reaches shares of its initial value, and its plateau.

    Drops of the loss are those of the metric `stages`. The plateau is the point between the first
    and the last drop with the smallest -d log L/dt. It is NaN for a run with fewer than two drops.

    The variation over seeds is the standard deviation of the times over their mean. The deviation
    of a run is its distance from the mean over the mean. Both are 0 if all seeds take equally
    long, and NaN if a run does not reach the level.

    Source: Jarvis et al., "Make Haste Slowly", sec. 6, fig. 6, which shows plateaus and the
    variation of trajectories without measuring them.
    """
    loss = cell.trajectory["loss"]
    times = crossing_time(-loss, -loss_levels(cell), cell.flow_time)
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
    peaks = drops(rate)
    if len(peaks) < 2:
        return np.nan, np.nan
    between = slice(peaks[0], peaks[-1] + 1)
    slowest = peaks[0] + int(np.argmin(rate[between] / loss[between]))
    return float(loss[slowest]), float(time[slowest])
