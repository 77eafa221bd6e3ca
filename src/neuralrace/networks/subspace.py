"""The subspace of hidden units that gradient descent on a linear pathway block never leaves.

Linear routing networks are trained in it, at less cost; observables see all units.

A block has an encoder A (unit, input) and a decoder D (output, unit), for all its domains at once,
and matrices W_k = a_k Q_k between its hidden layers, with Q_k orthogonal at the start. Let B_1 be
an orthonormal basis of the span of the columns of A and of Q_1^T ... Q_K^T D^T, and
B_{k+1} = Q_k B_k. As long as

    A = B_1 A',   W_k = a_k (Q_k - B_{k+1} B_k^T) + B_{k+1} W'_k B_k^T,   D = D' B_{K+1}^T,

W_k B_k = B_{k+1} W'_k, so that the map of the block is D' W'_K ... W'_1 A'. The gradients of A, W_k
and D are B_1 G_A, B_{k+1} G_k B_k^T and G_D B_{K+1}^T, where G_A, G_k and G_D are the gradients of
the narrow block, A', W'_k and D'. The form above therefore holds at the start, with W'_k = a_k I,
and after every step along weighted sums of gradients: the narrow block descends as the wide one
does, up to rounding, and the wide one follows from it. With one hidden layer there is no W_k, and
the start may be any.

A basis has inputs + outputs vectors, over all domains of the block.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from neuralrace.extensions.representation import short_repr
from neuralrace.networks.gates.base import Family
from neuralrace.networks.initialisers.base import Initialiser
from neuralrace.training.settings import Training


def trained_family(
    family: Family, widths: tuple[int, int], initialiser: Initialiser, training: Training
) -> Family:
    """A family of linear pathway blocks, at the width of its subspace where that is exact and less.

    Args:
        family: the pathway blocks.
        widths: units of an input domain and of an output domain.
        initialiser: draws the initial weights.
        training: with an optimiser that is not linear, the family stays as it is.
    """
    layers, width = len(family.hidden), family.size * sum(widths)
    orthogonal = initialiser.orthogonal and len(set(family.hidden)) == 1
    exact = training.optimiser.is_linear and (orthogonal or layers == 1)
    if exact and width < family.hidden[0]:
        return replace(family, hidden=(width,) * layers)
    return family


@dataclass(frozen=True)
class Narrow:
    """Weights of pathway blocks in their subspaces; every array is (*block, ...).

    Attributes:
        weights: encoders A', W'_1 ... W'_K and decoders D'.
        bases: B_1 ... B_{K+1}.
        outside: a_k (Q_k - B_{k+1} B_k^T), which training does not change.
    """

    weights: list[Float[np.ndarray, "..."]]
    bases: list[Float[np.ndarray, "*block unit direction"]]
    outside: list[Float[np.ndarray, "*block unit unit_below"]]

    __repr__ = short_repr


def narrow(weights: Sequence[np.ndarray]) -> Narrow:
    """Initial weights of pathway blocks in their subspaces.

    Args:
        weights: encoders (*block, domain, unit, input), multiples of orthogonal matrices between
            hidden layers (*block, unit, unit below), decoders (*block, domain, output, unit).
    """
    encoder, *hidden, decoder = weights
    factors = [
        np.linalg.norm(matrix, axis=(-2, -1), keepdims=True) / np.sqrt(matrix.shape[-1])
        for matrix in hidden
    ]
    rotations = [matrix / factor for matrix, factor in zip(hidden, factors, strict=True)]
    *block, _, units, _ = encoder.shape
    columns = encoder.swapaxes(-3, -2).reshape(*block, units, -1)
    rows = decoder.reshape(*block, -1, units)
    for rotation in reversed(rotations):
        rows = rows @ rotation
    bases = [np.linalg.qr(np.concatenate([columns, rows.swapaxes(-1, -2)], axis=-1))[0]]
    for rotation in rotations:
        bases.append(rotation @ bases[-1])
    inner = [factor * np.eye(bases[0].shape[-1]) for factor in factors]
    outside = [
        matrix - above @ (factor * below.swapaxes(-1, -2))
        for matrix, factor, below, above in zip(hidden, factors, bases, bases[1:], strict=False)
    ]
    first, last = (basis[..., None, :, :] for basis in (bases[0], bases[-1]))
    return Narrow([first.swapaxes(-1, -2) @ encoder, *inner, decoder @ last], bases, outside)
