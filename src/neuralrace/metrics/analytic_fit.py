"""How far simulation is from theory, and why."""

from neuralrace.metrics.describe import Values
from neuralrace.records.evidence import Evidence
from neuralrace.registry import Metric


@Metric(
    solutions="*",
    gives={
        "loss_error_sup": ("solution", "largest distance of loss from theory over initial loss"),
        "loss_error_mean": ("solution", "mean distance of loss from theory over initial loss"),
        "discretisation_error": (
            "",
            "largest distance of gradient descent from gradient flow over initial loss",
        ),
        "approximation_error": (
            "solution",
            "largest distance of theory from gradient flow over initial loss",
        ),
        "mode_error_sup": (
            "solution",
            "largest distance of a mode from theory over the largest target",
        ),
        "pathway_error_sup": (
            "solution pathway",
            "largest distance of a pathway's singular values from theory over the largest of all",
        ),
    },
)
def analytic_fit(evidence: Evidence) -> Values:
    """Distance of every solution from the simulation, in the loss and in the modes.

    With the gradient flow among the solutions the distance splits: simulation against flow is the
    discretisation error of gradient descent, theory against flow the approximation error of the
    theory. Losses are in units of the initial loss, modes of the largest target.
    """
    simulated = evidence.trajectory["loss"]
    predicted = evidence.solved("loss", "one that gives a loss")
    scale = simulated.isel(time=0, drop=True)
    error = abs(predicted - simulated) / scale
    values = {
        "loss_error_sup": error.max("time", skipna=False),
        "loss_error_mean": error.mean("time", skipna=False),
    }
    flows = [name for name in evidence.cell.solutions if name in ("flow", "gated_flow")]
    if flows:
        flow = predicted.sel(solution=flows[0], drop=True)
        values["discretisation_error"] = (abs(flow - simulated) / scale).max("time", skipna=False)
        values["approximation_error"] = (abs(predicted - flow) / scale).max("time", skipna=False)
    theory = evidence.theory
    if "mode_strength" in evidence.trajectory and theory is not None and "mode_strength" in theory:
        modes = theory["mode_strength"]
        off = abs(modes - evidence.trajectory["mode_strength"]) / abs(evidence.target).max()
        values["mode_error_sup"] = off.max(("time", "mode"), skipna=False)
    if (
        "pathway_values" in evidence.trajectory
        and theory is not None
        and "pathway_values" in theory
    ):
        own = evidence.trajectory["pathway_values"]
        far = abs(theory["pathway_values"] - own).max("time", skipna=False)
        values["pathway_error_sup"] = far.max("pathway_mode", skipna=False) / own.max(
            ("time", "pathway", "pathway_mode")
        )
    return values
