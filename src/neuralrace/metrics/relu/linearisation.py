"""Linearisation of a ReLU network for each sample (Basu et al., section 3)."""

import numpy as np
import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults
from neuralrace.theory.linearisation import (
    averaged_rate_residual,
    averaging_residual,
    gradient_residuals,
    sample_residuals,
)


@Metric(
    requires="layered relu",
    observables="layer_norm weights",
    variables={
        "sample_residual_as_written": (
            "pair",
            "largest residual of eq. 26 as printed over the largest rate",
        ),
        "sample_residual_sandwiched": (
            "pair",
            "the same with the gates of the hidden layer on both sides",
        ),
        "sample_residual_trace": ("pair", "the same for the trace"),
        "averaging_residual": (
            "layer",
            "|mean of D_l W_l - W_l|/|W_l| (eq. 27), averaged over snapshots",
        ),
        "averaged_rate_residual": (
            "pair",
            "residual of eq. 28 over its left side, averaged over snapshots",
        ),
        "gradient_residual_as_written": (
            "pair",
            "largest residual of eq. 25 as printed over the largest rate",
        ),
        "gradient_residual_sign_mended": ("pair", "the same with the sign of eq. 25 turned"),
    },
)
def linearisation(cell: CellResults) -> Values:
    """Relative residuals of equations 25 to 28 at the snapshots: 0 if an equation holds.

    Residuals of equations 25 and 26, as printed and corrected, are the largest over snapshots and
    samples. Those of equations 27 and 28 are means over snapshots.

    Source: Basu et al., section 3.
    """
    weights = cell.weights()
    data = cell.data
    squared = cell.spec.training.loss.squared
    loss = "squared" if squared else "cross_entropy"
    residuals = sample_residuals(weights, data.x, data.y, loss)
    gradients = gradient_residuals(weights, data.x, data.y, loss)
    averaged = averaged_rate_residual(weights, data.x, data.y, loss)
    averaging = averaging_residual(weights, None, data.x)
    like = cell.trajectory["layer_norm"].isel(time=0, drop=True)
    pairs = like.isel(layer=slice(None, -1)).rename(layer="pair")

    def worst(name: str, by_pair=residuals) -> xr.DataArray:
        ratios = []
        for residual in by_pair:
            scale = residual.scale.max(axis=-1, keepdims=True)
            ratios.append((getattr(residual, name) / scale).max(axis=(-1, -2)))
        return pairs.copy(data=np.stack(ratios, axis=-1))

    return {
        "sample_residual_as_written": worst("as_written"),
        "sample_residual_sandwiched": worst("sandwiched"),
        "sample_residual_trace": worst("trace"),
        "averaging_residual": like.copy(data=averaging.mean(axis=2)),
        "averaged_rate_residual": pairs.copy(data=averaged.mean(axis=2)),
        "gradient_residual_as_written": worst("as_written", gradients),
        "gradient_residual_sign_mended": worst("sign_mended", gradients),
    }
