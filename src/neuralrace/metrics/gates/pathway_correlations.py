"""Correlations of gated pathways: whether they commute, and the residual of contexts."""

import numpy as np
import xarray as xr
from jaxtyping import Float

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, matrix_norm
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
        "first_value_without": (
            "removed",
            "first singular value of the correlation of all samples without one input, output or "
            "sample over that with all, largest of all",
        ),
    },
)
def pathway_correlations(cell: CellResults) -> Values:
    """Commutator of the correlations of each pathway, and correlation of residual and contexts.

    Both are properties of the task and the gates, not of training. The commutator
    |AB - BA|/(|A| |B|) of A = sigma_yx^T sigma_yx and B = sigma_xx is between 0 and sqrt(2), in the
    Frobenius norm. It is 0 if the right singular vectors of sigma_yx are eigenvectors of sigma_xx,
    as theory assumes.

    The residual R is the difference of the targets Y from the best linear map of all inputs. The
    contexts X_c are the second group of inputs. The correlation |R^T X_c|/|Y^T X_c| is over all
    samples, or the largest over single samples. Values are NaN if there is no correlation to
    divide by.

    The first singular value is that of the average of y x^T over all samples. A sample is removed
    as a closed gate removes it, so that the average is still over all.

    Source: Jarvis et al., "Make Haste Slowly", assumption 2.1 and appendix A.1, which verify that
    correlations are mutually diagonalisable, and appendix E, on the residual and on interlacing.
    """
    network, data = cell.gated, cell.data
    effective = network.wiring(data).effective
    commutators = [
        commutator(sigma_yx.T @ sigma_yx, effective.sigma_xx[pathway, pathway])
        for pathway, sigma_yx in enumerate(effective.sigma_yx)
    ]
    pathways = np.arange(1, len(commutators) + 1)
    contexts = data.x[:, data.input_groups[0] :]
    residual = data.y - data.x @ np.linalg.lstsq(data.x, data.y, rcond=None)[0]
    whole = np.linalg.norm(residual.T @ contexts) / np.linalg.norm(data.y.T @ contexts)
    # the correlation of a single sample is an outer product, so the norm of x_c cancels
    single = np.linalg.norm(residual, axis=1) / np.linalg.norm(data.y, axis=1)
    return {
        "pathway_commutator": xr.DataArray(commutators, {"pathway": pathways}, ("pathway",)),
        "residual_context_correlation": xr.DataArray(whole),
        "residual_context_correlation_of_one": xr.DataArray(single.max()),
        "first_value_without": first_value_without(data.x, data.y),
    }


def first_value_without(
    x: Float[np.ndarray, "sample input"], y: Float[np.ndarray, "sample output"]
) -> xr.DataArray:
    """First singular value of Y^T X without one input, output or sample, over that with all.

    The largest over what is removed, by its kind, `(removed)`. Without an input or an output it is
    at most 1 for any matrix, by interlacing (Thompson 1972). Without a sample it is at most 1 if no
    entry of X and Y is negative, and is 1 if a weak sample is orthogonal to all others in both.
    """
    whole = y.T @ x
    without = {
        "input": [np.delete(whole, column, axis=1) for column in range(x.shape[1])],
        "output": [np.delete(whole, row, axis=0) for row in range(y.shape[1])],
        "sample": whole - y[:, :, None] * x[:, None, :],
    }
    first = [matrix_norm(np.stack(list(matrices)), 2).max() for matrices in without.values()]
    ratios = np.array(first) / matrix_norm(whole, 2)
    return xr.DataArray(ratios, {"removed": list(without)}, ("removed",))


def commutator(
    one: Float[np.ndarray, "input _input"], other: Float[np.ndarray, "input _input"]
) -> float:
    """|AB - BA|/(|A| |B|) of two matrices; 0 if they have the same eigenvectors."""
    size = np.linalg.norm(one) * np.linalg.norm(other)
    return float(np.linalg.norm(one @ other - other @ one) / size)
