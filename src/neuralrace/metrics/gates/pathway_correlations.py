"""What the correlations of gated pathways are like: can they be diagonal together, and by what."""

import numpy as np
import xarray as xr
from jaxtyping import Float

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.results.cells import CellResults


@Metric(
    requires="gated two_input_groups gates_fit",
    variables={
        "pathway_commutator": (
            "pathway",
            "commutator of the input correlation of a pathway with sigma_yx^T sigma_yx",
        ),
        "residual_context_correlation": (
            "",
            "correlation of the residual with contexts over that of targets",
        ),
        "residual_context_correlation_of_one": (
            "",
            "the same over a single sample, largest of all",
        ),
    },
)
def pathway_correlations(cell: CellResults) -> Values:
    """Properties of the effective data of each pathway of a gated network, and of the residual.

    The right singular vectors of sigma_yx(p) are eigenvectors of sigma_xx(p) where sigma_xx and
    sigma_yx^T sigma_yx commute. The commutator is |AB - BA|/(|A| |B|) in the Frobenius norm, from 0
    to sqrt(2).

    The residual R is what the best linear map of all inputs leaves of the targets Y. With the
    second group of inputs X_c, the contexts, the correlation that it has with contexts is
    |R^T X_c|/|Y^T X_c| over all samples, and the largest of single samples by themselves.

    Depends on task and gates alone. NaN where a pathway or the inputs have no correlation.

    Source: Jarvis et al., "Make Haste Slowly", assumption 2.1 and appendix A.1, which verify that
    correlations are mutually diagonalisable, and appendix E, on the residual.
    """
    network, data = cell.gated, cell.data
    effective = network.wiring(data).effective
    apart = [
        commutator(sigma_yx.T @ sigma_yx, effective.sigma_xx[pathway, pathway])
        for pathway, sigma_yx in enumerate(effective.sigma_yx)
    ]
    pathways = np.arange(1, len(apart) + 1)
    contexts = data.x[:, data.input_groups[0] :]
    residual = data.y - data.x @ np.linalg.lstsq(data.x, data.y, rcond=None)[0]
    whole = np.linalg.norm(residual.T @ contexts) / np.linalg.norm(data.y.T @ contexts)
    # of a single sample the correlation is an outer product
    single = np.linalg.norm(residual, axis=1) / np.linalg.norm(data.y, axis=1)
    return {
        "pathway_commutator": xr.DataArray(apart, {"pathway": pathways}, ("pathway",)),
        "residual_context_correlation": xr.DataArray(whole),
        "residual_context_correlation_of_one": xr.DataArray(single.max()),
    }


def commutator(
    one: Float[np.ndarray, "input _input"], other: Float[np.ndarray, "input _input"]
) -> float:
    """|AB - BA|/(|A| |B|) of two matrices; 0 where they have the same eigenvectors."""
    size = np.linalg.norm(one) * np.linalg.norm(other)
    return float(np.linalg.norm(one @ other - other @ one) / size)
