"""Time to half of the initial loss, in the simulation and in theory."""

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, crossing_time, time_ratio
from neuralrace.results.cells import CellResults


@Metric(
    variables={
        "loss_half_time": ("", "flow time to half of the initial loss", "tau"),
        "predicted_loss_half_time": (
            "solution",
            "flow time to half of the initial loss by theory",
            "tau",
        ),
        "loss_half_time_over_predicted": (
            "solution",
            "time to half of the initial loss over that of theory",
        ),
    },
)
def half_times(cell: CellResults) -> Values:
    """Flow time at which the loss reaches half of its initial value, measured and predicted.

    The ratio to theory is 1 for perfect agreement. The level is half of the initial loss of the
    simulation, for solutions too: closed forms fall to zero, wherever a run ends. Times are in
    units of tau, and NaN if a loss never reaches the level.
    """
    loss = cell.trajectory["loss"]
    level = loss.isel(time=0, drop=True) / 2
    measured = crossing_time(-loss, -level, cell.flow_time)
    values = {"loss_half_time": measured}
    if "loss" in cell.theory:
        solved = crossing_time(-cell.theory["loss"], -level, cell.flow_time)
        values["predicted_loss_half_time"] = solved
        values["loss_half_time_over_predicted"] = time_ratio(measured, solved)
    return values
