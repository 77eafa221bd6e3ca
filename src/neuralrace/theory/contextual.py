"""The contextual task in closed form: a common pathway, then a family of context pathways.

Each of n objects (n a power of two) is shown in each of C contexts, N = nC samples in all. Inputs
are a one-hot object and a one-hot context. Targets are a binary tree H of 2n - 1 properties in
every context, and for each context one more block that is H there and 0 elsewhere.

The common pathway is open on all samples and sees objects and contexts; what no linear map of them
can tell is the residual. A family of context pathways, one for every set of q contexts, learns it:
each is open in the contexts of its set and sees objects only. Contrasts between objects are modes
of both, by level of the tree. Loss is 1/2 <|y - yhat|^2>, time is gradient-flow time.

Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly", section 5 and appendices F and G, for q =
C - 1 and 3 to 5 contexts; extended here to any family, and by the head start.
"""

from math import comb, sqrt

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gamma

from neuralrace.theory.modes import deep_half_time, deep_mode, mode_loss


def tree_strengths(objects: int) -> Int[np.ndarray, " mode"]:
    """Squared singular values of the binary tree H: 2n - 1, then m - 1 for every branching node.

    The first mode is what all objects have in common; a node with m objects below contrasts its
    two halves, for m = n, n/2 twice, ..., 2 in n/2 places.

    Args:
        objects: number n of objects.

    Raises:
        ValueError: if n is not a power of two, from 2.
    """
    if objects < 2 or objects & (objects - 1):
        raise ValueError(f"objects: {objects}: a binary tree needs 2, 4, 8, ... of them")
    levels = 2 ** np.arange(objects.bit_length() - 1)
    return np.concatenate([[2 * objects - 1], np.repeat(objects // levels - 1, levels)])


def common_modes(
    contexts: int, objects: int
) -> tuple[Float[np.ndarray, " mode"], Float[np.ndarray, " mode"]]:
    """Modes of the common pathway: one of all samples, C - 1 of contexts, n - 1 of objects.

    Args:
        contexts: number C of contexts.
        objects: number n of objects.

    Returns:
        Singular values of sigma_yx and eigenvalues of sigma_xx, in this order, objects from the
        root of the tree.

    Raises:
        ValueError: if there are fewer than two contexts, or n is not a power of two.
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
    """Modes of the residual that the pathways open in q contexts share, n - 1 contrasts of objects.

    Pathways of the family overlap in contexts and in what they answer. Alike from the start, each
    follows da/dt = 2 a (s - k d a), with s = h sqrt(q (C - q)/C)/N, d = q/N and
    k d = binomial(C - 2, q - 1)/N. Families of q and of C - q contexts agree in s, in k d and in
    number: on the residual they learn alike.

    Args:
        contexts: number C of contexts.
        objects: number n of objects.
        open_in: number q of contexts that a pathway is open in.

    Returns:
        Singular values s of a pathway's sigma_yx on the residual, eigenvalues d of its sigma_xx,
        and the competition k: d is felt as k d.

    Raises:
        ValueError: if q is not between 1 and C - 1, or as `common_modes`.
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
    """Start on the residual that joint training amounts to, nothing fitted.

    While the common pathway learns, a context pathway is driven by the whole target, at the rate
    s_Q = h sqrt(q (q + 1))/N, and grows along the residual as well. With t_c the half time of the
    common mode and s the mode of the residual, it goes on as if it had been on the residual from
    time 0 with the start

        a0 K^2 exp(2 (s_Q - s) t_c) = a0 K^2 (s_c/(d_c a0_c) - 1)^((s_Q - s)/s_c),

    s_c = h sqrt(C (C + 1))/N. K depends on C and q alone and lies between 1/2 and 1.

    Exact as all starts go to 0, if the common pathway is first to learn the modes of contexts too.
    It is for 8 objects up to 11 contexts, for 4 up to 5 and for 2 up to 3. With more contexts than
    that, families of many contexts overtake it: gates tell contexts as well as inputs do.

    Args:
        contexts: number C of contexts.
        objects: number n of objects.
        open_in: number q of contexts that a pathway is open in.
        common_start: start a0_c of the common pathway's modes, in the order of `common_modes`.
        pathway_start: start a0 of the modes of each pathway's own sigma_yx.

    Raises:
        ValueError: as `context_modes`.

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

    L = L0 - sum(s a - d a^2/2) over common modes, less binomial(C, q) sum(s a - k d a^2/2) over
    those of the family, all a the sigmoids of `deep_mode`. Joint training is described with the
    `head_start` of the context pathways; with the start of their weights the family comes late.

    Args:
        time: gradient-flow time, from 0.
        contexts: number C of contexts.
        objects: number n of objects.
        open_in: number q of contexts that a pathway is open in.
        common_start: start of the modes of `common_modes`.
        context_start: start of those of `context_modes`, on the residual.

    Raises:
        ValueError: as `context_modes`, or if a time is negative.

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
    """Loss that the common pathway has taken away, sum(s a - d a^2/2).

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
    """Loss that a family has taken away from the residual, sum(s a - k d a^2/2) of all pathways.

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
    """Amplitude K of a context pathway past the half time t_c of the common mode.

    It grows as exp(s_Q (t - t_c)) before, and as K exp(s (t - t_c)) after. In units of s_c, the
    drive before has a part that the common pathway takes away, `lost`, and at a right angle to it
    that of the residual, `after`. Of a balanced pathway the encoder is x^2 + y^2 and the decoder
    has the parts 2 x y and x^2 - y^2; x and y obey a hypergeometric equation in the common mode,
    and K is the square of the connection coefficient of x.
    """
    lost = open_in / contexts
    after = sqrt(open_in * (contexts - open_in) / (contexts + 1)) / contexts
    before = sqrt(lost**2 + after**2)
    ratio = gamma(1 + before / 2) * gamma(1 + after / 2)
    ratio /= gamma(1 + (before + after + lost) / 4) * gamma(1 + (before + after - lost) / 4)
    return (1 + after / before) / 2 * float(ratio) ** 2


def _refuse_few(contexts: int) -> None:
    if contexts < 2:
        raise ValueError(f"contexts: {contexts}: there must be two or more")


def _refuse_family(contexts: int, open_in: int) -> None:
    _refuse_few(contexts)
    if not 0 < open_in < contexts:
        raise ValueError(
            f"open_in: {open_in}: pathways are open in 1 to {contexts - 1} of {contexts} contexts"
        )
