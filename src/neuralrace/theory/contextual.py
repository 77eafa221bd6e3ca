"""The contextual task in closed form: a common pathway, then a family of context pathways.

Each of n objects (n a power of two) is shown in each of C contexts, so that there are N = nC
samples. Inputs are a one-hot object and a one-hot context. Targets are a binary tree H of 2n - 1
properties in every context, and one more block for each context that is H there and 0 elsewhere.

The common pathway is open on all samples and sees objects and contexts. The residual is the part of
the targets that no linear map of these inputs explains. A family of context pathways, one for every
set of q contexts, learns the residual: each is open in the contexts of its set and sees objects
only. Contrasts between objects, by level of the tree, are modes of both. Loss is
1/2 <|y - yhat|^2>, time is gradient-flow time.

Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", section 5 and appendices F and G, for q =
C - 1 and 3 to 5 contexts; extended here to any family, and by the head start.
"""

from math import comb, sqrt

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gamma

from neuralrace.errors import UserError
from neuralrace.theory.modes import deep_half_time, deep_mode, mode_loss


def tree_strengths(objects: int) -> Int[np.ndarray, " mode"]:
    """Squared singular values of the binary tree H: 2n - 1, then m - 1 for every branching node.

    The first mode is common to all objects. A node with m objects below it contrasts its two
    halves: one node has m = n, two have m = n/2, and n/2 nodes have m = 2.

    Args:
        objects: number n of objects.

    Raises:
        UserError: if n is not a power of two, at least 2.
    """
    if objects < 2 or objects & (objects - 1):
        raise UserError("a binary tree needs 2, 4, 8, ... of them", key="objects", value=objects)
    levels = 2 ** np.arange(objects.bit_length() - 1)
    return np.concatenate([[2 * objects - 1], np.repeat(objects // levels - 1, levels)])


def common_modes(
    contexts: int, objects: int
) -> tuple[Float[np.ndarray, " mode"], Float[np.ndarray, " mode"]]:
    """Modes of the common pathway: 1 of all samples, C - 1 of contexts, n - 1 of objects.

    Args:
        contexts: number C of contexts.
        objects: number n of objects.

    Returns:
        Singular values of sigma_yx and eigenvalues of sigma_xx, in this order, objects from the
        root of the tree.

    Raises:
        UserError: if there are fewer than two contexts, or n is not a power of two.
    """
    _refuse_few(contexts)
    first, *contrasts = tree_strengths(objects)
    squares = np.concatenate(
        [
            [first * (objects + contexts) * (contexts + 1)],
            np.full(contexts - 1, first * objects),
            np.multiply(contrasts, contexts * (contexts + 1)),
        ]
    )
    d = np.repeat([objects + contexts, objects, contexts], [1, contexts - 1, objects - 1])
    samples = objects * contexts
    return np.sqrt(squares) / samples, d / samples


def context_modes(
    contexts: int, objects: int, open_in: int
) -> tuple[Float[np.ndarray, " mode"], Float[np.ndarray, " mode"], float]:
    """Modes of the residual for pathways open in q contexts: n - 1 contrasts of objects.

    Pathways of a family overlap in contexts and in outputs. From equal starts, each of them follows
    da/dt = 2 a (s - k d a), with s = h sqrt(q (C - q)/C)/N, d = q/N and
    k d = binomial(C - 2, q - 1)/N. Families of q and of C - q contexts have the same s, k d and
    number of pathways, and so learn the residual at the same rate.

    Args:
        contexts: number C of contexts.
        objects: number n of objects.
        open_in: number q of contexts that a pathway is open in.

    Returns:
        Singular values s of a pathway's sigma_yx on the residual, eigenvalues d of its sigma_xx,
        and the factor k by which the competition of pathways multiplies d.

    Raises:
        UserError: if q is not between 1 and C - 1, or as `common_modes`.
    """
    _refuse_family(contexts, open_in)
    contrasts = tree_strengths(objects)[1:]
    samples = objects * contexts
    s = np.sqrt(contrasts * open_in * (contexts - open_in) / contexts) / samples
    k = comb(contexts - 2, open_in - 1) / open_in
    return s, np.full(objects - 1, open_in / samples), k


def head_start(
    contexts: int,
    objects: int,
    open_in: int,
    common_start: Float[np.ndarray, "*#runs mode"],
    pathway_start: Float[np.ndarray, "*#runs context_mode"],
) -> Float[np.ndarray, "*runs context_mode"]:
    """Equivalent start of context pathways on the residual under joint training, nothing fitted.

    While the common pathway learns, the whole target drives a context pathway at the rate
    s_Q = h sqrt(q (q + 1))/N, and the pathway grows along the residual as well. Let t_c be the half
    time of the common mode and s the singular value of the residual mode. The pathway continues as
    if it had learned the residual from time 0 with the start

        a0 K^2 exp(2 (s_Q - s) t_c) = a0 K^2 (s_c/(d_c a0_c) - 1)^((s_Q - s)/s_c),

    s_c = h sqrt(C (C + 1))/N. K depends on C and q alone and lies between 1/2 and 1.

    This is exact as all starts go to 0, if the common pathway is also the first to learn the modes
    of contexts. That holds up to 11 contexts for 8 objects, 5 for 4 and 3 for 2. With more,
    families of many contexts overtake it, because their gates carry the context as well.

    Args:
        contexts: number C of contexts.
        objects: number n of objects.
        open_in: number q of contexts that a pathway is open in.
        common_start: start a0_c of the common pathway's modes, in the order of `common_modes`.
        pathway_start: start a0 of the modes of each pathway's own sigma_yx.

    Raises:
        UserError: as `context_modes`.

    Source: derived here.
    """
    s, _, _ = context_modes(contexts, objects, open_in)
    s_c, d_c = (part[contexts:] for part in common_modes(contexts, objects))
    s_q = s_c * sqrt(open_in * (open_in + 1) / (contexts * (contexts + 1)))
    crossing = deep_half_time(s_c, d_c, common_start[..., contexts:])
    return pathway_start * (_crossing(contexts, open_in) * np.exp((s_q - s) * crossing)) ** 2


def staged_loss(
    time: Float[np.ndarray, " time"],
    contexts: int,
    objects: int,
    open_in: int,
    common_start: Float[np.ndarray, "*#runs mode"],
    context_start: Float[np.ndarray, "*#runs context_mode"],
) -> Float[np.ndarray, "*runs time"]:
    """Loss in closed form: the common pathway on the targets and a family on its residual.

    L = L0 - sum(s a - d a^2/2) over common modes - binomial(C, q) sum(s a - k d a^2/2) over modes
    of the family, where every a is a sigmoid of `deep_mode`. The `head_start` of the context
    pathways describes joint training; their initial weights would let the family learn too late.

    Args:
        time: gradient-flow time, from 0.
        contexts: number C of contexts.
        objects: number n of objects.
        open_in: number q of contexts that a pathway is open in.
        common_start: start of the modes of `common_modes`.
        context_start: start of the modes of `context_modes`, on the residual.

    Raises:
        UserError: as `context_modes`.
        ValueError: if a time is negative.

    Source: Jarvis, Klein, Rosman, Saxe, section 5 and appendices F and G.
    """
    common = common_gain(time, contexts, objects, common_start)
    family = family_gain(time, contexts, objects, open_in, context_start)
    return float(tree_strengths(objects).sum()) / objects - common - family


def common_gain(
    time: Float[np.ndarray, " time"],
    contexts: int,
    objects: int,
    start: Float[np.ndarray, "*#runs mode"],
) -> Float[np.ndarray, "*runs time"]:
    """Decrease of the loss by the common pathway, sum(s a - d a^2/2).

    Arguments and errors are those of `staged_loss`.
    """
    s, d = common_modes(contexts, objects)
    return -mode_loss(common_strengths(time, contexts, objects, start), s, d, 0.0)


def common_strengths(
    time: Float[np.ndarray, " time"],
    contexts: int,
    objects: int,
    start: Float[np.ndarray, "*#runs mode"],
) -> Float[np.ndarray, "*runs time mode"]:
    """Singular values of the common pathway's map, in the order of `common_modes`.

    Arguments and errors are those of `staged_loss`.
    """
    return deep_mode(time, *common_modes(contexts, objects), start)


def family_gain(
    time: Float[np.ndarray, " time"],
    contexts: int,
    objects: int,
    open_in: int,
    start: Float[np.ndarray, "*#runs context_mode"],
) -> Float[np.ndarray, "*runs time"]:
    """Decrease of the loss by all pathways of a family, sum(s a - k d a^2/2).

    Arguments and errors are those of `staged_loss`.
    """
    s, d, k = context_modes(contexts, objects, open_in)
    strengths = family_strengths(time, contexts, objects, open_in, start)
    return comb(contexts, open_in) * -mode_loss(strengths, s, k * d, 0.0)


def family_strengths(
    time: Float[np.ndarray, " time"],
    contexts: int,
    objects: int,
    open_in: int,
    start: Float[np.ndarray, "*#runs context_mode"],
) -> Float[np.ndarray, "*runs time context_mode"]:
    """Singular values of the map of each pathway of a family, in the order of `context_modes`.

    Arguments and errors are those of `staged_loss`.
    """
    s, d, k = context_modes(contexts, objects, open_in)
    return deep_mode(time, s, k * d, start)


def _crossing(contexts: int, open_in: int) -> float:
    """Amplitude K of a context pathway after the half time t_c of the common mode.

    The pathway grows as exp(s_Q (t - t_c)) before t_c, and as K exp(s (t - t_c)) after. In units of
    s_c, the drive before t_c has two orthogonal parts: the common pathway removes `lost`, and
    `after` belongs to the residual. A balanced pathway has the encoder x^2 + y^2 and the
    decoder components 2 x y and x^2 - y^2. As functions of the common mode, x and y obey a
    hypergeometric equation, and K is the square of the connection coefficient of x.
    """
    lost = open_in / contexts
    after = sqrt(open_in * (contexts - open_in) / (contexts + 1)) / contexts
    before = sqrt(lost**2 + after**2)
    ratio = gamma(1 + before / 2) * gamma(1 + after / 2)
    ratio /= gamma(1 + (before + after + lost) / 4) * gamma(1 + (before + after - lost) / 4)
    return (1 + after / before) / 2 * float(ratio) ** 2


def _refuse_few(contexts: int) -> None:
    if contexts < 2:
        raise UserError("there must be two or more", key="contexts", value=contexts)


def _refuse_family(contexts: int, open_in: int) -> None:
    _refuse_few(contexts)
    if not 0 < open_in < contexts:
        problem = f"pathways are open in 1 to {contexts - 1} of {contexts} contexts"
        raise UserError(problem, key="open_in", value=open_in)
