"""Distance of the simulated loss and modes from theory."""

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults


@Metric(
    solutions="*loss",
    variables={
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
def analytic_fit(cell: CellResults) -> Values:
    """Distance of every solution from the simulation, in the loss and in the modes.

    Distances are 0 for perfect agreement. Losses are relative to the initial loss, modes to the
    largest target. If gradient flow is among the solutions, the distance splits in two. Simulation
    against flow is the discretisation error of gradient descent. Theory against flow is the
    approximation error of the theory.
    """
    simulated = cell.trajectory["loss"]
    predicted = cell.get("theory", "loss")
    scale = simulated.isel(time=0, drop=True)
    error = abs(predicted - simulated) / scale
    values = {
        "loss_error_sup": error.max("time", skipna=False),
        "loss_error_mean": error.mean("time", skipna=False),
    }
    flows = [name for name in cell.spec.solutions if name in ("flow", "gated_flow")]
    if flows:
        flow = predicted.sel(solution=flows[0], drop=True)
        values["discretisation_error"] = (abs(flow - simulated) / scale).max("time", skipna=False)
        values["approximation_error"] = (abs(predicted - flow) / scale).max("time", skipna=False)
    if "mode_strength" in cell.trajectory and "mode_strength" in cell.theory:
        modes = cell.theory["mode_strength"]
        distance = abs(modes - cell.trajectory["mode_strength"]) / abs(cell.target).max()
        values["mode_error_sup"] = distance.max(("time", "mode"), skipna=False)
    if "pathway_values" in cell.trajectory and "pathway_values" in cell.theory:
        learned = cell.trajectory["pathway_values"]
        distance = abs(cell.theory["pathway_values"] - learned).max("time", skipna=False)
        values["pathway_error_sup"] = distance.max("pathway_mode", skipna=False) / learned.max(
            ("time", "pathway", "pathway_mode")
        )
    return values
