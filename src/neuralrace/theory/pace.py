"""Learning rate, init scale and training time that theory suggests for a task.

The loss is 1/2 <|y - yhat|^2> over all samples, and time is gradient-flow time.
"""

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np
from jaxtyping import Float, Int

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.theory.modes import aligned_initial_mode

TOLERANCE = 0.01
"""Largest relative error: of a rate of learning by the step size, of the power that ignored modes
explain, and of a mode at the end of learning. Also the largest initial share of a mode in s/d."""
ROUNDING = 1e-10
"""Correlations below this share of the largest possible one count as rounding."""
Pathway = tuple[np.ndarray, np.ndarray, Sequence[np.ndarray]]
"""Its sigma_yx and sigma_xx, and the weights along it, first layer first, (run, out, in)."""


def flow_step(data: Data, layers: Sequence[Float[np.ndarray, "*runs _matrix"]]) -> float:
    """Flow time of a gradient step that changes no rate of learning by more than `TOLERANCE`.

    Steps of size eta follow the flow of L + eta/4 |grad L|^2. This changes a rate by eta lambda/2,
    where lambda is the largest curvature along the trajectory. A change |dW_l| of layer l only
    changes the map of D layers by at most prod_{m != l} |W_m| |dW_l|. So
    lambda <= sum_l prod_{m != l} |W_m|^2 d, with the largest eigenvalue d of sigma_xx.

    The bound is evaluated at both ends of training. The first end has the initial weights. The
    second has the learned map in balanced layers a^(1/D), which gives D a^(2 - 2/D) d. Here a is
    the largest s_k/d_k or, to include gated tasks, sqrt(q/d) with the largest eigenvalue q of
    <y y^T>: by Cauchy and Schwarz, no gates in [0, 1] give a correlation with targets above
    sqrt(q d). The curvature from the error itself, at most sqrt(q d), is below the second bound.

    Args:
        data: samples to learn; neither inputs nor targets are all zero.
        layers: for each layer, the norms of its matrices in every run.

    Source: derived here; the flow of steps, Barrett and Dherin 2021.
    """
    depth = len(layers)
    inputs, outputs = _largest(data.x), _largest(data.y)
    s, d = np.abs(data.modes.s), data.modes.d
    present = s > ROUNDING * np.sqrt(inputs * outputs)
    size = np.max(s[present] / d[present], initial=np.sqrt(outputs / inputs))
    # The norm of a layer of several matrices is at most the root of the sum of their squares.
    squares = [float((norms**2).sum(axis=-1).max()) for norms in layers]
    start = sum(np.prod(squares[:n] + squares[n + 1 :]) for n in range(depth))
    return 2 * TOLERANCE / float(inputs * (depth * size ** (2 - 2 / depth) + start))


def small_scale(data: Data, pathways: Iterable[Pathway]) -> float:
    """Init scale at which modes start from at most `TOLERANCE` of their final strength s/d.

    Below it, modes are learned one by one, as in the theory of small weights. A strength is a
    product over D layers, so it scales as the init scale to the power D.

    Args:
        data: samples to learn.
        pathways: pathways of the network, as in `learning_time`, with weights of init scale 1.

    Raises:
        UserError: no mode is ever learned from these weights.

    Source: derived here; the start of two layers is that of `modes.aligned_initial_mode`.
    """
    s, d, depth, starts = _modes(data, pathways)
    relevant, start = _relevant(s, d), starts.max(axis=0)
    relevant = relevant[start[relevant] > 0]
    if not relevant.size:
        raise UserError(
            "is missing, and no linear mode of the task tells what is small",
            key="init_scales",
            remedy="give it",
        )
    share = (start * d / s)[relevant]
    return float(((TOLERANCE / share) ** (1 / depth[relevant])).min())


def learning_time(data: Data, pathways: Iterable[Pathway]) -> float:
    """Flow time after which the slowest mode is learned, an estimate.

    Modes of each pathway are treated as independent and balanced, da/dt = D a^(2 - 2/D) (s - d a).
    A mode is learned when `TOLERANCE` of s/d is missing; there it converges at the rate
    D (s/d)^(2 - 2/D) d. For two layers it starts from the smallest strength of all runs, otherwise
    from their root mean square. The weakest modes are ignored if they explain, together, less than
    `TOLERANCE` of sum_k s_k^2/d_k.

    Args:
        data: samples to learn.
        pathways: pathways of the network; a fully connected linear network is one pathway.

    Raises:
        UserError: no mode is ever learned from these weights.

    Source: derived here; the start of two layers is that of `modes.aligned_initial_mode`.
    """
    s, d, depth, starts = _modes(data, pathways)
    start = np.where(depth == 2, starts.min(axis=0), np.sqrt((starts**2).mean(axis=0)))
    rate = depth * (s / d) ** (2 - 2 / depth) * d
    times = (half_time(s, d, start, depth) + np.log(1 / TOLERANCE) / rate)[_relevant(s, d)]
    finite = times[np.isfinite(times)]
    if not finite.size:
        raise UserError(
            "is missing, and no linear mode of the task tells how many it takes",
            key="steps",
            remedy="give it",
        )
    return float(finite.max())


def half_time(
    s: Float[np.ndarray, " mode"],
    d: Float[np.ndarray, " mode"],
    a0: Float[np.ndarray, " mode"],
    depth: int | Float[np.ndarray, " mode"],
) -> Float[np.ndarray, " mode"]:
    """Half time of a balanced mode of any depth, at which it reaches half of s/d.

    It is the integral of da/(D a^(2 - 2/D) (s - d a)) from a0, evaluated over log a. It is 0 for a
    mode that starts at half or above, and infinite for a mode that starts at 0. For two layers it
    equals `modes.deep_half_time`.

    Args:
        s: singular value of sigma_yx, positive.
        d: eigenvalue of sigma_xx, positive.
        a0: initial effective singular value, not negative.
        depth: number D of weight layers, of each mode or of all.
    """
    half = s / d / 2
    begin = np.where(a0 > 0, np.minimum(a0, half), half)
    log_a = np.linspace(np.log(begin), np.log(half), 4001)
    slowness = np.exp(log_a * (2 / depth - 1)) / (depth * (s - d * np.exp(log_a)))
    return np.where(a0 > 0, np.trapezoid(slowness, log_a, axis=0), np.inf)


def _modes(
    data: Data, pathways: Iterable[Pathway]
) -> tuple[
    Float[np.ndarray, " mode"],
    Float[np.ndarray, " mode"],
    Float[np.ndarray, " mode"],
    Float[np.ndarray, "run mode"],
]:
    """s, d, layers and initial strength of each mode of each pathway."""
    floor = ROUNDING * np.sqrt(_largest(data.x) * _largest(data.y))
    parts = []
    for sigma_yx, sigma_xx, weights in pathways:
        u, s, vt = np.linalg.svd(sigma_yx, full_matrices=False)
        present = s > floor
        u, s, v = u[:, present], s[present], vt[present].T
        d = np.einsum("ik,ij,jk->k", v, sigma_xx, v)
        if len(weights) == 2:
            starts = aligned_initial_mode(weights[0], weights[1], u, v)
        else:
            product = reduce(lambda below, above: above @ below, weights)
            starts = np.abs(np.einsum("ok,roi,ik->rk", u, product, v))
        parts.append((s, d, np.full(s.shape, float(len(weights))), starts))
    if not parts:  # a graph in which all pathways lack inputs
        return np.empty(0), np.empty(0), np.empty(0), np.empty((1, 0))
    s, d, depth, starts = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
    return s, d, depth, starts


def _relevant(
    s: Float[np.ndarray, " mode"], d: Float[np.ndarray, " mode"]
) -> Int[np.ndarray, " relevant"]:
    """Indices of the modes, without the weakest, which together explain at most `TOLERANCE`."""
    power = s**2 / d
    order = np.argsort(power)
    return order[np.cumsum(power[order]) > TOLERANCE * power.sum()]


def _largest(vectors: Float[np.ndarray, "sample unit"]) -> float:
    """Largest eigenvalue of the second moments of vectors."""
    return float(np.linalg.norm(vectors, 2) ** 2 / len(vectors))
