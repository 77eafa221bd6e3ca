"""Theory of routing networks, whose pathway blocks are shared by input and output domains."""

from typing import cast

import numpy as np

from neuralrace.extensions.registry import Solution
from neuralrace.networks.modules.routing import stacked
from neuralrace.networks.routing import Routing
from neuralrace.theory.modes import mode_loss
from neuralrace.theory.routing import routing_mode, routing_start
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.theory.solutions.variables import (
    LOSS,
    MODE_STRENGTH,
    SINGULAR_VALUES,
    UNTRAINED_ERROR,
)
from neuralrace.theory.zero_shot import ridge_maps, untrained_error

Modes = tuple[np.ndarray, np.ndarray, np.ndarray]


@Solution(
    requires="routing linear two_hidden squared_error gradient_flow domains_in_memory "
    "orthogonal_start equal_pathway_blocks equal_pairs",
    variables={
        "loss": LOSS,
        "mode_strength": MODE_STRENGTH,
        "singular_values": SINGULAR_VALUES,
        "untrained_error": UNTRAINED_ERROR,
    },
)
def routing_race(problem: Problem) -> Arrays:
    """Closed-form race of all modes in each pathway block of a routing network.

    It starts from aligned weights that are equivalent to the random initial ones. Loss and mode
    strengths are means over blocks; the singular values are of the first block. Untrained pairs of
    domains have the strengths of trained ones, as they share all weights with them.

    Source: Saxe, Sodhani, Lewallen 2022, "The Neural Race Reduction", figs. 4 to 6 and eq. 15; the
    start is derived here.
    """
    network, domains = cast(Routing, problem.ensemble.network), problem.domains
    count = domains.count
    families = network.families(count)
    trained, size = network.mask(count, 0), families[0].size
    ((encoder, hidden, decoder),) = stacked(problem.weights, families, count)
    u, s, v = cast(Modes, domains.modes)
    d = np.einsum("ik,ij,jk->k", v[0], domains.sigma_xx[0], v[0])
    # by block: rows are groups of input domains, columns groups of output domains
    u, v = u.reshape(1, -1, size, *u.shape[1:]), v.reshape(-1, 1, size, *v.shape[1:])
    start = routing_start(encoder, hidden, decoder, u, v)
    share = trained[:size, :size].sum() / size / trained.sum()
    path = routing_mode(problem.time, s, d, start, size, float(share))
    strength = path.prod(axis=-2)
    loss = mode_loss(strength, s, d, float(domains.y_power.mean()))
    untrained = np.full(strength.shape[:2] + problem.time.shape, np.nan)  # all pairs may be trained
    for number, seed in enumerate(problem.ensemble.seed_numbers):
        if len(partners := np.nonzero(~network.mask(count, seed))[1]):  # in the only block
            errors = [2 * mode_loss(strength[:, number, 0, 0], s, d, float(power)) / power
                      for power in domains.y_power]  # fmt: skip
            untrained[:, number] = np.mean([errors[j] for j in partners], axis=0)
    return {
        "loss": problem.as_trained(loss.mean(axis=(2, 3))),
        "mode_strength": strength.mean(axis=(2, 3)),
        "singular_values": path[:, :, 0, 0],
        "untrained_error": untrained,
    }


@Solution(
    requires="routing linear squared_error domains_in_memory",
    variables={"untrained_error": UNTRAINED_ERROR},
    baseline=True,
)
def ridge(problem: Problem) -> Arrays:
    """Ridge regression of all output domains on all input domains, from trained pairs alone.

    It says what untrained pairs are worth to a method without shared pathways: in it no input of
    an untrained pair is ever seen together with its output, so that their error is 1, that of an
    output of zero. It has no loss, and is constant in time.

    Source: Golub, Heath, Wahba 1979, for the penalty.
    """
    network, domains = cast(Routing, problem.ensemble.network), problem.domains
    errors = []
    for seed in problem.ensemble.seed_numbers:
        trained = network.mask(domains.count, seed)
        maps = ridge_maps(domains, trained)
        errors.append(untrained_error(domains, trained, lambda i, j, maps=maps: maps[i, j]))
    shape = len(problem.ensemble.init_scales), len(errors), len(problem.time)
    return {"untrained_error": np.broadcast_to(np.array(errors)[:, None], shape)}
