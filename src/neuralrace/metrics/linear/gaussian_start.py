"""Whether initial weights are independent and normal in the singular basis of the task."""

import numpy as np
import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.results.cells import CellResults

KURTOSIS = 3.0
"""Fourth moment over the squared second of a normal variable."""


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
    """Kurtosis and correlations of the first weights, seen in the singular basis of the task.

    Hidden units are the sample: each has one weight from every input mode and one to every output
    mode, W_1 V and U^T W_2. Independent normal weights have a kurtosis of 3 and no correlations.
    For networks with one hidden layer.
    """
    first, last = cell.weights()
    modes = cell.data.modes
    encoder = first[:, :, 0] @ modes.input_basis
    decoder = np.swapaxes(modes.output_basis.T @ last[:, :, 0], -2, -1)
    units = np.concatenate([encoder, decoder], axis=-1)  # (init_scale, seed, unit, weight)
    units = units / np.sqrt((units**2).mean(axis=-2, keepdims=True))
    products = np.swapaxes(units, -2, -1) @ units / units.shape[-2]
    between = np.abs(products - np.eye(units.shape[-1]))
    runs = {name: cell.trajectory[name].values for name in ("init_scale", "seed")}

    def per_run(values: np.ndarray) -> xr.DataArray:
        return xr.DataArray(values, dims=tuple(runs), coords=runs)

    return {
        "start_kurtosis": per_run((units**4).mean(axis=(-2, -1)) / KURTOSIS),
        "start_correlation": per_run(between.max(axis=(-2, -1))),
    }
