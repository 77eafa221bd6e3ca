"""The per-sample linearisation of a ReLU network (Basu et al., section 3), at the snapshots."""

import numpy as np
import xarray as xr

from neuralrace.errors import UserError
from neuralrace.metrics.describe import Values, described
from neuralrace.records.evidence import Evidence
from neuralrace.theory.linearisation import (
    averaged_rate_residual,
    averaging_residual,
    gradient_residuals,
    sample_residuals,
)


def linearisation(evidence: Evidence) -> Values:
    """Residuals of equations 25 to 28: 25 and 26 the largest over snapshots and samples.

    Raises:
        UserError: the network has biases or no ReLU.
    """
    if evidence.cell.layered.bias or evidence.cell.layered.activation != "relu":
        raise UserError("metrics: linearisation is for ReLU networks without biases")
    weights = evidence.weights()
    data = evidence.data
    squared = evidence.cell.training.loss.name == "squared_error"
    loss = "squared" if squared else "cross_entropy"
    residuals = sample_residuals(weights, data.x, data.y, loss)
    gradients = gradient_residuals(weights, data.x, data.y, loss)
    averaged = averaged_rate_residual(weights, data.x, data.y, loss)
    averaging = averaging_residual(weights, None, data.x)
    like = evidence.recorded("layer_norm", "layer_norm").isel(time=0, drop=True)
    pairs = like.isel(layer=slice(None, -1)).rename(layer="pair")

    def worst(name: str, long_name: str, of=residuals) -> xr.DataArray:
        ratios = []
        for residual in of:
            scale = residual.scale.max(axis=-1, keepdims=True)
            ratios.append((getattr(residual, name) / scale).max(axis=(-1, -2)))
        return described(pairs.copy(data=np.stack(ratios, axis=-1)), long_name)

    return {
        "sample_residual_as_written": worst(
            "as_written", "largest residual of eq. 26 as printed over the largest rate"
        ),
        "sample_residual_sandwiched": worst(
            "sandwiched", "the same with the gates of the hidden layer on both sides"
        ),
        "sample_residual_trace": worst("trace", "the same for the trace"),
        "averaging_residual": described(
            like.copy(data=averaging.mean(axis=2)),
            "|mean of D_l W_l - W_l|/|W_l| (eq. 27), averaged over snapshots",
        ),
        "averaged_rate_residual": described(
            pairs.copy(data=averaged.mean(axis=2)),
            "residual of eq. 28 over its left side, averaged over snapshots",
        ),
        "gradient_residual_as_written": worst(
            "as_written", "largest residual of eq. 25 as printed over the largest rate", gradients
        ),
        "gradient_residual_sign_mended": worst(
            "sign_mended", "the same with the sign of eq. 25 turned", gradients
        ),
    }
