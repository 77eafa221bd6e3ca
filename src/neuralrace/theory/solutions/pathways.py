"""Theory of parallel pathways, with one hidden unit for each mode."""

import numpy as np

from neuralrace.extensions.registry import Solution
from neuralrace.theory import pathway_modes as small
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.theory.solutions.variables import LOSS, PATHWAY_VALUES


@Solution(
    requires="given_gates linear trained_readout one_mask squared_error "
    "gradient_flow domains_in_memory parallel_pathways",
    variables={"loss": LOSS, "pathway_values": PATHWAY_VALUES},
    derived_for="small weights",
)
def pathway_modes(problem: Problem) -> Arrays:
    """Gradient flow of pathways with one hidden unit per mode, from the initial weights.

    Source: derived here, see `theory.pathway_modes`.
    """
    effective = problem.wiring.effective
    start = small.weight_start(effective, problem.weights)
    learning = small.pathway_modes_flow(problem.time, effective, start, _stages(problem))
    return _arrays(problem, learning)


@Solution(
    requires="given_gates linear trained_readout one_mask squared_error "
    "gradient_descent domains_in_memory parallel_pathways",
    variables={"loss": LOSS, "pathway_values": PATHWAY_VALUES},
    derived_for="small weights",
)
def pathway_modes_descent(problem: Problem) -> Arrays:
    """Gradient descent of pathways with one hidden unit per mode, with training's steps.

    Source: derived here, see `theory.pathway_modes`.
    """
    effective = problem.wiring.effective
    start = small.weight_start(effective, problem.weights)
    learning = small.pathway_modes_descent(
        problem.step, problem.flow_step, effective, start, _stages(problem)
    )
    return _arrays(problem, learning)


@Solution(
    requires="given_gates linear trained_readout one_mask squared_error "
    "normal_start gradient_flow domains_in_memory parallel_pathways",
    variables={"loss": LOSS, "pathway_values": PATHWAY_VALUES},
    derived_for="small weights",
)
def pathway_modes_mean(problem: Problem) -> Arrays:
    """Gradient flow of pathways, from width and variance of the initial weights only.

    Source: derived here, see `theory.pathway_modes`.
    """
    effective, scales = problem.wiring.effective, np.array(problem.ensemble.init_scales)
    start = small.mean_start(effective, problem.pathway_widths, scales[:, None])
    learning = small.pathway_modes_flow(problem.time, effective, start, _stages(problem))
    return _arrays(problem, learning)


@Solution(
    requires="trained_candidates squared_error normal_start gradient_flow candidates_fit",
    variables={
        "candidate_loss": (
            "candidate time",
            "loss predicted for gated networks that may stand for this one",
        ),
    },
    derived_for="small weights",
)
def candidate_modes(problem: Problem) -> Arrays:
    """Loss of every candidate network, from width and variance of its initial weights only.

    Source: derived here, see `theory.pathway_modes`.
    """
    losses = []
    for network in problem.ensemble.candidates.values():
        candidate = Problem(problem.ensemble.model_copy(update={"network": network}), problem.step)
        losses.append(pathway_modes_mean(candidate)["loss"])
    return {"candidate_loss": np.stack(losses, axis=2)}


def _stages(problem: Problem) -> tuple[int, ...] | None:
    """Stages of the network; None for joint descent."""
    return getattr(problem.ensemble.network, "stages", None)


def _arrays(problem: Problem, learning: small.PathwayLearning) -> Arrays:
    """Loss and singular values of every run; runs with a common start were solved once."""
    shape = (len(problem.ensemble.init_scales), problem.ensemble.seeds)
    values, data = learning.singular_values, problem.data
    missing = min(data.x.shape[1], data.y.shape[1]) - values.shape[-1]
    values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])
    loss = problem.as_trained(learning.loss)
    return {
        "loss": np.broadcast_to(loss, (*shape, *loss.shape[2:])),
        "pathway_values": np.broadcast_to(values, (*shape, *values.shape[2:])),
    }
