"""How far simulation is from theory, and why."""

from neuralrace.metrics.describe import Values, described
from neuralrace.records.evidence import Evidence


def analytic_fit(evidence: Evidence) -> Values:
    """Distance of every solution from the simulation, in the loss and in the modes.

    With the gradient flow among the solutions the distance splits: simulation against flow is the
    discretisation error of gradient descent, theory against flow the approximation error of the
    theory. Losses are in units of the initial loss, modes of the largest target.
    """
    simulated = evidence.trajectory["loss"]
    predicted = evidence.solved("loss", "at least one entry")
    scale = simulated.isel(time=0, drop=True)
    error = abs(predicted - simulated) / scale
    values = {
        "loss_error_sup": described(
            error.max("time", skipna=False),
            "largest distance of loss from theory over initial loss",
        ),
        "loss_error_mean": described(
            error.mean("time", skipna=False), "mean distance of loss from theory over initial loss"
        ),
    }
    flows = [name for name in evidence.cell.solutions if name in ("flow", "gated_flow")]
    if flows:
        flow = predicted.sel(solution=flows[0], drop=True)
        values["discretisation_error"] = described(
            (abs(flow - simulated) / scale).max("time", skipna=False),
            "largest distance of gradient descent from gradient flow over initial loss",
        )
        values["approximation_error"] = described(
            (abs(predicted - flow) / scale).max("time", skipna=False),
            "largest distance of theory from gradient flow over initial loss",
        )
    theory = evidence.theory
    if "mode_strength" in evidence.trajectory and theory is not None and "mode_strength" in theory:
        modes = theory["mode_strength"]
        off = abs(modes - evidence.trajectory["mode_strength"]) / abs(evidence.target).max()
        values["mode_error_sup"] = described(
            off.max(("time", "mode"), skipna=False),
            "largest distance of a mode from theory over the largest target",
        )
    if (
        "pathway_values" in evidence.trajectory
        and theory is not None
        and "pathway_values" in theory
    ):
        own = evidence.trajectory["pathway_values"]
        far = abs(theory["pathway_values"] - own).max("time", skipna=False)
        values["pathway_error_sup"] = described(
            far.max("pathway_mode", skipna=False) / own.max(("time", "pathway", "pathway_mode")),
            "largest distance of a pathway's singular values from theory over the largest of all",
        )
    return values
