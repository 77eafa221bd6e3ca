"""ReLU networks as networks whose gates follow the weights now and then."""

import numpy as np
from jaxtyping import Float

from neuralrace.datasets import Data
from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.metrics.gates.gate_prediction import sample_loss
from neuralrace.metrics.gates.ring_structure import at_every_place
from neuralrace.metrics.receptive_fields.receptive_fields import (
    class_shares,
    participation,
    unit_mean,
    weights_on_ring,
)
from neuralrace.networks.gates.half_space import half_spaces
from neuralrace.results.cells import CellResults
from neuralrace.theory.frozen_gates import gated_moments
from neuralrace.theory.refreshed_gates import relinearised_descent, relinearised_flow

# How often gates are refreshed in the time of training.
REFRESHES = (4, 8, 16, 32, 64)
MOMENTS = ("one gate", "all gates", "all gates, other start")


@Metric(
    requires="layered relu one_hidden mean_readout squared_error full_batch gradient_descent "
    "one_output",
    observables="weights",
    variables={
        "refresh_interval": ("refreshes", "flow time between refreshes of gates"),
        "refresh_error": ("refreshes", "distance of weights from those of the ReLU network"),
        "refresh_loss_error": (
            "refreshes",
            "distance of loss from that of the ReLU network over initial loss",
        ),
        "refresh_participation": (
            "refreshes",
            "inverse participation ratio times inputs with refreshed gates, mean over units",
        ),
        "refresh_localised_share": (
            "refreshes",
            "share of units whose receptive field is localised with refreshed gates",
        ),
        "refresh_every_step_error": (
            "",
            "distance of weights, refreshed with every step, from those of the ReLU network",
        ),
        "basis_missed": (
            "moment",
            "part of the second moment at the end off the diagonal in eigenvectors of the start",
        ),
        "refresh_order": ("", "order in the interval of the distance from the ReLU network"),
        "refresh_order_to_finest": (
            "",
            "order in the interval of the distance from the weights with most refreshes",
        ),
    },
)
def gate_refresh(cell: CellResults) -> Values:
    """Distance of gates that are refreshed at intervals from those that always follow the weights.

    Between refreshes the linear gradient flow is exact; it starts from the initial weights of the
    simulation. Intervals divide the time of training evenly. Distances of weights are relative
    Frobenius norms at the end of training. The order of convergence is the least-squares slope of
    the logarithm of the distance over that of the interval: of the distance from the simulation,
    which holds the error of its finite steps too, or from the weights with most refreshes, which
    are an interval away from the limit themselves.

    Gates that are refreshed with every step of gradient descent leave rounding as the only
    difference.

    A single basis that diagonalises second moments of gated inputs across time has to be one of
    eigenvectors at the start. What it misses is the distance of the moment at the end from diagonal
    in that basis, relative to its norm: for the moment behind one gate (mean over units), behind
    all gates, and behind all gates with the basis of the start of the next seed. Moments are over
    samples with the symmetries of the law, as those of `ring_structure`.

    Source: notes on localisation, sec. 2.3 and first idea of section 5.
    """
    spec, data = cell.spec, cell.data
    training = spec.training
    fields, like = weights_on_ring(cell)
    start, end = fields[:, :, 0], fields[:, :, -1]
    time, samples = cell.flow_time.values[[-1]], (data.x, data.y[:, 0])
    weights = np.full((*start.shape[:2], len(REFRESHES), *start.shape[2:]), np.nan)
    stepwise = np.full_like(start, np.nan)
    for ensemble in np.argwhere(cell.trajectory["diverged_at"].values < 0):
        first = start[*ensemble]
        for number, refreshes in enumerate(REFRESHES):
            interval = float(time[0]) / refreshes
            weights[*ensemble, number] = relinearised_flow(time, interval, first, *samples)[0]
        step, rate = np.array([training.steps]), training.flow_step(len(data.x))
        stepwise[*ensemble] = relinearised_descent(step, rate, 1, first, *samples)[0]
    missed = np.full((*start.shape[:2], len(MOMENTS)), np.nan)
    symmetric = at_every_place(data)
    for scale, seed in np.argwhere(cell.trajectory["diverged_at"].values < 0):
        other = start[scale, (seed + 1) % start.shape[1]]
        missed[scale, seed] = _missed(symmetric, start[scale, seed], end[scale, seed], other)
    error = _distance(weights, end[:, :, None])
    loss = sample_loss(np.maximum(weights @ data.x.T, 0), data)
    losses = cell.trajectory["loss"].values / training.loss.factor(len(data.x))
    intervals = time[0] / np.array(REFRESHES)
    to_finest = _distance(weights[:, :, :-1], weights[:, :, -1:])
    runs = like.isel(snapshot=-1, drop=True)
    by_refreshes = runs.expand_dims(refreshes=list(REFRESHES), axis=2)
    return {
        "refresh_interval": by_refreshes["refreshes"].copy(data=intervals),
        "refresh_error": by_refreshes.copy(data=error),
        "refresh_loss_error": by_refreshes.copy(
            data=np.abs(loss - losses[:, :, -1:]) / losses[:, :, :1],
        ),
        "refresh_participation": by_refreshes.copy(data=unit_mean(participation(weights))),
        "refresh_localised_share": by_refreshes.copy(data=class_shares(weights)["localised"]),
        "refresh_every_step_error": runs.copy(data=_distance(stepwise, end)),
        "basis_missed": runs.expand_dims(moment=list(MOMENTS), axis=2).copy(data=missed),
        "refresh_order": runs.copy(data=_order(intervals, error)),
        "refresh_order_to_finest": runs.copy(data=_order(intervals[:-1], to_finest)),
    }


def _missed(
    data: Data,
    start: Float[np.ndarray, "unit input"],
    end: Float[np.ndarray, "unit input"],
    other: Float[np.ndarray, "unit input"],
) -> tuple[float, float, float]:
    """What eigenvectors at the start leave off the diagonal at the end, by `MOMENTS`."""
    before, after, elsewhere = (
        gated_moments(data.x, data.y[:, 0], half_spaces(data.x, normals))[1]
        for normals in (start, end, other)
    )
    units, size = len(start), start.size
    own = [_off_diagonal(before[k, :, k], after[k, :, k]) for k in range(units)]
    whole = [each.reshape(size, size) for each in (before, after, elsewhere)]
    return (
        float(np.mean(own)),
        _off_diagonal(whole[0], whole[1]),
        _off_diagonal(whole[2], whole[1]),
    )


def _off_diagonal(
    before: Float[np.ndarray, "feature feature"], after: Float[np.ndarray, "feature feature"]
) -> float:
    """Norm off the diagonal over the norm of one matrix, in the eigenvectors of another."""
    _, vectors = np.linalg.eigh(before)
    seen = vectors.T @ after @ vectors
    return float(np.linalg.norm(seen - np.diag(np.diag(seen))) / np.linalg.norm(after))


def _distance(
    weights: Float[np.ndarray, "*#runs unit input"],
    reference: Float[np.ndarray, "*#runs unit input"],
) -> Float[np.ndarray, "*#runs"]:
    """|weights - reference| over |reference|."""
    axes = (-2, -1)
    return np.linalg.norm(weights - reference, axis=axes) / np.linalg.norm(reference, axis=axes)


def _order(
    intervals: Float[np.ndarray, " interval"], errors: Float[np.ndarray, "*runs interval"]
) -> Float[np.ndarray, "*runs"]:
    """Least-squares slope of log error over log interval."""
    x = np.log(intervals) - np.log(intervals).mean()
    return np.log(errors) @ x / (x @ x)
