"""Theory of gated linear networks: gradient flow of all weights, and the neural race reduction."""

import numpy as np
from jaxtyping import Float

from neuralrace.extensions.registry import Solution
from neuralrace.theory import gated_flow as all_weights
from neuralrace.theory import reduction as strengths
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.theory.solutions.variables import LOSS, MODE_STRENGTH, SINGULAR_VALUES

ALIGNED = 1e-8
"""A start counts as aligned if at most this share of each matrix's norm lies off the modes."""


@Solution(
    requires="given_gates linear trained_readout joint_descent one_mask squared_error "
    "gradient_flow domains_in_memory gates_fit",
    variables={"loss": LOSS},
)
def gated_flow(problem: Problem) -> Arrays:
    """Gradient flow of all weights, integrated numerically, for any gates and start.

    Source: Saxe, Sodhani, Lewallen 2022, "The Neural Race Reduction", gradient flow dynamics.
    """
    effective = problem.wiring.effective
    path = all_weights.gated_flow(problem.time, effective, problem.weights)
    return {"loss": problem.as_trained(all_weights.gated_loss(effective, path))}


@Solution(
    requires="given_gates linear trained_readout joint_descent one_mask squared_error "
    "gradient_flow domains_in_memory aligned_start common_modes",
    variables={"loss": LOSS, "singular_values": SINGULAR_VALUES, "mode_strength": MODE_STRENGTH},
)
def reduction(problem: Problem) -> Arrays:
    """The neural race reduction under gradient flow: one strength for each edge and mode.

    Singular values by layer and mode strengths exist for routing networks only.

    Source: Saxe, Sodhani, Lewallen 2022, "The Neural Race Reduction", gradient flow reduction.
    """
    effective = problem.wiring.effective
    start = strengths.aligned_strengths(effective, problem.weights, ALIGNED)
    return _arrays(problem, strengths.reduction_flow(problem.time, effective, start))


@Solution(
    requires="given_gates linear trained_readout joint_descent one_mask squared_error "
    "gradient_descent domains_in_memory aligned_start common_modes",
    variables={"loss": LOSS, "singular_values": SINGULAR_VALUES, "mode_strength": MODE_STRENGTH},
)
def reduction_descent(problem: Problem) -> Arrays:
    """The neural race reduction under gradient descent: one strength for each edge and mode.

    The steps are those of training, so that theory and training differ by rounding only.

    Source: Saxe, Sodhani, Lewallen 2022, "The Neural Race Reduction", gradient flow reduction.
    """
    effective = problem.wiring.effective
    start = strengths.aligned_strengths(effective, problem.weights, ALIGNED)
    path = strengths.reduction_descent(problem.step, problem.flow_step, effective, start)
    return _arrays(problem, path)


def _arrays(problem: Problem, path: Float[np.ndarray, "*runs time edge mode"]) -> Arrays:
    """Loss, singular values and mode strengths of aligned weights."""
    wiring, effective = problem.wiring, problem.wiring.effective
    loss = {"loss": problem.as_trained(strengths.reduction_loss(effective, path))}
    values = -np.sort(-np.abs(path), axis=-1)
    if not problem.ensemble.network.by_domain:
        return loss | {"singular_values": values}
    layers = np.array(wiring.architecture.levels)
    by_layer = [values[..., layers == n, :].mean(axis=-2) for n in range(layers.max() + 1)]
    maps = [  # of trained pairs only: the others have no targets
        path[..., list(pathway.edges), :].prod(axis=-2)
        for pathway, s in zip(wiring.architecture.pathways, effective.modes.s, strict=True)
        if s.any()
    ]
    return loss | {
        "singular_values": np.stack(by_layer, axis=-2),
        "mode_strength": np.mean(maps, axis=0),
    }
