"""When half of the loss is gone."""

from neuralrace.metrics.describe import Values, crossing_time, described, time_ratio
from neuralrace.records.evidence import Evidence


def half_times(evidence: Evidence) -> Values:
    """Time at which the loss has fallen to half of its initial value, and that of every solution.

    Half way to zero rather than to where the run happens to end, as closed forms have it; NaN where
    a loss never gets there. Solutions are read at the level of the simulation.
    """
    loss = evidence.trajectory["loss"]
    level = loss.isel(time=0, drop=True) / 2
    measured = crossing_time(-loss, -level, evidence.time)
    values = {"loss_half_time": described(measured, "flow time to half of the initial loss")}
    if evidence.theory is not None and "loss" in evidence.theory:
        solved = crossing_time(-evidence.theory["loss"], -level, evidence.time)
        values["predicted_loss_half_time"] = described(
            solved, "flow time to half of the initial loss by theory"
        )
        values["loss_half_time_over_predicted"] = described(
            time_ratio(measured, solved), "time to half of the initial loss over that of theory"
        )
    return values
