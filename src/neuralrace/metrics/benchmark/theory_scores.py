"""Scores of every solution of a cell, and of the mean of other seeds."""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from neuralrace.config.variables import RUN_AXES
from neuralrace.extensions.registry import Metric
from neuralrace.metrics.benchmark import OTHER_SEEDS
from neuralrace.metrics.values import Values, crossing_time
from neuralrace.results.cells import CellResults


@Metric(
    variables={
        "loss_error": ("entry", "largest distance of loss from simulation over initial loss"),
        "initial_loss_error": ("entry", "distance of the losses at the start over initial loss"),
        "loss_shape_error": (
            "entry",
            "the same after a shift in time by which both losses are halfway down at once",
        ),
        "halfway_time_log_ratio": (
            "entry",
            "absolute log ratio of the predicted to the simulated time halfway down the loss",
        ),
        "final_loss_error": ("entry", "distance of the final losses over initial loss"),
        "mode_error": ("entry", "largest distance of a mode's strength over the largest strength"),
        "layer_norm_error": ("entry", "largest distance of a layer's norm over the largest norm"),
        "zero_shot_error": (
            "entry",
            "largest distance of the relative error on pairs that are never trained",
        ),
        "receptive_field_error": (
            "entry",
            "distance of the final receptive fields over their norm",
        ),
    },
)
def theory_scores(cell: CellResults) -> Values:
    """Distance of the predictions of every entry of the benchmark from the simulation.

    The entries are the solutions of the cell and, last, `other_seeds`: the mean over the other
    seeds of the simulation, which knows the task but not the initial weights. All scores are 0 for
    perfect agreement. A score is NaN where an entry does not predict the quantity, where it was not
    recorded, and for diverged runs. Halfway is the mean of the initial and the final simulated
    loss; times are clipped to the records, and the last stands for a loss that never gets there.
    """
    loss, predicted = cell.trajectory["loss"], _predicted(cell, "loss", cell.trajectory["loss"])
    initial = loss.isel(time=0, drop=True)
    halfway = (initial + loss.isel(time=-1, drop=True)) / 2
    reached = crossing_time(-loss, -halfway, cell.flow_time)
    expected = crossing_time(-predicted, -halfway, cell.flow_time)
    first, last = (float(cell.flow_time[at]) for at in (1, -1))
    late: Any = np.log(expected.fillna(last).clip(first) / reached.clip(first))
    known = predicted.notnull().all("time")
    shifted = _delayed(predicted, (reached - expected).fillna(0), cell.flow_time)
    error = {"loss": abs(predicted - loss) / initial, "shape": abs(shifted - loss) / initial}
    values = {
        "loss_error": error["loss"].max("time", skipna=False),
        # a theory that was late predicts nothing beyond its end
        "loss_shape_error": error["shape"].max("time").where(known & loss.notnull().all("time")),
        "halfway_time_log_ratio": abs(late).where(known),
        "initial_loss_error": error["loss"].isel(time=0, drop=True),
        "final_loss_error": error["loss"].isel(time=-1, drop=True),
    }
    curves = {
        "mode_error": ("mode_strength", ["mode"]),
        "layer_norm_error": ("layer_norm", ["layer"]),
        "zero_shot_error": ("untrained_error", []),
    }
    for name, (variable, dims) in curves.items():
        if variable in cell.trajectory:
            simulated = cell.trajectory[variable]
            distance = abs(_predicted(cell, variable, simulated) - simulated)
            # relative errors have a scale of their own
            scale = abs(simulated).max(["time", *dims]) if dims else 1.0
            values[name] = distance.max(["time", *dims], skipna=False) / scale
    if "receptive_fields" in cell.theory:
        learned = cell.receptive_fields.isel(snapshot=-1, drop=True)
        distance = _predicted(cell, "receptive_fields", learned) - learned
        # units are exchangeable: the mean over seeds of the first one says nothing of it
        distance = distance.where(distance["entry"] != OTHER_SEEDS)
        norm, size = (
            np.sqrt((fields**2).sum(("unit", "input"), skipna=False))
            for fields in (distance, learned)
        )
        values["receptive_field_error"] = norm / size
    return {
        name: value.transpose("init_scale", "seed", "entry").drop_vars(
            ("solution", "flow_time"), errors="ignore"
        )
        for name, value in values.items()
    }


def _predicted(cell: CellResults, variable: str, simulated: xr.DataArray) -> xr.DataArray:
    """What each entry predicts of a simulated variable, along `entry`."""
    finite = simulated.notnull().all([dim for dim in simulated.dims if dim not in RUN_AXES])
    known = simulated.where(finite)  # a diverged run says nothing of the others
    count = finite.sum("seed") - 1
    others = (known.sum("seed") - known) / count.where(count > 0)
    others = others.expand_dims(entry=[OTHER_SEEDS])
    if variable not in cell.theory:
        unknown = [*cell.spec.solutions, OTHER_SEEDS]
        return others.reindex(entry=unknown)
    solved = cell.theory[variable].rename(solution="entry")
    return xr.concat([solved, others], "entry", coords="minimal", compat="override")


def _delayed(curve: xr.DataArray, delay: xr.DataArray, time: xr.DataArray) -> xr.DataArray:
    """Curves that start later by a delay, at their first value until then; NaN beyond the end."""

    def interpolate(
        values: Float[np.ndarray, " time"], late: float, at: Float[np.ndarray, " time"]
    ) -> Float[np.ndarray, " time"]:
        return np.interp(at - late, at, values, right=np.nan)

    return xr.apply_ufunc(
        interpolate,
        curve,
        delay,
        time,
        input_core_dims=[["time"], [], ["time"]],
        output_core_dims=[["time"]],
        vectorize=True,
    )
