"""Two-layer linear networks: exact learning from any balanced start, aligned or not.

Source: Fukumizu 1998; Braun, Dominé, Fitzgerald, Saxe 2022.
"""

import numpy as np
from jaxtyping import Float

from neuralrace.theory.tied import tied_weights


def exact_two_layer(
    time: Float[np.ndarray, " time"],
    w1: Float[np.ndarray, "*runs hidden in"],
    w2: Float[np.ndarray, "*runs out hidden"],
    sigma_yx: Float[np.ndarray, "out in"],
) -> Float[np.ndarray, "*runs time out in"]:
    """Exact linear map W2 W1 of a two-layer network of any widths at any time.

    Whitened inputs and W1 W1^T = W2^T W2 turn the flow of Q = [W1^T; W2] into

        dQ/dt = F Q - 1/2 Q Q^T Q,   F = [[0, sigma_yx^T], [sigma_yx, 0]],

    so Q / sqrt(2) is a tied network whose correlation is F, and W2 W1 is a block of Q Q^T. An
    unbalanced start is accepted. The result then solves the equation above but not gradient flow;
    the difference grows with |W1 W1^T - W2^T W2|.

    Args:
        time: non-decreasing gradient-flow time, from 0.
        w1: initial first layer.
        w2: initial second layer.
        sigma_yx: input-output correlation.

    Raises:
        ValueError: if shapes disagree or `time` is negative or decreases.

    Source: Fukumizu 1998; Braun, Dominé, Fitzgerald, Saxe 2022.
    """
    n_out, n_in = sigma_yx.shape
    if w1.shape[-1] != n_in or w2.shape[-2] != n_out or w1.shape[-2] != w2.shape[-1]:
        raise ValueError(
            f"shapes disagree: W1 {w1.shape[-2:]}, W2 {w2.shape[-2:]}, sigma_yx {sigma_yx.shape}"
        )
    F = np.block([[np.zeros((n_in, n_in)), sigma_yx.T], [sigma_yx, np.zeros((n_out, n_out))]])
    Q = np.sqrt(2) * tied_weights(time, np.concatenate([w1.mT, w2], axis=-2) / np.sqrt(2), F)
    return Q[..., n_in:, :] @ Q[..., :n_in, :].mT
