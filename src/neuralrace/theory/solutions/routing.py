"""Routing networks: pathway blocks that input and output domains share."""

from typing import cast

import numpy as np

from neuralrace.extensions.registry import Solution
from neuralrace.networks.modules.routing import stacked
from neuralrace.networks.routing import Routing
from neuralrace.theory.modes import mode_loss
from neuralrace.theory.routing import routing_mode, routing_start
from neuralrace.theory.solutions.problem import Arrays, Problem

Modes = tuple[np.ndarray, np.ndarray, np.ndarray]


@Solution(
    requires="routing linear two_hidden squared_error gradient_flow domains_spelled_out "
    "orthogonal_start pathway_blocks_alike pairs_alike",
    variables={
        "loss": ("solution time", "loss predicted by theory"),
        "mode_strength": ("solution time mode", "effective singular values by theory"),
        "singular_values": (
            "solution time layer singular_mode",
            "singular values of the weights by theory",
        ),
    },
)
def routing_race(problem: Problem) -> Arrays:
    """Every mode of every block, from an aligned start that stands for the random one.

    Loss and mode strengths are means over blocks, singular values those of the first block.

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
    return {
        "loss": problem.as_trained(loss.mean(axis=(2, 3))),
        "mode_strength": strength.mean(axis=(2, 3)),
        "singular_values": path[:, :, 0, 0],
    }
