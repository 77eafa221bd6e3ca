"""Learning rate, init scale and training time that theory suggests for a task.

The loss is 1/2 <|y - yhat|^2> over all samples, and time is gradient-flow time.

A network learns the map W = sigma_yx sigma_xx^+, or the best map of the rank that its narrowest
layer allows. The left singular vectors u_j of W sigma_xx^(1/2) separate it into modes: rows
w_j = u_j^T W, each of which explains the power w_j^T sigma_xx w_j of the targets. The r strongest
modes are the best map of rank r (Izenman 1975). Each mode is treated as a balanced network of D
layers of its own,

    dw/dt = |w|^(2 - 2/D) (I + (D - 1) w w^T/|w|^2) sigma_xx (w_j - w)

(Arora, Cohen, Hazan 2018, for rank one). It starts along its drive u_j^T sigma_yx, of length s. Its
final strength in that direction is s/d, where d is s^2 over the power. For white inputs, these are
the singular modes of sigma_yx, and d is the variance of the inputs.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import numpy as np
import scipy
from jaxtyping import Float, Int

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.extensions.representation import short_repr
from neuralrace.theory.modes import aligned_initial_mode

TOLERANCE = 0.01
"""Largest relative error: of a rate of learning by the step size, of the power that ignored modes
explain, and of a mode at the end of learning. Also the largest initial share of a mode in s/d."""
ROUNDING = 1e-10
"""Modes whose outputs are below this share of the targets (root mean squares) count as rounding."""
INDEPENDENT = 1e-12
"""Principal directions of standardised inputs with less than this share of the largest variance
count as rounding: these inputs are combinations of others."""
SIMILAR = 2
"""Modes whose outputs differ by less than this factor are learned together: among them the
strongest drive decides what is learned first, and not what it explains in the end."""
LATE = 1e60
"""Time at which the integration of a mode ends if it is never learned, over its fastest one."""
EQUAL = 1.1
"""Variances of inputs that differ by less than this factor count as equal, to the smallest."""
Pathway = tuple[np.ndarray, np.ndarray, Sequence[np.ndarray]]
"""Its sigma_yx and sigma_xx, and the weights along it, first layer first, (run, out, in)."""


@dataclass(frozen=True)
class LinearMap:
    """The best linear map W of some rank.

    Attributes:
        u: output direction of each mode; together these span all outputs of the map.
        v: principal directions of the inputs, without those that have no variance.
        deviation: standard deviations of the inputs along these, decreasing.
        rows: u^T W v.
        next_power: what the strongest mode beyond the rank would explain of <|y|^2>.
    """

    u: Float[np.ndarray, "out mode"]
    v: Float[np.ndarray, "in direction"]
    deviation: Float[np.ndarray, " direction"]
    rows: Float[np.ndarray, "mode direction"]
    next_power: float
    __repr__ = short_repr

    @property
    def norm(self) -> float:
        """The largest singular value of the map."""
        return float(np.linalg.norm(self.rows, 2)) if self.rows.size else 0.0

    @property
    def condition(self) -> float:
        """Condition number of <x x^T>, without directions that have no variance."""
        return float((self.deviation[0] / self.deviation[-1]) ** 2)

    @property
    def power(self) -> Float[np.ndarray, " mode"]:
        """What each mode explains of <|y|^2>."""
        return ((self.rows * self.deviation) ** 2).sum(axis=1)


@dataclass(frozen=True)
class Mode:
    """A mode of a pathway; see the top of this module.

    Attributes:
        variance: distinct eigenvalues of sigma_xx, decreasing.
        target: length of the final row w_j in the eigenspace of each.
        depth: number D of weight layers.
        start: initial strength along its drive, by run.
        next_power: what the strongest mode that the network is too narrow for would explain.
    """

    variance: Float[np.ndarray, " eigenspace"]
    target: Float[np.ndarray, " eigenspace"]
    depth: int
    start: Float[np.ndarray, " run"]
    next_power: float
    __repr__ = short_repr

    @property
    def power(self) -> float:
        """What it explains of <|y|^2>."""
        return float(self.variance @ self.target**2)

    @property
    def s(self) -> float:
        """Length of its drive."""
        return float(np.linalg.norm(self.variance * self.target))

    @property
    def d(self) -> float:
        """Mean variance of the inputs that it is learned from."""
        return self.s**2 / self.power


def best_map(
    sigma_yx: Float[np.ndarray, "out in"],
    sigma_xx: Float[np.ndarray, "in in"],
    rank: int,
    floor: float,
) -> LinearMap:
    """The linear map of at most this rank with the least squared error.

    Inputs are standardised at first: columns of very different scales would cost precision.

    Args:
        sigma_yx: input-output correlation.
        sigma_xx: input correlation.
        rank: largest rank.
        floor: modes that explain no more than this are left out.

    Source: Izenman 1975, reduced-rank regression.
    """
    scale = np.sqrt(np.diagonal(sigma_xx))
    scale = np.where(scale > 0, scale, 1.0)
    variance, directions = np.linalg.eigh(sigma_xx / np.outer(scale, scale))
    independent = variance > INDEPENDENT * variance[-1]
    root, directions = np.sqrt(variance[independent]), directions[:, independent]
    # sigma_xx = A A^T with this A; its singular values lose less to rounding than their squares
    v, deviation, turn = np.linalg.svd(scale[:, None] * directions * root, full_matrices=False)
    outputs = (sigma_yx / scale) @ (directions / root) @ turn.T
    u, amplitude, _ = np.linalg.svd(outputs, full_matrices=False)
    present = int((amplitude**2 > floor).sum())
    kept = min(rank, present)
    apart = [n for n in range(1, kept) if amplitude[n - 1] > SIMILAR * amplitude[n]]
    for begin, end in pairwise([0, *apart, kept]):
        group = u[:, begin:end]
        drive = (group.T @ outputs) * deviation
        u[:, begin:end] = group @ np.linalg.svd(drive, full_matrices=False)[0]
    u = u[:, :kept]
    next_power = float(amplitude[kept] ** 2) if present > kept else 0.0
    return LinearMap(u, v, deviation, u.T @ outputs / deviation, next_power)


def learned_maps(data: Data, pathways: Iterable[Pathway]) -> list[LinearMap]:
    """The map that each pathway learns by itself, of the rank of its narrowest layer.

    Args:
        data: samples to learn.
        pathways: pathways of the network; a fully connected linear network is one pathway.
    """
    floor = ROUNDING**2 * _largest(data.y)
    maps = list[LinearMap]()
    for sigma_yx, sigma_xx, weights in pathways:
        rank = min((w.shape[-2] for w in weights[:-1]), default=len(sigma_yx))
        maps.append(best_map(sigma_yx, sigma_xx, rank, floor))
    return maps


def relevant_modes(maps: Sequence[LinearMap], pathways: Sequence[Pathway]) -> list[Mode]:
    """The modes of all pathways, without the weakest.

    The weakest explain, together, at most `TOLERANCE` of what all modes explain.

    Args:
        maps: the map that each pathway learns.
        pathways: the pathways.
    """
    modes = list[Mode]()
    for best, (*_, weights) in zip(maps, pathways, strict=True):
        drives = best.rows * best.deviation**2
        order = np.argsort(-np.linalg.norm(drives, axis=1), kind="stable")
        u, rows, drives = best.u[:, order], best.rows[order], drives[order]
        v = best.v @ (drives / np.linalg.norm(drives, axis=1, keepdims=True)).T
        if len(weights) == 2:
            starts = aligned_initial_mode(weights[0], weights[1], u, v)
        else:
            product = reduce(lambda below, above: above @ below, weights)
            starts = np.abs(np.einsum("ok,roi,ik->rk", u, product, v))
        begins = _eigenspaces(best.deviation**2)
        variance = best.deviation[np.append(begins[1:], len(best.deviation)) - 1] ** 2
        targets = np.sqrt(np.add.reduceat(rows**2, begins, axis=1))
        modes += [
            Mode(variance, target, len(weights), start, best.next_power)
            for target, start in zip(targets, starts.T, strict=True)
        ]
    modes.sort(key=lambda mode: mode.power)
    power = np.array([mode.power for mode in modes])
    explained = np.cumsum(power)
    return [mode for mode, sum_ in zip(modes, explained, strict=True)
            if sum_ > TOLERANCE * explained[-1]]  # fmt: skip


def flow_step(
    data: Data,
    layers: Sequence[Float[np.ndarray, "*runs _matrix"]],
    maps: Iterable[LinearMap],
) -> float:
    """Flow time of a gradient step that changes no rate of learning by more than `TOLERANCE`.

    Steps of size eta follow the flow of L + eta/4 |grad L|^2. This changes a rate by eta lambda/2,
    where lambda is the largest curvature along the trajectory. A change |dW_l| of layer l only
    changes the map of D layers by at most prod_{m != l} |W_m| |dW_l|. So
    lambda <= sum_l prod_{m != l} |W_m|^2 d, with the largest eigenvalue d of sigma_xx.

    The bound is evaluated at both ends of training. The first end has the initial weights. The
    second has the learned map in balanced layers a^(1/D), which gives D a^(2 - 2/D) d. Here a is
    the norm of the learned map, the largest of all pathways. To include gated tasks, it is at least
    sqrt(q/d) with the largest eigenvalue q of <y y^T>: by Cauchy and Schwarz, no gates in [0, 1]
    give a correlation with targets above sqrt(q d). The curvature from the error itself, at most
    sqrt(q d), is below the second bound.

    Args:
        data: samples to learn; neither inputs nor targets are all zero.
        layers: for each layer, the norms of its matrices in every run.
        maps: the map that each pathway learns.

    Source: derived here; the flow of steps, Barrett and Dherin 2021.
    """
    depth = len(layers)
    few = len(data.x) <= data.x.shape[1]
    inputs = _largest(data.x) if few else float(np.linalg.eigvalsh(data.sigma_xx)[-1])
    outputs = _largest(data.y)
    size = max(np.sqrt(outputs / inputs), *(best.norm for best in maps))
    # The norm of a layer of several matrices is at most the root of the sum of their squares.
    squares = [float((norms**2).sum(axis=-1).max()) for norms in layers]
    start = sum(np.prod(squares[:n] + squares[n + 1 :]) for n in range(depth))
    return 2 * TOLERANCE / float(inputs * (depth * size ** (2 - 2 / depth) + start))


def small_scale(modes: Sequence[Mode]) -> float:
    """Init scale at which modes start from at most `TOLERANCE` of their final strength s/d.

    Below it, modes are learned one by one, as in the theory of small weights. A strength is a
    product over D layers, so it scales as the init scale to the power D.

    Args:
        modes: relevant modes, with weights of init scale 1.

    Raises:
        UserError: no mode is ever learned from these weights.

    Source: derived here; the start of two layers is that of `modes.aligned_initial_mode`.
    """
    starting = [mode for mode in modes if mode.start.max() > 0]
    if not starting:
        raise UserError(
            "is missing, and no linear mode of the task tells what is small",
            key="init_scales",
            remedy="give it",
        )
    return min(
        float(TOLERANCE * mode.s / mode.d / mode.start.max()) ** (1 / mode.depth)
        for mode in starting
    )


def learning_time(modes: Sequence[Mode]) -> float:
    """Flow time after which the slowest mode is learned.

    Args:
        modes: relevant modes.

    Raises:
        UserError: no mode is ever learned from these weights.
    """
    bounds = {n: mode_time(mode, bound=True) for n, mode in enumerate(modes)}
    bounds = {n: bound for n, bound in bounds.items() if np.isfinite(bound)}
    if not bounds:
        raise UserError(
            "is missing, and no linear mode of the task tells how many it takes",
            key="steps",
            remedy="give it",
        )
    slowest = 0.0
    for n in sorted(bounds, key=bounds.__getitem__, reverse=True):
        if bounds[n] > slowest:  # all others are faster
            slowest = max(slowest, mode_time(modes[n]))
    return slowest


def mode_time(mode: Mode, bound: bool = False) -> float:
    """Flow time after which a mode is learned, where `TOLERANCE` of its power is missing.

    The missing power is (w_j - w)^T sigma_xx w_j. For two layers the mode starts from the smallest
    strength of all runs, otherwise from their root mean square. It is infinite from 0.

    For equal variances, it is the time to half of s/d, and from there at the final rate
    D (s/d)^(2 - 2/D) d. Otherwise the mode keeps the direction of its drive while it is small; from
    there its equation is integrated.

    In a network that is too narrow for all modes, outputs also have to turn away from those that
    are not learned. With the strongest of these, of power rho^2 times that of the mode, they do so
    at the rate |w_j|^(-2/D) (1 - rho) times the power.

    Args:
        mode: the mode.
        bound: whether to return an upper bound that costs less, without the term in D - 1 once the
            mode is not small; at most D times as long.

    Source: derived here; the start of two layers is that of `modes.aligned_initial_mode`.
    """
    start = float(mode.start.min() if mode.depth == 2 else np.sqrt((mode.start**2).mean()))
    if start == 0:
        return np.inf
    s, d, depth = mode.s, mode.d, mode.depth
    start = min(start, s / d / 2)
    time = _turning_time(mode)
    if len(mode.variance) == 1:
        rate = depth * (s / d) ** (2 - 2 / depth) * d
        return time + growth_time(s, d, start, s / d / 2, depth) + np.log(1 / TOLERANCE) / rate
    drive = mode.variance * mode.target / s
    small = TOLERANCE * s / float(np.linalg.norm(mode.variance * drive))
    if start < small:
        time += growth_time(s, 0.0, start, small, depth)
    w = max(start, small) * drive
    return time + (_bound(mode, w) if bound or depth == 1 else _integrated(mode, w))


def growth_time(s: float, d: float, a0: float, a1: float, depth: int) -> float:
    """Time in which a balanced mode of one variance d grows from a0 to a1.

    It is the integral of da/(D a^(2 - 2/D) (s - d a)), evaluated over log a.

    Args:
        s: singular value of sigma_yx, positive.
        d: eigenvalue of sigma_xx, not negative.
        a0: initial effective singular value, positive.
        a1: final one, at least a0 and below s/d.
        depth: number D of weight layers.
    """
    log_a = np.linspace(np.log(a0), np.log(a1), 4001)
    slowness = np.exp(log_a * (2 / depth - 1)) / (depth * (s - d * np.exp(log_a)))
    return float(np.trapezoid(slowness, log_a))


def _integrated(mode: Mode, w: Float[np.ndarray, " eigenspace"]) -> float:
    """Time from w until a mode is learned; an upper bound if the solver fails."""
    unit = float(np.linalg.norm(mode.target))
    variance, target = mode.variance / mode.variance[0], mode.target / unit
    missing, power = variance * target, float(variance @ target**2)

    def velocity(_: float, w: np.ndarray) -> np.ndarray:
        error, size = variance * (target - w), np.linalg.norm(w)
        radial = (mode.depth - 1) * (w @ error) / size**2
        return size ** (2 - 2 / mode.depth) * (error + radial * w)

    def learned(_: float, w: np.ndarray) -> float:
        return missing @ w - (1 - TOLERANCE) * power

    learned.terminal = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LSODA warns when it fails
        path = scipy.integrate.solve_ivp(
            velocity, (0, LATE), w / unit, "LSODA", events=learned, rtol=1e-4,
            atol=1e-5 * float(np.linalg.norm(w)) / unit,
        )  # fmt: skip
    if path.status != 1:
        return _bound(mode, w)
    return float(path.t[-1]) / (mode.variance[0] * unit ** (2 - 2 / mode.depth))


def _bound(mode: Mode, w: Float[np.ndarray, " eigenspace"]) -> float:
    """Upper bound of `_integrated`, without the term in D - 1.

    On a clock that runs at |w|^(2 - 2/D), w then relaxes exponentially.
    """
    variance, target = mode.variance, mode.target
    last = 1.01 * np.log(1 / TOLERANCE) / variance[-1]
    clock = np.append(0, np.geomspace(TOLERANCE / variance[0], last, 2000))
    decay = np.exp(-np.outer(clock, variance))
    size = np.linalg.norm(target - (target - w) * decay, axis=1)
    missing = decay @ (variance * target * (target - w))
    end = int(np.argmax(missing <= TOLERANCE * mode.power)) + 1
    slowness = size[:end] ** (2 / mode.depth - 2)
    return float(np.trapezoid(slowness, clock[:end]))


def _turning_time(mode: Mode) -> float:
    """Time in which outputs turn away from the modes that the network is too narrow for.

    With outputs off by the tangent h, the error is larger by h^2 (1 - rho^2) of the power. This is
    `TOLERANCE` at the end, and h is 1/sqrt(`TOLERANCE`) at the start.
    """
    rho = np.sqrt(mode.next_power / mode.power)
    if rho == 0 or 1 - rho**2 <= TOLERANCE**2:  # turning would not change the error
        return 0.0
    rate = np.linalg.norm(mode.target) ** (-2 / mode.depth) * (1 - rho) * mode.power
    return float(np.log(np.sqrt(1 - rho**2) / TOLERANCE) / rate)


def _eigenspaces(variance: Float[np.ndarray, " direction"]) -> Int[np.ndarray, " eigenspace"]:
    """Where each group of variances that are nearly equal begins; they are decreasing."""
    begins = [0]
    for n in range(1, len(variance)):
        if variance[n] * EQUAL < variance[begins[-1]]:
            begins.append(n)
    return np.array(begins)


def _largest(vectors: Float[np.ndarray, "sample unit"]) -> float:
    """Largest eigenvalue of the second moments of vectors."""
    gram = vectors.T @ vectors if len(vectors) > vectors.shape[1] else vectors @ vectors.T
    return float(np.linalg.eigvalsh(gram)[-1]) / len(vectors)
