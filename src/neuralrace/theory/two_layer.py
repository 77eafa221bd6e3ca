"""Two-layer linear networks: exact learning from balanced and lambda-balanced starts.

Whitened inputs and W2^T W2 - W1 W1^T = lambda I turn the flow of Q = [W1^T; W2] into

    dQ/dt = F Q - 1/2 Q Q^T Q,   F = [[-lambda/2 I, sigma_yx^T], [sigma_yx, lambda/2 I]],

so Q / sqrt(2) is a tied network whose correlation is F, and W2 W1 is a block of Q Q^T. The flow
conserves lambda. Published closed forms invert blocks of F or of its modes; the composed steps of
`theory.tied` need no inverse, and take any widths.

Source: Fukumizu 1998; Braun, Dominé, Fitzgerald, Saxe 2022, for lambda = 0; Dominé, Anguita, Proca,
Braun, Kunin, Mediano, Saxe 2024, "From Lazy to Rich", for any lambda.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from neuralrace.theory.balance import imbalance
from neuralrace.theory.tied import tied_weights

BALANCED = 1e-8
"""Largest departure from lambda-balanced weights, relative to their squared norms."""


def exact_two_layer(
    time: Float[np.ndarray, " time"],
    w1: Float[np.ndarray, "*runs hidden in"],
    w2: Float[np.ndarray, "*runs out hidden"],
    sigma_yx: Float[np.ndarray, "out in"],
) -> Float[np.ndarray, "*runs time out in"]:
    """Exact linear map W2 W1 of a two-layer network of any widths at any time, for lambda = 0.

    An unbalanced start is accepted. The result then solves the equation of Q but not gradient flow;
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
    first, second = _layers(time, w1, w2, sigma_yx, np.zeros(()))
    return second @ first


def balance_coefficient(
    w1: Float[np.ndarray, "*runs hidden in"], w2: Float[np.ndarray, "*runs out hidden"]
) -> Float[np.ndarray, "*runs"]:
    """Lambda of lambda-balanced weights, W2^T W2 - W1 W1^T = lambda I.

    Raises:
        ValueError: if weights are not lambda-balanced.
    """
    difference = imbalance(w1, w2)
    mean = np.trace(difference, axis1=-2, axis2=-1) / w1.shape[-2]
    rest = difference - mean[..., None, None] * np.eye(w1.shape[-2])
    size = (w1**2).sum(axis=(-2, -1)) + (w2**2).sum(axis=(-2, -1))
    if (np.linalg.norm(rest, axis=(-2, -1)) > BALANCED * size).any():
        raise ValueError("weights are not lambda-balanced: W2^T W2 - W1 W1^T is no multiple of I")
    return np.asarray(mean)


def lambda_balanced_weights(
    time: Float[np.ndarray, " time"],
    w1: Float[np.ndarray, "*runs hidden in"],
    w2: Float[np.ndarray, "*runs out hidden"],
    sigma_yx: Sequence[Float[np.ndarray, "out in"]],
    starts: Sequence[float] = (0.0,),
) -> tuple[Float[np.ndarray, "*runs time rank in"], Float[np.ndarray, "*runs time out rank"]]:
    """Exact weights of a lambda-balanced network of any widths, up to a rotation of hidden units.

    Products such as W2 W1, W1^T W1 and W2 W2^T, and the balance itself, do not depend on the
    rotation. Across a sequence of tasks, each task starts from the weights that the one before it
    ends with, as the flow of every task conserves lambda.

    Args:
        time: non-decreasing gradient-flow time, from 0.
        w1: initial first layer.
        w2: initial second layer.
        sigma_yx: input-output correlation of each task.
        starts: time at which each task begins, increasing from 0.

    Returns:
        W1 and W2, for rank = min(in + out, hidden) hidden units.

    Raises:
        ValueError: if weights are not lambda-balanced, shapes disagree, or `time` is negative or
            decreases.

    Source: Dominé et al. 2024, "From Lazy to Rich"; across tasks, Braun et al. 2022.
    """
    balance = balance_coefficient(w1, w2)
    task = np.searchsorted(np.asarray(starts), time, side="right") - 1
    parts = []
    for number, (sigma, start, end) in enumerate(
        zip(sigma_yx, starts, [*starts[1:], None], strict=True)
    ):
        inside = time[task == number] - start
        to_end = inside if end is None else np.append(inside, end - start)
        first, second = _layers(to_end, w1, w2, sigma, balance)
        parts.append((first[..., : len(inside), :, :], second[..., : len(inside), :, :]))
        if end is not None:
            w1, w2 = first[..., -1, :, :], second[..., -1, :, :]
    firsts, seconds = zip(*parts, strict=True)
    return np.concatenate(firsts, axis=-3), np.concatenate(seconds, axis=-3)


def _layers(
    time: Float[np.ndarray, " time"],
    w1: Float[np.ndarray, "*runs hidden in"],
    w2: Float[np.ndarray, "*runs out hidden"],
    sigma_yx: Float[np.ndarray, "out in"],
    balance: Float[np.ndarray, "*#runs"],
) -> tuple[Float[np.ndarray, "*runs time rank in"], Float[np.ndarray, "*runs time out rank"]]:
    """Both layers at the times, up to a common rotation of the hidden units."""
    n_out, n_in = sigma_yx.shape
    if w1.shape[-1] != n_in or w2.shape[-2] != n_out or w1.shape[-2] != w2.shape[-1]:
        raise ValueError(
            f"shapes disagree: W1 {w1.shape[-2:]}, W2 {w2.shape[-2:]}, sigma_yx {sigma_yx.shape}"
        )
    F = np.block([[np.zeros((n_in, n_in)), sigma_yx.T], [sigma_yx, np.zeros((n_out, n_out))]])
    F = F + balance[..., None, None] / 2 * np.diag([-1.0] * n_in + [1.0] * n_out)
    Q = np.sqrt(2) * tied_weights(time, np.concatenate([w1.mT, w2], axis=-2) / np.sqrt(2), F)
    return Q[..., :n_in, :].mT, Q[..., n_in:, :]
