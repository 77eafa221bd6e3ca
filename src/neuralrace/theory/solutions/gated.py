"""Theory of gated linear networks: gradient flow of all weights, and the neural race reduction."""

from collections.abc import Callable
from functools import reduce
from typing import cast

import numpy as np
from jaxtyping import Float

from neuralrace.extensions.registry import Solution
from neuralrace.networks.routing import Routing
from neuralrace.theory import gated_flow as all_weights
from neuralrace.theory import reduction as strengths
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.theory.solutions.variables import (
    LOSS,
    MODE_STRENGTH,
    SINGULAR_VALUES,
    UNTRAINED_ERROR,
)
from neuralrace.theory.zero_shot import untrained_error

ALIGNED = 1e-8
"""A start counts as aligned if at most this share of each matrix's norm lies off the modes."""


@Solution(
    requires="given_gates linear trained_readout joint_descent one_mask squared_error "
    "gradient_flow domains_in_memory gates_fit",
    variables={"loss": LOSS, "untrained_error": UNTRAINED_ERROR},
)
def gated_flow(problem: Problem) -> Arrays:
    """Gradient flow of all weights, integrated numerically, for any gates and start.

    Errors of untrained pairs exist for routing networks only.

    Source: Saxe, Sodhani, Lewallen 2022, "The Neural Race Reduction", gradient flow dynamics.
    """
    effective = problem.wiring.effective
    path = all_weights.gated_flow(problem.time, effective, problem.weights)
    loss = {"loss": problem.as_trained(all_weights.gated_loss(effective, path))}
    if not problem.ensemble.network.by_domain:
        return loss

    def pathway_map(edges: tuple[int, ...]) -> Float[np.ndarray, "*runs target source"]:
        return reduce(lambda below, edge: path[edge] @ below, edges[1:], path[edges[0]])

    return loss | {"untrained_error": _untrained_error(problem, loss["loss"], pathway_map)}


@Solution(
    requires="given_gates linear trained_readout joint_descent one_mask squared_error "
    "gradient_flow domains_in_memory aligned_start common_modes",
    variables={
        "loss": LOSS,
        "singular_values": SINGULAR_VALUES,
        "mode_strength": MODE_STRENGTH,
        "untrained_error": UNTRAINED_ERROR,
    },
)
def reduction(problem: Problem) -> Arrays:
    """The neural race reduction under gradient flow: one strength for each edge and mode.

    Singular values by layer, mode strengths and errors of untrained pairs exist for routing
    networks only.

    Source: Saxe, Sodhani, Lewallen 2022, "The Neural Race Reduction", gradient flow reduction.
    """
    effective = problem.wiring.effective
    start = strengths.aligned_strengths(effective, problem.weights, ALIGNED)
    return _arrays(problem, strengths.reduction_flow(problem.time, effective, start))


@Solution(
    requires="given_gates linear trained_readout joint_descent one_mask squared_error "
    "gradient_descent domains_in_memory aligned_start common_modes",
    variables={
        "loss": LOSS,
        "singular_values": SINGULAR_VALUES,
        "mode_strength": MODE_STRENGTH,
        "untrained_error": UNTRAINED_ERROR,
    },
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

    def pathway_map(edges: tuple[int, ...]) -> Float[np.ndarray, "*runs target source"]:
        first, last = (effective.architecture.edges[edges[end]] for end in (0, -1))
        left, right = effective.modes.bases[last[1]], effective.modes.bases[first[0]]
        return (left * path[..., list(edges), :].prod(axis=-2)[..., None, :]) @ right.T

    return loss | {
        "singular_values": np.stack(by_layer, axis=-2),
        "mode_strength": np.mean(maps, axis=0),
        "untrained_error": _untrained_error(problem, loss["loss"], pathway_map),
    }


def _untrained_error(
    problem: Problem,
    loss: Float[np.ndarray, "init_scale seed time"],
    pathway_map: Callable[[tuple[int, ...]], Float[np.ndarray, "*runs target source"]],
) -> Float[np.ndarray, "init_scale seed time"]:
    """Errors of untrained pairs of domains, from the map along edges; NaN if all are trained."""
    graph, domains = problem.wiring.architecture, problem.domains
    along: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for pathway in graph.pathways:
        pair = graph.inputs.index(pathway.source), graph.outputs.index(pathway.target)
        along.setdefault(pair, []).append(pathway.edges)

    def pair_map(i: int, j: int) -> np.ndarray:
        return np.sum([pathway_map(edges) for edges in along[i, j]], axis=0)

    trained = cast(Routing, problem.ensemble.network).mask(domains.count, 0)
    return np.broadcast_to(untrained_error(domains, trained, pair_map), loss.shape)
