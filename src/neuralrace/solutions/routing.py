"""Routing networks: pathway blocks that input and output domains share."""

from typing import cast

import numpy as np
from jaxtyping import Float

from neuralrace.datasets import Domains
from neuralrace.errors import UserError
from neuralrace.models.routing import stacked
from neuralrace.networks.routing import Routing
from neuralrace.registry import Solution
from neuralrace.solutions.problem import Arrays, Problem
from neuralrace.theory.modes import mode_loss
from neuralrace.theory.routing import routing_mode, routing_start


@Solution(
    needs="routing linear two_hidden squared_error gradient_flow",
    gives={
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

    Raises:
        UserError: blocks or hidden layers of several sizes, blocks of some domains with pairs that
            are not trained, pairs of domains that differ in their modes, or a start that is no
            multiple of orthogonal matrices.

    Source: Saxe, Sodhani, Lewallen 2022, "The Neural Race Reduction", figs. 4 to 6 and eq. 15; the
    start is derived here.
    """
    network, domains = cast(Routing, problem.ensemble.network), problem.domains
    count = domains.count
    families = network.families(count)
    if len(families) != 1:
        raise UserError("solutions: routing_race is for pathway blocks of one size")
    if len(set(network.hidden)) > 1:
        raise UserError(
            f"network.hidden: {list(network.hidden)}: solutions: routing_race is for hidden layers "
            "of one width"
        )
    trained, size = network.mask(count, 0), families[0].size
    if size < count and not trained.all():
        raise UserError("solutions: routing_race of groups needs network.pairs all")
    ((encoder, hidden, decoder),) = stacked(problem.weights, families, count)
    u, s, v = _pair_modes(domains)
    d = np.einsum("ik,ij,jk->k", v[0], domains.sigma_xx[0], v[0])
    # by block: rows are groups of input domains, columns groups of output domains
    u, v = u.reshape(1, -1, size, *u.shape[1:]), v.reshape(-1, 1, size, *v.shape[1:])
    try:
        start = routing_start(encoder, hidden, decoder, u, v)
    except ValueError as error:
        raise UserError(f"solutions: routing_race: {error}") from error
    share = trained[:size, :size].sum() / size / trained.sum()
    path = routing_mode(problem.time, s, d, start, size, float(share))
    strength = path.prod(axis=-2)
    loss = mode_loss(strength, s, d, float(domains.y_power.mean()))
    return {
        "loss": problem.as_trained(loss.mean(axis=(2, 3))),
        "mode_strength": strength.mean(axis=(2, 3)),
        "singular_values": path[:, :, 0, 0],
    }


def _pair_modes(
    domains: Domains,
) -> tuple[
    Float[np.ndarray, "domain output mode"],
    Float[np.ndarray, " mode"],
    Float[np.ndarray, "domain input mode"],
]:
    """Singular vectors u and v of each domain, and the strengths s that all pairs share.

    Raises:
        UserError: pairs of domains differ in their modes.
    """
    sigma = domains.sigma_yx
    first, s, second = np.linalg.svd(sigma[0, 0], full_matrices=False)
    v = np.einsum("iyx,yk->ixk", sigma[:, 0], first) / s
    u = np.einsum("jyx,kx->jyk", sigma[0], second) / s
    if not np.allclose(np.einsum("jyk,k,ixk->ijyx", u, s, v), sigma, atol=1e-9 * s[0]):
        raise UserError("solutions: routing_race needs pairs of domains with the same modes")
    return u, s, v
