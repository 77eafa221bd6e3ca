"""Which hidden layers of a ReLU network do without their nonlinearity."""

from collections.abc import Callable

import numpy as np
import xarray as xr
from scipy.special import log_softmax

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.results.cells import CellResults

ERRORS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "squared_error": lambda y, out: np.sum((y - out) ** 2, axis=(-2, -1)),
    "cross_entropy": lambda y, out: -np.sum(y * log_softmax(out, axis=-1), axis=(-2, -1)),
}
"""Losses of targets and outputs (..., sample, output), up to their normalisation."""


@Metric(
    requires="layered relu several_hidden",
    observables="weights",
    variables={
        "final_loss_share": ("", "loss at the end over initial loss"),
        "linearised_loss": (
            "hidden_layer",
            "loss at the end without the ReLU of a hidden layer, over initial loss",
        ),
    },
)
def layer_linearity(cell: CellResults) -> Values:
    """Loss at the end, as it is and with the ReLU of one hidden layer taken away.

    A layer whose units are all open on all samples loses nothing, nor does one whose closed units
    the layers above ignore. Losses are shares of the initial loss, all from recorded weights.

    Source: Jarvis et al., "Make Haste Slowly", sec. 6, fig. 6, says that the first of two hidden
    layers does no gating.
    """
    layers = range(1, len(cell.spec.layered.hidden) + 1)
    weights, data = cell.weights(), cell.data
    error = ERRORS[cell.spec.training.loss.name]

    def loss(snapshot: int, linear: int | None = None) -> np.ndarray:
        """Over all samples, (init_scale, seed), with the ReLU of one hidden layer left out."""
        *hidden, readout = (weight[:, :, snapshot] for weight in weights)
        h = data.x.T
        for layer, weight in enumerate(hidden, start=1):
            h = weight @ h
            if layer != linear:
                h = np.maximum(h, 0)
        return error(data.y, (readout @ h).mT)

    initial, runs = loss(0), cell.trajectory["diverged_at"]
    kept = runs.copy(data=loss(-1) / initial)
    taken = [runs.copy(data=loss(-1, layer) / initial) for layer in layers]
    by_layer = xr.concat(taken, xr.Variable("hidden_layer", list(layers))).transpose(
        ..., "hidden_layer"
    )
    return {
        "final_loss_share": kept,
        "linearised_loss": by_layer,
    }
