"""Kurtosis and correlations of the initial weights in the singular basis of the task."""

import numpy as np

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, per_run
from neuralrace.results.cells import CellResults

KURTOSIS = 3.0
"""Fourth moment of a normal variable over its squared second moment."""


@Metric(
    requires="one_hidden",
    observables="weights",
    variables={
        "start_kurtosis": (
            "",
            "kurtosis of the first weights in the singular basis over that of a normal variable",
        ),
        "start_correlation": (
            "",
            "largest |correlation| of two first weights of a hidden unit in the singular basis",
        ),
    },
)
def gaussian_start(cell: CellResults) -> Values:
    """Kurtosis and correlations of the initial weights in the singular basis of the task.

    The sample is the hidden units. Each has one weight from every input mode, in W_1 V, and one to
    every output mode, in U^T W_2. Independent normal weights have a relative kurtosis of 1 and a
    correlation of 0, up to the sampling error of a finite width.
    """
    first, last = cell.weights()
    modes = cell.data.modes
    encoder = first[:, :, 0] @ modes.input_basis
    decoder = np.swapaxes(modes.output_basis.T @ last[:, :, 0], -2, -1)
    units = np.concatenate([encoder, decoder], axis=-1)  # (init_scale, seed, unit, weight)
    units = units / np.sqrt((units**2).mean(axis=-2, keepdims=True))
    products = np.swapaxes(units, -2, -1) @ units / units.shape[-2]
    between = np.abs(products - np.eye(units.shape[-1]))
    return {
        "start_kurtosis": per_run(cell, (units**4).mean(axis=(-2, -1)) / KURTOSIS),
        "start_correlation": per_run(cell, between.max(axis=(-2, -1))),
    }
