"""When half of the loss is gone."""

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values, crossing_time, time_ratio
from neuralrace.results.cells import CellResults


@Metric(
    variables={
        "loss_half_time": ("", "flow time to half of the initial loss"),
        "predicted_loss_half_time": ("solution", "flow time to half of the initial loss by theory"),
        "loss_half_time_over_predicted": (
            "solution",
            "time to half of the initial loss over that of theory",
        ),
    },
)
def half_times(cell: CellResults) -> Values:
    """Time at which the loss has fallen to half of its initial value, and that of every solution.

    Half way to zero rather than to where the run happens to end, as closed forms have it; NaN where
    a loss never gets there. Solutions are read at the level of the simulation.
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
