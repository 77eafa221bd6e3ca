"""How many outputs a network explains, and when."""

import numpy as np
import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, crossing_time
from neuralrace.results.cells import CellResults


@Metric(
    observables="output_error",
    variables={
        "final_explained": ("output", "share of the variance of each target explained at the end"),
        "explained_outputs": ("", "sum of these shares over outputs"),
        "explained_half_time": ("output", "flow time to half of the variance of a target", "tau"),
    },
)
def explained_outputs(cell: CellResults) -> Values:
    """Shares of the variance of targets that outputs explain, their sum, and the time to half.

    A linear network with h hidden units on uncorrelated inputs, each with a target of its own,
    explains a share |P e_i|^2 of target i at best, where P projects on what the units see. These
    shares sum to h or less, so that a larger sum is superposition. Outputs without half are NaN.

    Source: derived here; Elhage et al. 2022, "Toy Models of Superposition", for the networks.
    """
    error = cell.trajectory["output_error"]
    explained = 1 - error.assign_coords(output=np.arange(1, error.sizes["output"] + 1))
    final = explained.isel(time=-1, drop=True)
    half = crossing_time(explained, xr.DataArray(0.5), cell.flow_time)
    return {
        "final_explained": final,
        "explained_outputs": final.sum("output", skipna=False),
        "explained_half_time": half,
    }
