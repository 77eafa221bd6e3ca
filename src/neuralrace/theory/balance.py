"""Balance of adjacent layers: the imbalance that gradient flow conserves, and norms of layers.

A deep linear net `yhat = W_L ... W_1 x` conserves the imbalance
`C_l = W_{l+1}^T W_{l+1} - W_l W_l^T` of every adjacent pair. A ReLU net conserves its diagonal
only.

Source: Basu, Mukherjee & Vasudevan, "Layer Dynamics of Linearised Neural Nets", section 2. Where
a statement of the paper does not hold as printed, the corrected form has the plain name and the
printed one carries `_as_written`.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float


def imbalance(
    w_below: Float[np.ndarray, "*runs mid below"], w_above: Float[np.ndarray, "*runs above mid"]
) -> Float[np.ndarray, "*runs mid mid"]:
    """Return `C = W_above^T W_above - W_below W_below^T`, conserved by linear gradient flow.

    A step of gradient descent changes it by exactly `lr**2 * imbalance(g_below, g_above)` with
    `g` the gradients, as the terms linear in `lr` cancel; over a fixed flow time the drift is
    therefore of first order in the learning rate.

    Source: theorem 1 and eq. 9.
    """
    return w_above.mT @ w_above - w_below @ w_below.mT


def imbalances(
    weights: Sequence[Float[np.ndarray, "*runs _ _"]],
) -> list[Float[np.ndarray, "*runs _ _"]]:
    """Return the imbalance of every adjacent pair, from the input upwards (theorem 1)."""
    return [imbalance(below, above) for below, above in pairwise(weights)]


def conservation_residual_as_written(
    w_below: Float[np.ndarray, "*runs mid below"],
    w_above: Float[np.ndarray, "*runs above mid"],
    initial_imbalance: Float[np.ndarray, "*#runs mid mid"],
) -> Float[np.ndarray, "*runs mid mid"]:
    """Return the residual of eq. 8 as printed, `W_below W_below^T - W_above^T W_above - C(0)`.

    The sign of C in eq. 8 disagrees with its definition in eq. 9, so the residual is `-2 C(0)`.
    """
    return -imbalance(w_below, w_above) - initial_imbalance


def norm_gap(
    trace: Float[np.ndarray, "*#runs"] | float, norm_sum: Float[np.ndarray, "*#runs"] | float
) -> Float[np.ndarray, "*runs"]:
    """Return the difference of two Frobenius norms, `|tr C| / (|W_l|_F + |W_k|_F)`.

    This is an identity, since `tr C = |W_k|_F^2 - |W_l|_F^2`. The trace is conserved while the sum
    grows in training. So the gap is not invariant: it shrinks as the layers grow.

    Args:
        trace: `tr C` of an adjacent pair, or the difference of the squared norms of any pair.
        norm_sum: Sum of the two Frobenius norms at the same time, positive.

    Source: replaces eq. 12.
    """
    return np.asarray(np.abs(trace) / norm_sum)


def norm_gap_bound(trace: Float[np.ndarray, "*runs"] | float) -> Float[np.ndarray, "*runs"]:
    """Return `sqrt|tr C|`, which bounds the gap of Frobenius norms at all times (lemma 2).

    The constant depends on the initialisation alone and is sharp: a vanishing layer attains it.
    """
    return np.asarray(np.sqrt(np.abs(trace)))


def spectral_gap_bound(
    initial_imbalance: Float[np.ndarray, "*runs mid mid"],
) -> Float[np.ndarray, "*runs"]:
    """Return `sqrt(|C|_2)`, which bounds `||W_l|_2 - |W_{l+1}|_2|` at all times.

    Weyl's inequality gives `||W_l|_2^2 - |W_{l+1}|_2^2| <= |C|_2` (eq. 10 in both directions), and
    a difference of numbers is at most the root of the difference of their squares.

    Source: eq. 11, corrected.
    """
    return np.asarray(np.sqrt(spectral_gap_bound_as_written(initial_imbalance)))


def spectral_gap_bound_as_written(
    initial_imbalance: Float[np.ndarray, "*runs mid mid"],
) -> Float[np.ndarray, "*runs"]:
    """Return `|C|_2`, the bound of eq. 11 as printed.

    It scales wrongly: weights times `a` multiply it by `a**2`, and a norm by `a`. So it fails when
    the two spectral norms sum to less than one.
    """
    return np.asarray(np.linalg.norm(initial_imbalance, ord=2, axis=(-2, -1)))


def glorot_squared_norm(n_in: int, n_out: int) -> float:
    """Return `E|W|_F^2` of a Glorot layer with entry variance `2 / (n_in + n_out)`.

    The value depends on the shape of the layer. The paper's variance `beta / (n_in n_out)` (proof
    of corollary 2.3) gives `beta` for every layer instead.
    """
    return 2 * n_in * n_out / (n_in + n_out)


def expected_imbalance(
    squared_norm_below: float,
    squared_norm_above: float,
    n_below: int,
    n_mid: int,
    n_above: int,
    excess_kurtosis: float = 0.0,
) -> float:
    """Return `E|C|_F^2` of layers with independent, centred entries; it is always positive.

    Corollary 2.3 infers `E|C|_F = 0` from `E C = 0`, which does not hold. With equal expected
    squared norms `beta`, as in the paper, the value is
    `beta^2 [1/n_below + 1/n_above + 1/(n_below n_mid) + 1/(n_mid n_above)]`.

    Args:
        squared_norm_below: `E|W_l|_F^2`.
        squared_norm_above: `E|W_{l+1}|_F^2`.
        n_below: Inputs of the lower layer.
        n_mid: Units between the layers.
        n_above: Outputs of the upper layer.
        excess_kurtosis: Excess kurtosis of the entries: 0 for normal, -6/5 for uniform ones.
    """
    mean = (squared_norm_above - squared_norm_below) ** 2 / n_mid
    spread = squared_norm_above**2 / n_above + squared_norm_below**2 / n_below
    return mean + (n_mid + 1 + excess_kurtosis) / n_mid * spread
