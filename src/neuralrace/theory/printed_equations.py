"""Equations 7 to 10, 17, 20 to 24, 30 and 31 of the notes on localisation, as printed.

They are kept to show that they do not hold; the corrected forms are in `frozen_gates` and
`gating_loss`. Where a printed equation leaves something undefined, the mildest reading is used: a
pseudo-inverse for an inverse, and for exp(C) 1 a vector of coefficients of any sign that makes the
curve start at the initial weights. Time is gradient-flow time, tau = 1.

Source: notes on localisation, sections 3.1 and 3.3 to 3.5.
"""

import numpy as np
from jaxtyping import Float

from neuralrace.theory.frozen_gates import exclusive_weights, moment_modes


def written_weights(
    time: Float[np.ndarray, " time"],
    b: Float[np.ndarray, " feature"],
    a: Float[np.ndarray, "feature feature"],
    units: int,
    start: Float[np.ndarray, " feature"],
) -> Float[np.ndarray, "time feature"]:
    """Weights by eqs. 7 and 10 as printed: fixed point a^+ b, exponent a t/K.

    Both lack the factor 1/K of the readout. Components of the start on which a vanishes stay. For a
    single unit, a = a11 and b = b1, this is eq. 24. With the C of the next line, eq. 8 is eq. 9.

    Args:
        time: gradient-flow time.
        b: <g_k y x>, of all units in one vector.
        a: <g_k g_l x x^T>, in the same order.
        units: number of units K.
        start: initial weights, in the same order.
    """
    modes = moment_modes(a, b)
    kept = np.exp(-time[:, None] * modes.values / units)
    initial = start @ modes.vectors
    return (kept * (initial - modes.solution) + modes.solution) @ modes.vectors.T


def unreachable_share(
    b: Float[np.ndarray, " feature"],
    a: Float[np.ndarray, "feature feature"],
    start: Float[np.ndarray, "*runs feature"],
) -> Float[np.ndarray, "*runs"]:
    """Share of modes in which no real C of eqs. 9, 10 and 20 to 24 gives the initial weights.

    These equations need exp(C) 1 = Lambda u(0) - c. The left side is positive for a real C, and
    different from 0 for a complex one. Null modes are left out, and the fixed point a^+ b of eq. 9
    is kept.

    Args:
        b: <g_k y x>, of all units in one vector.
        a: <g_k g_l x x^T>, in the same order.
        start: initial weights, in the same order.
    """
    modes = moment_modes(a, b)
    moves = modes.values > 0
    below = (start @ modes.vectors < modes.solution) & moves
    return np.asarray(below.sum(axis=-1) / moves.sum())


def written_redundant(
    time: Float[np.ndarray, " time"],
    b1: Float[np.ndarray, " input"],
    a11: Float[np.ndarray, "input input"],
    units: int,
    first: Float[np.ndarray, "*runs input"],
    second: Float[np.ndarray, "*runs input"],
) -> tuple[Float[np.ndarray, "*runs time input"], Float[np.ndarray, "*runs time input"]]:
    """Weights of two units with the same gate by eqs. 30 and 31, in their mildest reading.

    Lambda holds the eigenvalues of the inserted matrix 2 a11, and the factor 1/K of the readout is
    restored. The initial coefficients give the first unit its initial weights. As printed, half of
    the difference of the two units is missing: the first ends at K a11^+ b1/2 for any second unit.

    Args:
        time: gradient-flow time.
        b1: <g_1 y x>.
        a11: <g_1 x x^T>.
        units: number of units K.
        first: initial weights of the first unit.
        second: initial weights of the second.
    """
    one = exclusive_weights(time, b1, 2 * a11, units, first)
    return one, one - (first - second)[..., None, :]


def written_gain(
    mean_one: Float[np.ndarray, " feature"], mean_zero: Float[np.ndarray, " feature"]
) -> float:
    """Gain of a gating scheme by eq. 17 as printed, with products of means for second moments.

    The matrix has rank 2 at most. So the value is 1 for any gates whose two means point in
    different directions.

    Args:
        mean_one: gated inputs averaged over the class y = 1.
        mean_zero: gated inputs averaged over the class y = 0.
    """
    # m^T (m m^T + n n^T)^+ m by least squares on the two rows: better conditioned than the matrix.
    rows = np.stack([mean_one, mean_zero])
    solution, *_ = np.linalg.lstsq(rows, np.array([1.0, 0.0]))
    return float(mean_one @ solution)
