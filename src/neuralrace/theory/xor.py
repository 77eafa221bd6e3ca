"""XoR in a ReLU network with a small start: four independent pathways, one for each example.

The points are (+-1, +-1); opposite points have the same label of +-1, adjacent points differ. Each
hidden unit aligns with the diagonal through one example, has the sign of its label, and is silent
on the others. So the units of an example q form a gated linear pathway with s = sqrt(2)/4 and
d = 1/2. Its strength a_q follows `modes.deep_mode`, and yhat_q = sqrt(2) a_q y_q.

Source: Saxe, Sodhani, Lewallen 2022, "The Neural Race Reduction", fig. 3.
"""

import numpy as np
from jaxtyping import Float

from neuralrace.theory.modes import deep_mode, mode_loss

S = np.full(4, np.sqrt(2) / 4)
"""Singular values of the pathways' sigma_yx: one of four examples, with |x| = sqrt(2)."""

D = np.full(4, 0.5)
"""Eigenvalues of the pathways' sigma_xx."""


def xor_start(
    encoder: Float[np.ndarray, "*runs unit 2"],
    decoder: Float[np.ndarray, "*runs unit"],
    x: Float[np.ndarray, "4 2"],
    y: Float[np.ndarray, " 4"],
) -> Float[np.ndarray, "*runs 4"]:
    """Initial strength a0 of each example's pathway, in the order of the data, nothing fitted.

    While the residual is still y, units do not interact. At first a unit is active on two adjacent
    examples, one of each label. With the readout v, alpha = w.x/|x| at y = 1 and beta = w.x/|x| at
    y = -1,

        d(alpha - beta)/dt = 2 s v,   dv/dt = s (alpha - beta),   alpha + beta constant.

    The winning label has the sign of G = (alpha - beta)/sqrt(2) + v. The unit reaches the diagonal
    of this example at exp(sqrt(2) s t) = (A/sqrt(2) + R)/|G|, with length A = alpha + beta and
    readout R = sqrt(2 alpha beta + v^2). It stays there, because deviations to either side are
    driven back. From then on it grows as the mode does and contributes (A + R)^2/4 to its strength.
    Extrapolated to time 0, the start a0 of an example is the sum over its units of

        (A + R)^2/4 * (|G|/(A/sqrt(2) + R))^sqrt(2).

    This is exact for an infinitely small start, and no time for the early flow has to be chosen.

    Args:
        encoder: initial weights from inputs to hidden units.
        decoder: initial weights from hidden units to the output.
        x: the four points, of +-1.
        y: their labels, of +-1.

    Raises:
        ValueError: if the data are not XoR.

    Source: derived here.
    """
    same = y[:, None] == y
    if np.any(np.abs(y) != 1) or np.any(x.sum(0) != 0) or np.any(np.abs(x @ x.T) != 2 * same):
        raise ValueError("x and y must be the four points of XoR, with labels +1 and -1")
    projection = np.maximum(encoder @ x.T, 0) / np.sqrt(2)
    alpha, beta = projection[..., y > 0].sum(-1), projection[..., y < 0].sum(-1)
    length, readout = alpha + beta, np.sqrt(2 * alpha * beta + decoder**2)
    lead = (alpha - beta) / np.sqrt(2) + decoder
    met = length / np.sqrt(2) + readout
    ratio = np.divide(np.abs(lead), met, where=met > 0, out=np.zeros(met.shape))
    strength = (length + readout) ** 2 / 4 * ratio ** np.sqrt(2)
    # A unit joins the active example that has the winning label.
    joins = (projection > 0) & (np.sign(lead)[..., None] == y)
    return np.where(joins, strength[..., None], 0.0).sum(-2)


def xor_loss(
    time: Float[np.ndarray, " time"], start: Float[np.ndarray, "*runs 4"]
) -> Float[np.ndarray, "*runs time"]:
    """Loss 1/2 <(y - yhat)^2>, the mean over examples of (1 - sqrt(2) a_q)^2/2.

    For equal starts it falls from 1/2 to 1/4 in the time
    [log(s/(d a0) - 1) - log(1 + sqrt(2))]/(2 s).

    Args:
        time: gradient-flow time, from 0.
        start: initial strengths of the pathways, as from `xor_start`.

    Raises:
        ValueError: if a time is negative.
    """
    return mode_loss(deep_mode(time, S, D, start), S, D, y_power=1.0)
