"""Gated networks whose gates are refreshed at intervals, as approximations of ReLU networks."""

import numpy as np
from jaxtyping import Float

from neuralrace.datasets import Data
from neuralrace.extensions.registry import Metric
from neuralrace.metrics.gates.gate_prediction import sample_loss
from neuralrace.metrics.gates.ring_structure import at_every_place
from neuralrace.metrics.receptive_fields.receptive_fields import (
    class_shares,
    participation,
    unit_mean,
    weights_on_ring,
)
from neuralrace.metrics.values import Values, per_run, relative_distance
from neuralrace.networks.gates.half_space import half_spaces
from neuralrace.results.cells import CellResults
from neuralrace.theory.frozen_gates import gated_moments
from neuralrace.theory.refreshed_gates import relinearised_descent, relinearised_flow

Normals = Float[np.ndarray, "unit input"]
Moment = Float[np.ndarray, "... _row _column"]
"""A second moment, or its eigenvectors in columns; of each gate alone, or of all."""
REFRESHES = (4, 8, 16, 32, 64)
"""Numbers of refreshes, evenly spaced over the time of training."""
MOMENTS = ("one gate", "all gates", "all gates, other start")


@Metric(
    requires="layered relu one_hidden mean_readout squared_error full_batch gradient_descent "
    "one_output",
    observables="weights",
    variables={
        "refresh_interval": ("refreshes", "flow time between refreshes of gates", "tau"),
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
    shares="refresh_localised_share",
)
def gate_refresh(cell: CellResults) -> Values:
    """Distance of networks whose gates are refreshed at intervals from the ReLU network.

    Between refreshes, weights follow the exact linear gradient flow, from the initial weights of
    the simulation. Distances of weights are relative Frobenius norms at the end of training: 0 for
    perfect agreement. Gates that are refreshed at every step of gradient descent differ from the
    ReLU network by rounding errors alone.

    The order of convergence is the least-squares slope of the log distance over the log interval.
    It is read for the distance from the simulation, which includes the error of its finite steps.
    It is also read for the distance from the weights with most refreshes, which have not reached
    the limit themselves.

    A basis that diagonalises second moments of gated inputs at all times consists of eigenvectors
    of the initial moment. `basis_missed` is the norm of the final moment off the diagonal in that
    basis over its norm: 0 for a common basis. It is given for the moment behind one gate (mean over
    units), behind all gates, and behind all gates in the initial basis of the next seed. Moments
    are over the symmetric samples of `ring_structure`.

    Source: notes on localisation, sec. 2.3 and first idea of section 5.
    """
    spec, data = cell.spec, cell.data
    training = spec.training
    fields, _ = weights_on_ring(cell)
    start, end = fields[:, :, 0], fields[:, :, -1]
    time, samples = cell.flow_time.values[[-1]], (data.x, data.y[:, 0])
    weights = np.full((*start.shape[:2], len(REFRESHES), *start.shape[2:]), np.nan)
    stepwise = np.full_like(start, np.nan)
    converged = cell.trajectory["diverged_at"].values < 0
    for number, refreshes in enumerate(REFRESHES):
        interval = float(time[0]) / refreshes
        path = relinearised_flow(time, interval, start[converged], *samples)
        weights[converged, number] = path[:, 0]
    step, rate = np.array([training.steps]), training.flow_step(len(data.x))
    stepwise[converged] = relinearised_descent(step, rate, 1, start[converged], *samples)[:, 0]
    missed = np.full((*start.shape[:2], len(MOMENTS)), np.nan)
    symmetric = at_every_place(data)
    for scale in range(len(missed)):
        bases = [_bases(_second(symmetric, normals)) for normals in start[scale]]
        for seed in np.flatnonzero(converged[scale]):
            after = _second(symmetric, end[scale, seed])
            missed[scale, seed] = _missed(bases[seed], bases[(seed + 1) % len(bases)], after)
    error = relative_distance(weights, end[:, :, None])
    loss = sample_loss(np.maximum(weights @ data.x.T, 0), data)
    losses = cell.trajectory["loss"].values / training.loss.factor(len(data.x))
    intervals = time[0] / np.array(REFRESHES)
    to_finest = relative_distance(weights[:, :, :-1], weights[:, :, -1:])
    by_refreshes = {
        "refresh_error": error,
        "refresh_loss_error": np.abs(loss - losses[:, :, -1:]) / losses[:, :, :1],
        "refresh_participation": unit_mean(participation(weights)),
        "refresh_localised_share": class_shares(weights)["localised"],
    }
    values = {
        name: per_run(cell, array, refreshes=REFRESHES) for name, array in by_refreshes.items()
    }
    interval = values["refresh_error"]["refreshes"].copy(data=intervals)
    return values | {
        "refresh_interval": interval,
        "refresh_every_step_error": per_run(cell, relative_distance(stepwise, end)),
        "basis_missed": per_run(cell, missed, moment=MOMENTS),
        "refresh_order": per_run(cell, _order(intervals, error)),
        "refresh_order_to_finest": per_run(cell, _order(intervals[:-1], to_finest)),
    }


def _second(data: Data, normals: Normals) -> Float[np.ndarray, "unit input unit input"]:
    """Second moment of the inputs behind half-space gates."""
    return gated_moments(data.x, data.y[:, 0], half_spaces(data.x, normals))[1]


def _single(second: Float[np.ndarray, "unit input unit input"]) -> Moment:
    """The moment behind each gate alone, (unit, input, input)."""
    return np.moveaxis(np.diagonal(second, axis1=0, axis2=2), -1, 0)


def _whole(second: Float[np.ndarray, "unit input unit input"]) -> Moment:
    """The moment behind all gates, (feature, feature)."""
    return second.reshape(2 * (second.shape[0] * second.shape[1],))


def _bases(second: Float[np.ndarray, "unit input unit input"]) -> tuple[Moment, Moment]:
    """Eigenvectors of the moment behind each gate alone, and behind all gates."""
    single, whole = (np.linalg.eigh(moment)[1] for moment in (_single(second), _whole(second)))
    return single, whole


def _missed(
    own: tuple[Moment, Moment],
    other: tuple[Moment, Moment],
    after: Float[np.ndarray, "unit input unit input"],
) -> tuple[float, float, float]:
    """Norm of the final moments off the diagonal in initial eigenvectors, by `MOMENTS`."""
    return (
        float(_off_diagonal(own[0], _single(after)).mean()),
        float(_off_diagonal(own[1], _whole(after))),
        float(_off_diagonal(other[1], _whole(after))),
    )


def _off_diagonal(vectors: Moment, after: Moment) -> np.ndarray:
    """Norm of `after` off the diagonal in a basis, over its norm."""
    rotated = vectors.mT @ after @ vectors
    rotated *= 1 - np.eye(rotated.shape[-1])
    axes = (-2, -1)
    return np.asarray(np.linalg.norm(rotated, axis=axes) / np.linalg.norm(after, axis=axes))


def _order(
    intervals: Float[np.ndarray, " interval"], errors: Float[np.ndarray, "*runs interval"]
) -> Float[np.ndarray, "*runs"]:
    """Least-squares slope of log error over log interval."""
    x = np.log(intervals) - np.log(intervals).mean()
    return np.log(errors) @ x / (x @ x)
