"""How large steps may be and how long learning takes, by theory alone.

All is for 1/2 <|y - yhat|^2> over all samples, in gradient-flow time.
"""

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np
from jaxtyping import Float

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.theory.modes import aligned_initial_mode

TOLERANCE = 0.01
"""Share that may be missing: of a rate of learning by the size of a step, of what the modes explain
by those that are not waited for, of a mode at the end."""
ROUNDING = 1e-10
"""Share of the largest possible correlation below which one cannot be told from rounding."""
Pathway = tuple[np.ndarray, np.ndarray, Sequence[np.ndarray]]
"""Its sigma_yx and sigma_xx, and the weights along it, first layer first, (run, out, in)."""


def flow_step(data: Data, layers: Sequence[Float[np.ndarray, "*runs _matrix"]]) -> float:
    """Flow time of a gradient step that changes no rate of learning by more than `TOLERANCE`.

    Steps eta follow the flow of L + eta/4 |grad L|^2, which changes a rate by eta lambda/2, where
    lambda is the largest curvature on the way. With a change |dW_l| of layer l alone, the map of D
    layers changes by prod_{m != l} |W_m|, so that lambda <= sum_l prod_{m != l} |W_m|^2 d, d the
    largest eigenvalue of sigma_xx. It is taken at both ends: for the initial weights, and for
    balanced layers a^(1/D) of the map that answers the targets, D a^(2 - 2/D) d. There a is the
    largest s_k/d_k, or, of gated tasks too, sqrt(q/d) with q the largest eigenvalue of <y y^T>:
    no gates in [0, 1] give a correlation with targets above sqrt(q d), by Cauchy and Schwarz.
    The curvature of a smaller error, at most sqrt(q d), lies below the second.

    Args:
        data: what is learned; neither inputs nor targets are all zero.
        layers: of each layer, norms of the matrices that it consists of, in every run.

    Source: derived here; the flow of steps, Barrett and Dherin 2021.
    """
    depth = len(layers)
    inputs, outputs = _largest(data.x), _largest(data.y)
    s, d = np.abs(data.modes.s), data.modes.d
    told = s > ROUNDING * np.sqrt(inputs * outputs)
    size = np.max(s[told] / d[told], initial=np.sqrt(outputs / inputs))
    # a layer of several matrices has at most the root of their summed squares as its norm
    squares = [float((norms**2).sum(axis=-1).max()) for norms in layers]
    start = sum(np.prod(squares[:n] + squares[n + 1 :]) for n in range(depth))
    return 2 * TOLERANCE / float(inputs * (depth * size ** (2 - 2 / depth) + start))


def learning_time(data: Data, pathways: Iterable[Pathway]) -> float:
    """Flow time after which the slowest mode is learned, or the least wrong estimate of it.

    Modes of each pathway are taken as alone and balanced, da/dt = D a^(2 - 2/D) (s - d a), and as
    learned when `TOLERANCE` of s/d is missing: where that rate has become D (s/d)^(2 - 2/D) d. The
    weakest are not waited for that explain, together, less than `TOLERANCE` of sum_k s_k^2/d_k.

    Args:
        data: what is learned.
        pathways: of the network; what a linear network of layers in a row learns from is one.

    Raises:
        UserError: no mode is ever learned from these weights.

    Source: derived here; the start of two layers is that of `modes.aligned_initial_mode`.
    """
    floor, power, time = ROUNDING * np.sqrt(_largest(data.x) * _largest(data.y)), [], []
    for sigma_yx, sigma_xx, weights in pathways:
        u, s, vt = np.linalg.svd(sigma_yx, full_matrices=False)
        told = s > floor
        u, s, v = u[:, told], s[told], vt[told].T
        d, depth = np.einsum("ik,ij,jk->k", v, sigma_xx, v), len(weights)
        start = _start(weights, u, v)
        rate = depth * (s / d) ** (2 - 2 / depth) * d
        power.append(s**2 / d)
        time.append(half_time(s, d, start, depth) + np.log(1 / TOLERANCE) / rate)
    powers, times = np.concatenate([[], *power]), np.concatenate([[], *time])
    order = np.argsort(powers)
    waited = order[np.cumsum(powers[order]) > TOLERANCE * powers.sum()]
    finite = times[waited][np.isfinite(times[waited])]
    if not finite.size:
        raise UserError(
            "steps: is missing, and no linear mode of the task tells how many it takes; give it"
        )
    return float(finite.max())


def half_time(
    s: Float[np.ndarray, " mode"],
    d: Float[np.ndarray, " mode"],
    a0: Float[np.ndarray, " mode"],
    depth: int,
) -> Float[np.ndarray, " mode"]:
    """Time at which a balanced mode of any depth reaches half of s/d.

    The integral of da/(D a^(2 - 2/D) (s - d a)) from a0 on, over log a; 0 for a mode that starts at
    half or beyond, infinite for one that starts at 0. For two layers it is `modes.deep_half_time`.

    Args:
        s: singular value of sigma_yx, positive.
        d: eigenvalue of sigma_xx, positive.
        a0: initial effective singular value, not negative.
        depth: layers of weights, D.
    """
    half = s / d / 2
    begin = np.where(a0 > 0, np.minimum(a0, half), half)
    log_a = np.linspace(np.log(begin), np.log(half), 4001)
    slowness = np.exp(log_a * (2 / depth - 1)) / (depth * (s - d * np.exp(log_a)))
    return np.where(a0 > 0, np.trapezoid(slowness, log_a, axis=0), np.inf)


def _start(weights: Sequence[np.ndarray], u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Initial strength of each mode: the least over runs for two layers, else the typical one."""
    if len(weights) == 2:
        first, second = weights
        return aligned_initial_mode(first, second, u, v).min(axis=0)
    product = reduce(lambda below, above: above @ below, weights)
    return np.sqrt((np.einsum("ok,roi,ik->rk", u, product, v) ** 2).mean(axis=0))


def _largest(vectors: Float[np.ndarray, "sample unit"]) -> float:
    """Largest eigenvalue of the second moments of vectors."""
    return float(np.linalg.norm(vectors, 2) ** 2 / len(vectors))
