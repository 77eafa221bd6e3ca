"""Parallel pathways that learn together, each as few hidden units as its task has modes."""

import numpy as np

from neuralrace.extensions.registry import Solution
from neuralrace.theory import pathway_modes as small
from neuralrace.theory.solutions.problem import Arrays, Problem


@Solution(
    requires="given_gates linear trained_readout one_mask squared_error gradient_flow "
    "domains_spelled_out parallel_pathways",
    variables={
        "loss": ("solution time", "loss predicted by theory"),
        "pathway_values": (
            "solution time pathway pathway_mode",
            "singular values of the map of each pathway by theory",
        ),
    },
)
def pathway_modes(problem: Problem) -> Arrays:
    """One hidden unit for each mode of each pathway, from the initial weights.

    Source: derived here, see `theory.pathway_modes`.
    """
    effective = problem.wiring.effective
    start = small.weight_start(effective, problem.weights)
    return _answer(problem, small.pathway_modes_flow(problem.time, effective, start))


@Solution(
    requires="given_gates linear trained_readout one_mask squared_error gradient_descent "
    "domains_spelled_out parallel_pathways",
    variables={
        "loss": ("solution time", "loss predicted by theory"),
        "pathway_values": (
            "solution time pathway pathway_mode",
            "singular values of the map of each pathway by theory",
        ),
    },
)
def pathway_modes_descent(problem: Problem) -> Arrays:
    """From the initial weights by the steps that training takes.

    Source: derived here, see `theory.pathway_modes`.
    """
    effective = problem.wiring.effective
    start = small.weight_start(effective, problem.weights)
    found = small.pathway_modes_descent(problem.step, problem.flow_step, effective, start)
    return _answer(problem, found)


@Solution(
    requires="given_gates linear trained_readout one_mask squared_error normal_start gradient_flow "
    "domains_spelled_out parallel_pathways",
    variables={
        "loss": ("solution time", "loss predicted by theory"),
        "pathway_values": (
            "solution time pathway pathway_mode",
            "singular values of the map of each pathway by theory",
        ),
    },
)
def pathway_modes_mean(problem: Problem) -> Arrays:
    """From width and variance of the initial weights alone.

    Source: derived here, see `theory.pathway_modes`.
    """
    effective, scales = problem.wiring.effective, np.array(problem.ensemble.init_scales)
    start = small.mean_start(effective, problem.pathway_widths, scales[:, None])
    return _answer(problem, small.pathway_modes_flow(problem.time, effective, start))


@Solution(
    requires="trained_candidates squared_error normal_start gradient_flow candidates_fit",
    variables={
        "candidate_loss": (
            "candidate time",
            "loss predicted for gated networks that may stand for this one",
        ),
    },
)
def candidate_modes(problem: Problem) -> Arrays:
    """Loss of every candidate from width and variance of the initial weights.

    Source: derived here, see `theory.pathway_modes`.
    """
    losses = []
    for network in problem.ensemble.candidates.values():
        candidate = Problem(problem.ensemble.model_copy(update={"network": network}), problem.step)
        losses.append(pathway_modes_mean(candidate)["loss"])
    return {"candidate_loss": np.stack(losses, axis=2)}


def _answer(problem: Problem, found: small.JointLearning) -> Arrays:
    """Loss and singular values of all runs, which may have been solved as one."""
    shape = (len(problem.ensemble.init_scales), problem.ensemble.seeds)
    values, data = found.singular_values, problem.data
    missing = min(data.x.shape[1], data.y.shape[1]) - values.shape[-1]
    values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])
    loss = problem.as_trained(found.loss)
    return {
        "loss": np.broadcast_to(loss, (*shape, *loss.shape[2:])),
        "pathway_values": np.broadcast_to(values, (*shape, *values.shape[2:])),
    }
