"""How large steps and initial weights may be, and how long learning takes, by theory alone.

All is for 1/2 <|y - yhat|^2> over all samples, in gradient-flow time.
"""

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np
from jaxtyping import Float, Int

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.theory.modes import aligned_initial_mode

TOLERANCE = 0.01
"""Share that may be missing: of a rate of learning by the size of a step, of what the modes explain
by those that are not waited for, of a mode at the end; and that may be there of a mode at first."""
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


def small_scale(data: Data, pathways: Iterable[Pathway]) -> float:
    """Init scale at which modes start from at most `TOLERANCE` of what they end at, s/d.

    Below it, modes are learned one by one, as theory of small weights has them. A strength is a
    product over layers, so that it grows as the scale to the power of their number D.

    Args:
        data: what is learned.
        pathways: of the network, as of `learning_time`, with the weights of init scale 1.

    Raises:
        UserError: no mode is ever learned from these weights.

    Source: derived here; the start of two layers is that of `modes.aligned_initial_mode`.
    """
    s, d, depth, starts = _modes(data, pathways)
    waited, start = _waited_for(s, d), starts.max(axis=0)
    waited = waited[start[waited] > 0]
    if not waited.size:
        raise UserError(
            "init_scales: is missing, and no linear mode of the task tells what is small; give it"
        )
    share = (start * d / s)[waited]
    return float(((TOLERANCE / share) ** (1 / depth[waited])).min())


def learning_time(data: Data, pathways: Iterable[Pathway]) -> float:
    """Flow time after which the slowest mode is learned, or the least wrong estimate of it.

    Modes of each pathway are taken as alone and balanced, da/dt = D a^(2 - 2/D) (s - d a), and as
    learned when `TOLERANCE` of s/d is missing: where that rate has become D (s/d)^(2 - 2/D) d. They
    start from the least strength of all runs for two layers, else from the typical one. The weakest
    are not waited for that explain, together, less than `TOLERANCE` of sum_k s_k^2/d_k.

    Args:
        data: what is learned.
        pathways: of the network; what a linear network of layers in a row learns from is one.

    Raises:
        UserError: no mode is ever learned from these weights.

    Source: derived here; the start of two layers is that of `modes.aligned_initial_mode`.
    """
    s, d, depth, starts = _modes(data, pathways)
    start = np.where(depth == 2, starts.min(axis=0), np.sqrt((starts**2).mean(axis=0)))
    rate = depth * (s / d) ** (2 - 2 / depth) * d
    times = (half_time(s, d, start, depth) + np.log(1 / TOLERANCE) / rate)[_waited_for(s, d)]
    finite = times[np.isfinite(times)]
    if not finite.size:
        raise UserError(
            "steps: is missing, and no linear mode of the task tells how many it takes; give it"
        )
    return float(finite.max())


def half_time(
    s: Float[np.ndarray, " mode"],
    d: Float[np.ndarray, " mode"],
    a0: Float[np.ndarray, " mode"],
    depth: int | Float[np.ndarray, " mode"],
) -> Float[np.ndarray, " mode"]:
    """Time at which a balanced mode of any depth reaches half of s/d.

    The integral of da/(D a^(2 - 2/D) (s - d a)) from a0 on, over log a; 0 for a mode that starts at
    half or beyond, infinite for one that starts at 0. For two layers it is `modes.deep_half_time`.

    Args:
        s: singular value of sigma_yx, positive.
        d: eigenvalue of sigma_xx, positive.
        a0: initial effective singular value, not negative.
        depth: layers of weights, D; of each mode, or of all.
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
        there = s > floor
        u, s, v = u[:, there], s[there], vt[there].T
        d = np.einsum("ik,ij,jk->k", v, sigma_xx, v)
        if len(weights) == 2:
            starts = aligned_initial_mode(weights[0], weights[1], u, v)
        else:
            product = reduce(lambda below, above: above @ below, weights)
            starts = np.abs(np.einsum("ok,roi,ik->rk", u, product, v))
        parts.append((s, d, np.full(s.shape, float(len(weights))), starts))
    if not parts:  # each pathway of a graph may lack inputs
        return np.empty(0), np.empty(0), np.empty(0), np.empty((1, 0))
    s, d, depth, starts = (np.concatenate(each, axis=-1) for each in zip(*parts, strict=True))
    return s, d, depth, starts


def _waited_for(
    s: Float[np.ndarray, " mode"], d: Float[np.ndarray, " mode"]
) -> Int[np.ndarray, " waited"]:
    """Numbers of the modes but for the weakest, which explain next to nothing together."""
    power = s**2 / d
    order = np.argsort(power)
    return order[np.cumsum(power[order]) > TOLERANCE * power.sum()]


def _largest(vectors: Float[np.ndarray, "sample unit"]) -> float:
    """Largest eigenvalue of the second moments of vectors."""
    return float(np.linalg.norm(vectors, 2) ** 2 / len(vectors))
