"""Equations of the notes on localisation as they stand there, to be compared with what holds.

Each function evaluates the printed form. Where that leaves something undefined it takes the mildest
reading: a pseudo-inverse for an inverse, and a vector of initial coefficients in each mode for
exp(C) 1, whatever its signs, so that the curve starts where it should. The corrected
forms are in `frozen_gates` and `gating_loss`. Time is gradient-flow time, tau = 1.

Source: notes on localisation, sections 3.3 to 3.5.
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
    """Eqs. 7 and 10: fixed point a^+ b and exponent a t/K, both without the readout's 1/K.

    Null components of the start stay. For a single unit, a = a11 and b = b1, this is eq. 24. Eq. 8
    is read with the C of the line beneath it, which makes it eq. 9.

    Args:
        time: gradient-flow time.
        b: <g_k y x>, of all units in one vector.
        a: <g_k g_l x x^T>, likewise.
        units: K.
        start: initial weights, likewise.
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
    """Share of modes in which no real C of eqs. 9, 10 and 20 to 24 gives the start.

    There exp(C) 1 = Lambda u(0) - c, which a real C makes positive and a complex one anything but
    0; null modes are left out. The fixed point of eq. 9, a^+ b, is kept.

    Args:
        b: <g_k y x>, of all units in one vector.
        a: <g_k g_l x x^T>, likewise.
        start: initial weights, likewise.
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
    """Eqs. 30 and 31 in their mildest reading: two units with the same gate.

    Lambda are the eigenvalues of the matrix that is plugged in, 2 a11, the readout's 1/K is there,
    and the initial coefficients are those that start the first unit where it does. Half of the
    difference of the units is not added: the first ends at K a11^+ b1/2 whatever the second.

    Args:
        time: gradient-flow time.
        b1: <g_1 y x>.
        a11: <g_1 x x^T>.
        units: K.
        first: initial weights of the first unit.
        second: initial weights of the second.
    """
    one = exclusive_weights(time, b1, 2 * a11, units, first)
    return one, one - (first - second)[..., None, :]


def written_gain(
    mean_one: Float[np.ndarray, " feature"], mean_zero: Float[np.ndarray, " feature"]
) -> float:
    """Eq. 17: the gain of a gating scheme, with products of means for second moments.

    The matrix has rank 2 at most; the value is 1 whenever the two means point in different
    directions, however good the gates.

    Args:
        mean_one: gated inputs averaged over the class y = 1.
        mean_zero: gated inputs averaged over the class y = 0.
    """
    # m^T (m m^T + n n^T)^+ m by least squares on the two rows, better conditioned than the matrix
    rows = np.stack([mean_one, mean_zero])
    solution, *_ = np.linalg.lstsq(rows, np.array([1.0, 0.0]))
    return float(mean_one @ solution)
