"""Imitation of a ReLU network by gated linear networks."""

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.spatial import procrustes

from neuralrace.errors import configured_as
from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, crossing_time, loss_levels
from neuralrace.results.cells import CellResults


@Metric(
    requires="candidates full_batch candidates_fit",
    observables="outputs",
    trains=True,
    variables={
        "imitation_loss": ("candidate time", "training loss of a candidate"),
        "imitation_gap": ("candidate", "largest distance of a candidate's loss over initial loss"),
        "imitation_output_error_curve": (
            "candidate snapshot",
            "|f - g|^2/|y|^2 between the ReLU network and a candidate at equal loss",
        ),
        "imitation_output_error": (
            "candidate",
            "largest |f - g|^2/|y|^2 between the ReLU network and a candidate at equal loss",
        ),
        "imitation_time_ratio": (
            "candidate loss_level",
            "time of a candidate to a share of the initial loss over that of the ReLU network",
        ),
        "similarity_correlation": (
            "candidate",
            "correlation of the similarities of samples in the ReLU network and a candidate",
        ),
        "scaling_disparity": (
            "candidate",
            "squared distance of scaled samples in the ReLU network and a candidate, over size, "
            "turned to be least",
        ),
        "prediction_gap": (
            "candidate",
            "largest distance of the ReLU network's loss from a candidate's theory over initial "
            "loss",
        ),
        "candidate_prediction_gap": (
            "candidate",
            "largest distance of a candidate's loss from its theory over initial loss",
        ),
        "prediction_time_ratio": (
            "candidate loss_level",
            "time to a share of the initial loss by a candidate's theory over that of the ReLU "
            "network",
        ),
    },
)
def imitation(cell: CellResults) -> Values:
    """Distance of the ReLU network from every candidate, which is trained in the same way.

    Gaps, errors and the disparity are 0 for perfect imitation; time ratios and the correlation are
    1. The correlation and the disparity are NaN for a graph. If theory of the candidates is solved,
    the distance of the ReLU network from theory is at most the sum of two distances: from the
    candidate, and of the candidate from its theory.

    Source: Jarvis et al., "Make Haste Slowly", secs. 3 to 5, figs. 2, 4 and 5.
    """
    # imported here, so that other metrics do not load JAX
    from neuralrace.theory.reln.imitation import imitate, output_error

    spec, y = cell.spec, cell.data.y
    loss, outputs = cell.trajectory["loss"], cell.trajectory["outputs"]
    snapshots = loss.sel(time=outputs["snapshot"].values)
    losses, errors, correlations, disparities = [], [], [], []
    for name, network in spec.candidates.items():
        with configured_as(f"candidates.{name}"):
            trained = imitate(spec, network)
        losses.append(trained.variables["loss"])
        errors.append(output_error(snapshots.values, outputs.values, trained, y))
        if "sample_similarity" not in trained.variables:  # a graph
            correlations.append(np.full(loss.shape[:2], np.nan))
            disparities.append(np.full(loss.shape[:2], np.nan))
        elif "sample_similarity" in cell.trajectory:
            final = cell.trajectory["sample_similarity"].isel(snapshot=-1)
            similarity = trained.variables["sample_similarity"][:, :, -1]
            correlations.append(similarity_correlation(final.values, similarity))
            disparities.append(scaling_disparity(final.values, similarity))

    def by_candidate(arrays: list[np.ndarray], like: xr.DataArray) -> xr.DataArray:
        """Arrays of all candidates, with the axis `candidate` after the axes of runs."""
        stacked = like.expand_dims(candidate=list(spec.candidates), axis=2)
        return stacked.copy(data=np.stack(arrays, axis=2))

    imitated = by_candidate(losses, loss)
    error = by_candidate(errors, outputs.isel(sample=0, output=0, drop=True))
    values = {
        "imitation_loss": imitated,
        "imitation_gap": gap(cell, loss, imitated),
        "imitation_output_error_curve": error,
        "imitation_output_error": error.max("snapshot", skipna=False),
        "imitation_time_ratio": time_ratio(cell, imitated),
    }
    if "sample_similarity" in cell.trajectory:
        runs = loss.isel(time=0, drop=True)
        values["similarity_correlation"] = by_candidate(correlations, runs)
        values["scaling_disparity"] = by_candidate(disparities, runs)
    if "candidate_loss" not in cell.theory:
        return values
    predicted = cell.theory["candidate_loss"].sel(candidate=list(spec.candidates))
    return values | {
        "prediction_gap": gap(cell, loss, predicted),
        "candidate_prediction_gap": gap(cell, imitated, predicted),
        "prediction_time_ratio": time_ratio(cell, predicted),
    }


def gap(cell: CellResults, loss: xr.DataArray, other: xr.DataArray) -> xr.DataArray:
    """Largest distance of two losses over the initial loss of the ReLU network."""
    initial = cell.trajectory["loss"].isel(time=0, drop=True)
    return abs(loss - other).max("time", skipna=False) / initial


def time_ratio(cell: CellResults, loss: xr.DataArray) -> xr.DataArray:
    """Times of a loss to `loss_levels` over those of the ReLU network."""
    levels, relu = loss_levels(cell), cell.trajectory["loss"]
    time, relu_time = (crossing_time(-curve, -levels, cell.flow_time) for curve in (loss, relu))
    return (time / relu_time).transpose(*(dim for dim in loss.dims if dim != "time"), ...)


def scaling_disparity(
    first: Float[np.ndarray, "*runs sample sample"],
    second: Float[np.ndarray, "*runs sample sample"],
) -> Float[np.ndarray, "*runs"]:
    """Procrustes disparity of the points that classical scaling gives for two similarities.

    The disparity is the squared distance over the size, from 0 to 1, once one set of points is
    shifted, scaled and rotated to lie on the other. All coordinates are used, as the two largest
    ones change order if they are nearly equal.
    """
    disparities = np.empty(first.shape[:-2])
    for ensemble in np.ndindex(disparities.shape):
        points = [
            classical_scaling(similarity[ensemble].astype(float), len(similarity[ensemble]))
            for similarity in (first, second)
        ]
        disparities[ensemble] = procrustes(*points)[2]
    return disparities


def classical_scaling(
    similarity: Float[np.ndarray, "sample _sample"], count: int = 2
) -> Float[np.ndarray, "sample _coordinate"]:
    """Classical multidimensional scaling: points whose inner products approximate a matrix.

    Args:
        similarity: inner products.
        count: number of coordinates; the largest eigenvalues of the doubly centred matrix.
    """
    centring = np.eye(len(similarity)) - 1 / len(similarity)
    values, vectors = np.linalg.eigh(centring @ similarity @ centring)
    largest = slice(None, -count - 1, -1)
    return vectors[:, largest] * np.sqrt(np.maximum(values[largest], 0))


def similarity_correlation(
    first: Float[np.ndarray, "*runs sample sample"],
    second: Float[np.ndarray, "*runs sample sample"],
) -> Float[np.ndarray, "*runs"]:
    """Correlation of the entries above the diagonals of two similarity matrices."""
    above = np.triu_indices(first.shape[-1], k=1)
    one, other = (matrix[..., *above].astype(float) for matrix in (first, second))
    one, other = (entries - entries.mean(-1, keepdims=True) for entries in (one, other))
    size = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
    return np.sum(one * other, axis=-1) / size
