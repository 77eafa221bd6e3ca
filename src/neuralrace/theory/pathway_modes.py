"""Learning of parallel pathways, with one hidden unit for each mode of a pathway.

A pathway p with one hidden layer first learns from its own correlation sigma_yx(p) = U S V^T. With
encoder W1 and decoder W2, the sum of hidden vectors W1 V + W2^T U grows by exp(S t), their
difference decays, and all else stays at its start. From a small start, the pathway therefore
continues as one with encoder M V^T and decoder U M^T, where M = (W1 V + W2^T U)/2. A rotation of
its hidden layer leaves one unit for each mode. The theory is the gradient flow of these reduced
pathways, joint or in stages. Their effective data need not be diagonal in common bases, and some
pathways may already learn a residual while others still learn. The theory is exact as the init
scale goes to 0.

`effective` is the effective data of the full network. Weights are listed by edge, as in
`gated_flow`. Time is gradient-flow time. `stages` are those of `networks.gated.Gated`, numbers of
pathways in each stage; without them all pathways learn the joint residual.

Source: derived here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from neuralrace.errors import UserError
from neuralrace.extensions.representation import short_repr
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.gates.effective import NEGLIGIBLE, EffectiveData
from neuralrace.theory.gated_flow import gated_descent, gated_flow, gated_loss, pathway_maps
from neuralrace.theory.modes import singular_values

# With this tolerance, losses are correct to about 1e-9 of their initial value, singular values to
# 1e-5. After learning, steps are as long as stability allows, and errors add up in directions in
# which the loss is flat: shares of pathways that can replace each other. A looser tolerance saves
# almost no time.
RTOL = 1e-10

# Rounding errors of weights near 0 when other weights are of order 1.
ROUNDING = 1e-15


@dataclass(frozen=True)
class PathwayLearning:
    """Loss and singular values of parallel pathways."""

    loss: Float[np.ndarray, "*runs time"]
    """Loss 1/2 <|y - yhat|^2>."""
    singular_values: Float[np.ndarray, "*runs time pathway mode"]
    """Singular values of every pathway's map, decreasing; 0 beyond its number of modes."""

    __repr__ = short_repr


def weight_start(
    effective: EffectiveData,
    weights: Sequence[Float[np.ndarray, "*runs _target _source"]],
) -> list[Float[np.ndarray, "*runs _target _source"]]:
    """Start from the initial weights of the full network, nothing fitted.

    M = (W1 V + W2^T U)/2 enters only through its Gram matrix. The diagonal holds the starts a0 of
    single modes, and the other entries are their interference. So the basis of a degenerate
    correlation does not matter. A hidden layer with fewer units than modes keeps its units.

    Args:
        effective: effective data of the pathways of the full network.
        weights: initial weights of the full network by edge.

    Returns:
        Weights by edge, with as many hidden units as modes.

    Raises:
        UserError: if the pathways are not parallel, with one hidden layer each.
    """
    start: list[np.ndarray] = [np.zeros(0)] * len(weights)
    for pathway, (u, v) in zip(effective.architecture.pathways, _modes(effective), strict=True):
        encoder, decoder = pathway.edges
        grows = (weights[encoder] @ v + weights[decoder].mT @ u) / 2
        reduced = np.asarray(np.linalg.qr(grows, mode="r"))
        start[encoder], start[decoder] = reduced @ v.T, u @ reduced.mT
    return start


def mean_start(
    effective: EffectiveData,
    widths: Sequence[int],
    init_scale: float | Float[np.ndarray, "*runs"],
) -> list[Float[np.ndarray, "*runs _target _source"]]:
    """Start of the mean random network: a0 = width init_scale^2/2, without interference of modes.

    Args:
        effective: effective data of the pathways of the full network.
        widths: number of hidden units of each pathway of the full network.
        init_scale: standard deviation of all initial weights of the full network.

    Returns:
        Weights by edge, with as many hidden units as modes.

    Raises:
        UserError: as `weight_start`.
    """
    pathways = effective.architecture.pathways
    start: list[np.ndarray] = [np.zeros(0)] * len(effective.architecture.edges)
    for pathway, width, (u, v) in zip(pathways, widths, _modes(effective), strict=True):
        amplitude = np.sqrt(width / 2) * np.asarray(init_scale)[..., None, None]
        start[pathway.edges[0]], start[pathway.edges[1]] = amplitude * v.T, amplitude * u
    return start


def pathway_modes_flow(
    time: Float[np.ndarray, " time"],
    effective: EffectiveData,
    start: Sequence[Float[np.ndarray, "*runs _target _source"]],
    stages: Sequence[int] | None = None,
) -> PathwayLearning:
    """Gradient flow of all pathways and runs, solved as one system.

    Args:
        time: increasing gradient-flow time, from 0.
        effective: effective data of the pathways of the full network.
        start: initial weights by edge, from `weight_start` or `mean_start`; hidden layers may have
            any number of units.
        stages: of stagewise descent.

    Raises:
        UserError: as `weight_start`.
        ValueError: if `start` does not fit, or `time` does not increase from 0 or later.
        RuntimeError: if the solver fails.
    """
    small = _resized(effective, start)
    # Growth preserves relative errors, so the smallest pathway sets the scale.
    sizes = np.array([np.sqrt((w**2).mean((-2, -1))).ravel() for w in start])
    smallest = np.min(sizes, where=sizes > 0, initial=1.0)
    seen = _in_stages(small, stages)
    path = gated_flow(time, seen, start, RTOL, max(RTOL * smallest, ROUNDING))
    return _observed(small, path)


def pathway_modes_descent(
    step: Int[np.ndarray, " time"],
    learning_rate: float,
    effective: EffectiveData,
    start: Sequence[Float[np.ndarray, "*runs _target _source"]],
    stages: Sequence[int] | None = None,
) -> PathwayLearning:
    """Gradient descent of all pathways, without the error of the flow for finite steps.

    A step size that is too large returns infinite or NaN values and raises no error.

    Args:
        step: numbers of steps at which to record, non-decreasing, from 0.
        learning_rate: gradient-flow time per step.
        effective: effective data of the pathways of the full network.
        start: as in `pathway_modes_flow`.
        stages: of stagewise descent.

    Raises:
        UserError: as `weight_start`.
        ValueError: if `start` does not fit, or `step` is negative or decreases.
    """
    small = _resized(effective, start)
    path = gated_descent(step, learning_rate, _in_stages(small, stages), start)
    return _observed(small, path)


def _observed(small: EffectiveData, path: Sequence[np.ndarray]) -> PathwayLearning:
    """Loss and singular values along a path of weights, (*runs, time, target, source) by edge."""
    with np.errstate(over="ignore", invalid="ignore"):
        maps = pathway_maps(small.architecture, path)
        loss = gated_loss(small, path)
    counts = [path[pathway.edges[0]].shape[-2] for pathway in small.architecture.pathways]
    values = np.zeros((*loss.shape, len(maps), max(counts)))
    for p, (matrix, count) in enumerate(zip(maps, counts, strict=True)):
        s = singular_values(matrix)[..., :count]
        values[..., p, : s.shape[-1]] = s
    return PathwayLearning(loss=loss, singular_values=values)


def _modes(effective: EffectiveData) -> list[tuple[np.ndarray, np.ndarray]]:
    """Singular vectors (U, V) of every pathway's sigma_yx(p), as many as its rank, at least one.

    Singular values below the share `NEGLIGIBLE` of the largest of all pathways count as rounding. A
    pathway that correlates with no target keeps one direction, driven by other pathways only.
    """
    _refuse_other_graphs(effective.architecture)
    parts = [np.linalg.svd(sigma, full_matrices=False) for sigma in effective.sigma_yx]
    floor = NEGLIGIBLE * max(s[0] for _, s, _ in parts)
    counts = [max(1, int((s > floor).sum())) for _, s, _ in parts]
    return [(u[:, :n], v[:n].T) for n, (u, _, v) in zip(counts, parts, strict=True)]


def _resized(effective: EffectiveData, weights: Sequence[np.ndarray]) -> EffectiveData:
    """The effective data for an architecture whose hidden layers have the sizes of the weights."""
    architecture = effective.architecture
    _refuse_other_graphs(architecture)
    units = {p.nodes[1]: weights[p.edges[0]].shape[-2] for p in architecture.pathways}
    nodes = {**architecture.nodes, **units}
    return replace(effective, architecture=Architecture(nodes=nodes, edges=architecture.edges))


def _in_stages(effective: EffectiveData, stages: Sequence[int] | None) -> EffectiveData:
    """The effective data by which each pathway sees only outputs of earlier stages and its own."""
    if not stages:
        return effective
    stage = np.repeat(np.arange(len(stages)), stages)
    seen = {(j, p): sigma for (j, p), sigma in effective.sigma_xx.items() if stage[j] <= stage[p]}
    return replace(effective, sigma_xx=seen)


def _refuse_other_graphs(architecture: Architecture) -> None:
    if not architecture.in_parallel:
        edges, pathways = len(architecture.edges), len(architecture.pathways)
        raise UserError(
            f"{edges} edges make {pathways} pathways, but the theory of pathway modes is about "
            "pathways side by side, each with one hidden layer and a separate encoder and decoder",
            key="solutions",
            remedy="leave it out for other architectures",
        )
