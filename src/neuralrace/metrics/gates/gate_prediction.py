"""Networks with frozen gates as predictions of a ReLU network, by the source of the gates."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from neuralrace.datasets import Data
from neuralrace.datasets.base import Mixture
from neuralrace.extensions.registry import Metric
from neuralrace.metrics.gates.gating_loss import sampled
from neuralrace.metrics.receptive_fields.receptive_fields import (
    class_shares,
    overlap,
    participation,
    unit_mean,
    weights_on_ring,
)
from neuralrace.metrics.values import Values, per_run
from neuralrace.networks.gates.half_space import half_spaces
from neuralrace.results.cells import CellResults
from neuralrace.theory.frozen_gates import FrozenGates

Fields = Float[np.ndarray, "*runs unit input"]
Rule = Callable[[Data], Float[np.ndarray, "unit sample"]]
Normals = Float[np.ndarray, "unit input"]
NAMES = (
    "frozen_loss",
    "frozen_fresh_loss",
    "frozen_participation",
    "frozen_localised_share",
    "frozen_limit_loss",
    "frozen_limit_fresh_loss",
    "frozen_limit_participation",
    "frozen_limit_localised_share",
    "gaussian_localised_share",
    "gaussian_limit_localised_share",
    "frozen_overlap",
)
"""Values of each set of gates."""


@Metric(
    requires="layered relu one_hidden mean_readout squared_error fresh_samples one_output "
    "candidates_of_units",
    observables="weights",
    variables={
        "frozen_loss": ("gates_from", "loss with frozen gates at the end of training"),
        "frozen_fresh_loss": (
            "gates_from",
            "loss on fresh samples with frozen gates at the end of training",
        ),
        "frozen_participation": (
            "gates_from",
            "inverse participation ratio times inputs with frozen gates at the end of training, "
            "mean over units",
        ),
        "frozen_localised_share": (
            "gates_from",
            "share of units whose receptive field is localised with frozen gates at the end of "
            "training",
        ),
        "frozen_limit_loss": ("gates_from", "least loss with frozen gates"),
        "frozen_limit_fresh_loss": (
            "gates_from",
            "loss on fresh samples with frozen gates after infinite time",
        ),
        "frozen_limit_participation": (
            "gates_from",
            "inverse participation ratio times inputs with frozen gates after infinite time, "
            "mean over units",
        ),
        "frozen_limit_localised_share": (
            "gates_from",
            "share of units whose receptive field is localised with frozen gates after infinite "
            "time",
        ),
        "gaussian_localised_share": (
            "gates_from",
            "share of units whose receptive field is localised with frozen gates on infinitely "
            "many Gaussian samples, at the end of training",
        ),
        "gaussian_limit_localised_share": (
            "gates_from",
            "share of units whose receptive field is localised with frozen gates on infinitely "
            "many Gaussian samples, after infinite time",
        ),
        "frozen_overlap": (
            "gates_from",
            "cosine of a unit's receptive field with that of frozen gates at the end of "
            "training, mean over units",
        ),
        "relu_loss": ("", "loss of the ReLU network at the end"),
        "relu_fresh_loss": ("", "loss of the ReLU network on fresh samples at the end"),
        "frozen_loss_ratio": (
            "gates_from",
            "loss on fresh samples with frozen gates over that of the ReLU network, at the end",
        ),
    },
    shares="frozen_localised_share frozen_limit_localised_share gaussian_localised_share "
    "gaussian_limit_localised_share",
)
def gate_prediction(cell: CellResults) -> Values:
    """Loss and receptive fields with frozen gates, from the initial weights of the ReLU network.

    Gates are those of the ReLU network at the start or at the end of training, or of a candidate.
    Weights are computed in closed form, for the time of training and for infinite time. Losses have
    the normalisation of training. Perfect predictions have an overlap and a loss ratio of 1. Fresh
    samples are those of the dataset with the next seed, where gates follow the same rule.
    `gaussian_` variables are in closed form for infinitely many Gaussian samples with the
    covariances of the classes.

    Values are NaN for diverged runs, and if a gate of the run is open on no sample. `gaussian_`
    variables are also NaN unless gates are half-spaces and classes have mean zero.

    Source: notes on localisation, sec. 2.2, with the closed form of section 3.3.
    """
    spec, data = cell.spec, cell.data
    fields, like = weights_on_ring(cell)
    start, end = fields[:, :, 0], fields[:, :, -1]
    fresh, time = sampled(spec, 1), cell.flow_time.values[[-1]]
    rules = _rules(cell, start, end)
    runs = like.isel(snapshot=-1, drop=True)
    arrays = {name: np.full((*runs.shape, len(rules)), np.nan) for name in NAMES}
    for number, groups in enumerate(rules.values()):
        for index, rule, normals in groups:
            if rule(data).any(axis=1).all():
                predicted = _predicted(rule, data, fresh, time, start[index], end[index])
                predicted |= _gaussian(spec.dataset.mixture(), normals, time, start[index])
                for name, values in predicted.items():
                    arrays[name][*index, number] = values
    factor, converged = spec.training.loss.factor(len(data.x)), cell.trajectory["diverged_at"] < 0
    frozen = {}
    for name, values in arrays.items():
        unit = factor if name.endswith("_loss") else 1.0
        frozen[name] = per_run(cell, unit * values, gates_from=list(rules)).where(converged)
    relu, relu_fresh = (
        per_run(cell, factor * sample_loss(np.maximum(end @ samples.x.T, 0), samples))
        for samples in (data, fresh)
    )
    return frozen | {
        "relu_loss": relu,
        "relu_fresh_loss": relu_fresh,
        "frozen_loss_ratio": frozen["frozen_fresh_loss"] / relu_fresh,
    }


def sample_loss(
    hidden: Float[np.ndarray, "*runs unit sample"], data: Data
) -> Float[np.ndarray, "*runs"]:
    """1/2 <(y - yhat)^2> for an output yhat that is the mean activity of the units."""
    return np.asarray(np.mean((data.y[:, 0] - hidden.mean(axis=-2)) ** 2, axis=-1) / 2)


def _rules(
    cell: CellResults,
    start: Fields,
    end: Fields,
) -> dict[str, list[tuple[tuple[Any, ...], Rule, Normals | None]]]:
    """Groups of runs with the same gates, by source.

    A group is an index of its runs, the rule that gives its gates on any samples, and the normals
    of the gates; None unless they are half-spaces.
    """
    rules: dict[str, list[tuple[tuple[Any, ...], Rule, Normals | None]]] = {
        # initial weights of a seed differ only by a positive factor, which changes no gate
        "initial": [
            (np.s_[:, seed], _relu(start[0, seed]), start[0, seed])
            for seed in range(start.shape[1])
        ],
        "trained": [
            (ensemble, _relu(end[ensemble]), end[ensemble])
            for ensemble in np.ndindex(end.shape[:2])
        ],
    }
    for name, network in cell.spec.candidates.items():
        normals = network.gates.normals(start.shape[3])
        rules[name] = [(np.s_[:, :], network.gates.gates, normals)]
    return rules


def _relu(normals: Normals) -> Rule:
    return lambda data: half_spaces(data.x, normals)


def _predicted(
    rule: Rule,
    data: Data,
    fresh: Data,
    time: Float[np.ndarray, " time"],
    start: Fields,
    end: Fields,
) -> dict[str, np.ndarray]:
    """Values of a group of runs by name, at one time and after infinite time."""
    frozen, fresh_gates = FrozenGates.from_samples(data.x, data.y[:, 0], rule(data)), rule(fresh)
    matched = frozen.weights(time, start)[..., 0, :, :]
    values = {"frozen_overlap": overlap(matched, end)}
    for when, weights in (("frozen", matched), ("frozen_limit", frozen.limit(start))):
        values |= {
            f"{when}_loss": frozen.loss(weights),
            f"{when}_fresh_loss": sample_loss(fresh_gates * (weights @ fresh.x.T), fresh),
            f"{when}_participation": unit_mean(participation(weights)),
            f"{when}_localised_share": class_shares(weights)["localised"],
        }
    return values


def _gaussian(
    mixture: Mixture, normals: Normals | None, time: Float[np.ndarray, " time"], start: Fields
) -> dict[str, np.ndarray]:
    """Values of a group of runs by name, for infinitely many Gaussian samples."""
    if normals is None or mixture.means.any() or not np.isfinite(normals).all():
        return {}
    frozen = FrozenGates.from_gaussian(mixture.covariances, mixture.targets, normals)
    matched = frozen.weights(time, start)[..., 0, :, :]
    return {
        f"{when}_localised_share": class_shares(weights)["localised"]
        for when, weights in (("gaussian", matched), ("gaussian_limit", frozen.limit(start)))
    }
