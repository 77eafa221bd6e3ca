"""Loss of a ReLU network without the nonlinearity of one hidden layer."""

from collections.abc import Callable

import numpy as np
from scipy.special import log_softmax

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, per_run
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
    """Final loss over the initial loss, with all ReLUs and without those of one hidden layer.

    Both are equal if the layer is linear: all its units are open on all samples, or the layers
    above ignore its closed units. All losses are computed from recorded weights.

    Source: Jarvis et al., "Make Haste Slowly", sec. 6, fig. 6, says that the first of two hidden
    layers does no gating.
    """
    layers = range(1, len(cell.spec.layered.hidden) + 1)
    weights, data = cell.weights(), cell.data
    error = ERRORS[cell.spec.training.loss.name]

    def loss(snapshot: int, linear: int | None = None) -> np.ndarray:
        """Loss over all samples, (init_scale, seed), without the ReLU of the layer `linear`."""
        *hidden, readout = (weight[:, :, snapshot] for weight in weights)
        h = data.x.T
        for layer, weight in enumerate(hidden, start=1):
            h = weight @ h
            if layer != linear:
                h = np.maximum(h, 0)
        return error(data.y, (readout @ h).mT)

    initial = loss(0)
    by_layer = np.stack([loss(-1, layer) / initial for layer in layers], axis=-1)
    return {
        "final_loss_share": per_run(cell, loss(-1) / initial),
        "linearised_loss": per_run(cell, by_layer, hidden_layer=layers),
    }
