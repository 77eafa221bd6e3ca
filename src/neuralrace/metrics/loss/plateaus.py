"""Plateau of the loss, times to given loss levels, and their variation over seeds."""

from itertools import pairwise

import numpy as np
import xarray as xr
from jaxtyping import Float
from xarray import ufuncs

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.loss.stages import drops
from neuralrace.metrics.values import Values, crossing_time, loss_levels
from neuralrace.results.cells import CellResults

PLATEAUS = (1, 2)
"""Numbers of the plateaus that are measured."""
LEAST_PROMINENCE = 1 / 3
"""Least prominence of a drop, as a share of its height."""


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
            "plateau",
            "loss over initial loss where it falls most slowly between two drops",
        ),
        "plateau_time": (
            "plateau",
            "flow time at which the loss falls most slowly between two drops",
            "tau",
        ),
        "plateau_length": ("plateau", "flow time between the drops at its ends", "tau"),
    },
)
def plateaus(cell: CellResults) -> Values:
    """Flow times at which the loss reaches shares of its initial value, and its plateaus.

    A drop is a peak of the rate -dL/dt. Between two drops the rate falls by at least a third of the
    lower one, and the plateau is the point with the smallest -d log L/dt. The first two plateaus
    are numbered in their order. They are NaN for a run with fewer drops.

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
    level, time, length = xr.apply_ufunc(
        plateaus_of,
        loss / loss.isel(time=0, drop=True),
        cell.flow_time,
        input_core_dims=[["time"], ["time"]],
        output_core_dims=[["plateau"]] * 3,
        vectorize=True,
    )
    numbers = {"plateau": np.array(PLATEAUS)}
    return {
        "level_time": times,
        "level_time_variation": ufuncs.sqrt(variance) / mean,
        "level_time_deviation": abs(times - mean) / mean,
        "plateau_level": level.assign_coords(numbers),
        "plateau_time": time.assign_coords(numbers),
        "plateau_length": length.assign_coords(numbers),
    }


def plateaus_of(
    loss: Float[np.ndarray, " time"], time: Float[np.ndarray, " time"]
) -> tuple[
    Float[np.ndarray, " plateau"], Float[np.ndarray, " plateau"], Float[np.ndarray, " plateau"]
]:
    """Loss and time on the first plateaus of one curve, and their lengths; NaN where absent."""
    found = np.full((3, len(PLATEAUS)), np.nan)
    rate = -np.gradient(loss) / np.gradient(time)  # exactly 0 where the loss does not change
    peaks = drops(rate, LEAST_PROMINENCE)[: len(PLATEAUS) + 1]
    for number, (start, end) in enumerate(pairwise(peaks)):
        between = slice(start, end + 1)
        slowest = start + int(np.argmin(rate[between] / loss[between]))
        found[:, number] = loss[slowest], time[slowest], time[end] - time[start]
    level, at, length = found
    return level, at, length
