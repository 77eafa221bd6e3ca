"""Tied linear networks, encoder W and decoder W^T: exact Gram matrix and decay of interference.

Each mode i of a symmetric input-output correlation sigma has a hidden vector W_i, a row of W. For
the loss 1/2 <|y - yhat|^2> and whitened inputs, encoder and decoder weights that start equal stay
equal and obey

    dW_i/dt = (s_i - |W_i|^2) W_i - sum_{j != i} (W_i . W_j) W_j,   dW/dt = (sigma - W W^T) W.

Without the 1/2 in the loss, every rate doubles.
"""

from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.integrate import cumulative_simpson
from scipy.special import exprel

# Longest exact step, in units of 1/max|s|. Slow modes keep all digits for steps up to about 4.
LONGEST_STEP = 2.0
MOST_STEPS = 10**6
"""Most of these steps: minutes for a small network. The papers' solutions need some 10^3."""


def tied_weights(
    time: Float[np.ndarray, " time"],
    weights0: Float[np.ndarray, "*runs modes hidden"],
    sigma: Float[np.ndarray, "*#runs modes modes"],
) -> Float[np.ndarray, "*runs time modes rank"]:
    """Exact weights of a tied network, up to a rotation of its hidden layer.

    G = W W^T obeys the Riccati equation dG/dt = sigma G + G sigma - 2 G^2, solved by

        G(t) = E W0 (I + W0^T D W0)^-1 W0^T E,  E = exp(sigma t),  D = (exp(2 sigma t) - 1)/sigma.

    The computation uses a factor of G. So G stays symmetric, positive and of its initial rank, and
    rounding cannot start a mode beyond the width of the hidden layer. Over a long time, rounding in
    E would lose the slow modes next to the fastest one. So exact steps of at most max|s| dt = 2 are
    composed, and the run time grows with max|s| times the last time.

    Args:
        time: non-decreasing gradient-flow time, from 0.
        weights0: initial hidden vectors W_i as rows.
        sigma: symmetric input-output correlation, the same for all runs or one for each; it may be
            singular.

    Returns:
        A factor with rank = min(modes, hidden) columns whose Gram matrix is that of the weights.

    Raises:
        ValueError: if `sigma` is not symmetric, shapes disagree, or `time` is negative or falls.
        RuntimeError: if more than `MOST_STEPS` would be composed.

    Source: the matrix Riccati solution of Fukumizu 1998, in a factored and composed form.
    """
    if not np.allclose(sigma, sigma.mT):
        raise ValueError("sigma must be symmetric")
    if weights0.shape[-2] != sigma.shape[-1]:
        raise ValueError(f"weights0 has {weights0.shape[-2]} rows, sigma has {sigma.shape[-1]}")
    gaps = np.diff(time, prepend=0.0)
    if np.any(gaps < 0):
        raise ValueError("time must not be negative or decrease")
    s, basis = np.linalg.eigh(sigma)
    factor = np.asarray(np.linalg.qr((basis.mT @ weights0).mT, mode="r")).mT
    if (needed := time[-1] * np.abs(s).max() / LONGEST_STEP) > MOST_STEPS:
        raise RuntimeError(
            f"matrix Riccati equation not solved to t = {time[-1]:g}: it would take {needed:.2g} "
            "steps; lower the learning rate, or scale inputs down"
        )
    path = []
    for gap in gaps:
        steps = int(np.ceil(gap * np.abs(s).max() / LONGEST_STEP)) or int(gap > 0)
        dt = gap / max(steps, 1)
        growth = np.exp(s * dt)[..., None]
        spread = (2 * dt * exprel(2 * s * dt))[..., None]
        for _ in range(steps):
            room = np.eye(factor.shape[-1]) + factor.mT @ (spread * factor)
            factor = np.linalg.solve(np.linalg.cholesky(room), (growth * factor).mT).mT
        path.append(basis @ factor)
    return np.stack(path, axis=-3)


def tied_gram(
    time: Float[np.ndarray, " time"],
    weights0: Float[np.ndarray, "*runs modes hidden"],
    sigma: Float[np.ndarray, "modes modes"],
) -> Float[np.ndarray, "*runs time modes modes"]:
    """Exact Gram matrix W_i . W_j of a tied network, which is its linear map.

    Arguments and errors are those of `tied_weights`.
    """
    factor = tied_weights(time, weights0, sigma)
    return factor @ factor.mT


def cosines(
    gram: Float[np.ndarray, "*shape modes modes"],
) -> Float[np.ndarray, "*shape modes modes"]:
    """Cosine similarities W_i . W_j / (|W_i| |W_j|), NaN where a vector is 0."""
    norm = np.sqrt(np.diagonal(gram, axis1=-2, axis2=-1))
    with np.errstate(invalid="ignore"):
        return gram / norm[..., :, None] / norm[..., None, :]


def first_order_interference(
    time: Float[np.ndarray, " time"],
    gram: Float[np.ndarray, "*runs time modes modes"],
    rate: Literal["sum", "larger"] = "sum",
) -> Float[np.ndarray, "*runs time modes modes"]:
    """Cosine similarities predicted to first order from the squared norms only.

    With diagonal sigma, d cos_ij/dt = -cos_ij (|W_i|^2 + |W_j|^2) up to products of cosines. The
    rate is the sum of the squared norms. The summary's "the larger of the two" is available as
    `rate="larger"` for comparison. Simpson's rule integrates the norms between entries of `time`,
    which must therefore resolve the learning of the modes.

    Args:
        time: increasing gradient-flow times of `gram`.
        gram: Gram matrix over time in the modes of sigma; its diagonal holds the squared norms.
        rate: the combination of squared norms that drives the decay.

    Returns:
        Predicted cosines, starting from the cosines of the first Gram matrix, 1 on the diagonal.

    Source: summary of Saxe, McClelland, Ganguli 2013, "Speed of lowering interference".
    """
    squared = np.diagonal(gram, axis1=-2, axis2=-1)
    combine = {"sum": np.add, "larger": np.maximum}[rate]
    speed = combine(squared[..., :, None], squared[..., None, :])
    speed *= 1.0 - np.eye(squared.shape[-1])
    decay = cumulative_simpson(speed, x=time, axis=-3, initial=0.0)
    return cosines(gram[..., :1, :, :]) * np.exp(-decay)
