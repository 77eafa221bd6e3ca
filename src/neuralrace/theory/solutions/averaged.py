"""Theory of networks with mean readout, yhat = (1/K) sum_k g_k(x) w_k.x over K hidden units."""

from typing import cast

import numpy as np
from jaxtyping import Float

from neuralrace.datasets.base import Mixture
from neuralrace.datasets.marginals import Marginal
from neuralrace.extensions.registry import Solution
from neuralrace.networks.gates.half_space import half_spaces
from neuralrace.theory.frozen_gates import FrozenGates
from neuralrace.theory.mean_field import mean_field_flow
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.theory.solutions.variables import LOSS, RECEPTIVE_FIELDS


@Solution(
    requires="given_gates gated mean_readout unit_pathways squared_error gradient_flow gates_fit "
    "sees_all_inputs one_output",
    variables={"loss": LOSS, "receptive_fields": RECEPTIVE_FIELDS},
)
def frozen_gates(problem: Problem) -> Arrays:
    """Gradient flow of a gated network with one unit per pathway, in closed form.

    Source: notes on localisation, sections 3.1 to 3.5, corrected; see `theory.frozen_gates`.
    """
    start, frozen = _gated_network(problem)
    return _arrays(problem, frozen, frozen.weights(problem.time, start))


@Solution(
    requires="given_gates gated mean_readout unit_pathways squared_error gradient_descent "
    "gates_fit sees_all_inputs one_output",
    variables={"loss": LOSS, "receptive_fields": RECEPTIVE_FIELDS},
)
def frozen_gates_descent(problem: Problem) -> Arrays:
    """Gradient descent of a gated network with one unit per pathway, in closed form.

    The steps are those of training, so that theory and training differ by rounding only.

    Source: notes on localisation, sections 3.1 to 3.5, corrected; see `theory.frozen_gates`.
    """
    start, frozen = _gated_network(problem)
    return _arrays(problem, frozen, frozen.descent(problem.step, problem.flow_step, start))


@Solution(
    requires="layered relu mean_readout one_hidden squared_error gradient_flow one_output",
    variables={"loss": LOSS, "receptive_fields": RECEPTIVE_FIELDS},
)
def initial_gates(problem: Problem) -> Arrays:
    """A ReLU network whose gates stay fixed at initialisation, in closed form.

    The gates are those that the initial weights open, in every run.

    Source: notes on localisation, sections 3.1 to 3.5, corrected; see `theory.frozen_gates`.
    """
    by_seed = []
    for start in np.moveaxis(problem.weights[0], 1, 0):
        # scales of one seed share the directions of its weights, and so their gates
        frozen = _frozen(problem, half_spaces(problem.data.x, start[0]))
        by_seed.append(_arrays(problem, frozen, frozen.weights(problem.time, start)))
    return {name: np.stack([arrays[name] for arrays in by_seed], axis=1) for name in by_seed[0]}


@Solution(
    requires="layered relu mean_readout one_hidden squared_error gradient_flow "
    "known_input_distribution one_output",
    variables={"loss": LOSS, "receptive_fields": RECEPTIVE_FIELDS},
)
def mean_field(problem: Problem) -> Arrays:
    """Mean-field flow of ReLU units with Gaussian preactivations, from the initial weights.

    This flow is not a gradient flow and descends no loss exactly. The loss is therefore computed
    for a ReLU network with the predicted weights, on the samples.

    Source: notes on localisation, section 2.2 (one unit); derived here for any number of units.
    """
    mixture = cast(Mixture, problem.ensemble.dataset.mixture())
    marginal = cast(Marginal, mixture.marginal)
    target = problem.data.y[:, 0]
    path = mean_field_flow(
        problem.time, problem.weights[0], mixture.covariances, mixture.targets, marginal.quadrature
    )
    loss = np.empty(path.shape[:-2])
    for index in np.ndindex(loss.shape):
        output = np.maximum(problem.data.x @ path[index].T, 0).mean(axis=1)
        loss[index] = np.mean((output - target) ** 2) / 2
    return {"loss": problem.as_trained(loss), "receptive_fields": path[..., -1, :, :]}


def _frozen(problem: Problem, gates: Float[np.ndarray, "unit sample"]) -> FrozenGates:
    """The gated network on the samples, which have one output."""
    return FrozenGates.from_samples(problem.data.x, problem.data.y[:, 0], gates)


def _gated_network(
    problem: Problem,
) -> tuple[Float[np.ndarray, "init_scale seed unit input"], FrozenGates]:
    """Initial weights of all units, and the network with the gates of the wiring."""
    start = np.concatenate(problem.weights[::2], axis=-2)
    return start, _frozen(problem, problem.wiring.pathway_gates)


def _arrays(
    problem: Problem, frozen: FrozenGates, weights: Float[np.ndarray, "*runs time unit input"]
) -> Arrays:
    loss = problem.as_trained(frozen.loss(weights))
    return {"loss": loss, "receptive_fields": weights[..., -1, :, :]}
