"""Networks that answer with the mean over hidden units, yhat = (1/K) sum_k g_k(x) w_k.x."""

from typing import cast

import numpy as np
from jaxtyping import Float

from neuralrace.datasets.base import Mixture
from neuralrace.datasets.marginals import Marginal
from neuralrace.extensions.registry import Solution
from neuralrace.networks.gates.half_space import half_spaces
from neuralrace.theory.frozen_gates import FrozenGates
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.theory.unit_flow import mean_field_flow


@Solution(
    requires="given_gates gated mean_readout unit_pathways squared_error gradient_flow gates_fit "
    "sees_all_inputs one_output",
    variables={
        "loss": ("solution time", "loss predicted by theory"),
        "receptive_fields": (
            "solution unit input",
            "incoming weights of hidden units at the end by theory",
        ),
    },
)
def frozen_gates(problem: Problem) -> Arrays:
    """Units with given gates, in closed form.

    Source: notes on localisation, sections 3.1 to 3.5, corrected; see `theory.frozen_gates`.
    """
    start, frozen = _given(problem)
    return _answer(problem, frozen, frozen.weights(problem.time, start))


@Solution(
    requires="given_gates gated mean_readout unit_pathways squared_error gradient_descent "
    "gates_fit sees_all_inputs one_output",
    variables={
        "loss": ("solution time", "loss predicted by theory"),
        "receptive_fields": (
            "solution unit input",
            "incoming weights of hidden units at the end by theory",
        ),
    },
)
def frozen_gates_descent(problem: Problem) -> Arrays:
    """Units with given gates by the steps that training takes: rounding is the only difference.

    Source: notes on localisation, sections 3.1 to 3.5, corrected; see `theory.frozen_gates`.
    """
    start, frozen = _given(problem)
    return _answer(problem, frozen, frozen.descent(problem.step, problem.flow_step, start))


@Solution(
    requires="layered relu mean_readout one_hidden squared_error gradient_flow one_output",
    variables={
        "loss": ("solution time", "loss predicted by theory"),
        "receptive_fields": (
            "solution unit input",
            "incoming weights of hidden units at the end by theory",
        ),
    },
)
def initial_gates(problem: Problem) -> Arrays:
    """A ReLU network whose gates stay what the initial weights make them, at every init scale.

    Source: notes on localisation, sections 3.1 to 3.5, corrected; see `theory.frozen_gates`.
    """
    by_seed = []
    for start in np.moveaxis(problem.weights[0], 1, 0):
        frozen = _frozen(problem, half_spaces(problem.data.x, start[0]))
        by_seed.append(_answer(problem, frozen, frozen.weights(problem.time, start)))
    return {name: np.stack([each[name] for each in by_seed], axis=1) for name in by_seed[0]}


@Solution(
    requires="layered relu mean_readout one_hidden squared_error gradient_flow known_input_law "
    "one_output",
    variables={
        "loss": ("solution time", "loss predicted by theory"),
        "receptive_fields": (
            "solution unit input",
            "incoming weights of hidden units at the end by theory",
        ),
    },
)
def mean_field(problem: Problem) -> Arrays:
    """Units that see each other through Gaussian preactivations, from their own initial weights.

    The flow is no gradient flow, so it has no loss of its own: that of its weights is given, as a
    ReLU network on the samples.

    Source: notes on localisation, section 2.2 (one unit); derived here for any number of units.
    """
    law = cast(Mixture, problem.ensemble.dataset.mixture())
    marginal = cast(Marginal, law.marginal)
    target = problem.data.y[:, 0]
    path = mean_field_flow(
        problem.time, problem.weights[0], law.covariances, law.targets, marginal.quadrature
    )
    loss = np.empty(path.shape[:-2])
    for at in np.ndindex(loss.shape):
        answer = np.maximum(problem.data.x @ path[at].T, 0).mean(axis=1)
        loss[at] = np.mean((answer - target) ** 2) / 2
    return {"loss": problem.as_trained(loss), "receptive_fields": path[..., -1, :, :]}


def _frozen(problem: Problem, gates: Float[np.ndarray, "unit sample"]) -> FrozenGates:
    """The network with these gates on the samples, which have one output."""
    return FrozenGates.from_samples(problem.data.x, problem.data.y[:, 0], gates)


def _given(
    problem: Problem,
) -> tuple[Float[np.ndarray, "init_scale seed unit input"], FrozenGates]:
    """Initial weights of all units, and the network with its given gates."""
    start = np.concatenate(problem.weights[::2], axis=-2)
    return start, _frozen(problem, problem.wiring.pathway_gates)


def _answer(
    problem: Problem, frozen: FrozenGates, weights: Float[np.ndarray, "*runs time unit input"]
) -> Arrays:
    loss = problem.as_trained(frozen.loss(weights))
    return {"loss": loss, "receptive_fields": weights[..., -1, :, :]}
