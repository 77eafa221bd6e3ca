"""Gated deep linear networks: gradient flow and gradient descent, from effective data.

The value of an output node is the sum of g_p W_p x over the pathways p that end there. W_p is the
product of the weights along p, and g_p is its gate. The loss is 1/2 <|y - yhat|^2>. Samples and
gates matter only through `EffectiveData`. Weights are listed by edge, each of shape
(*runs, units of its target, units of its source). Time is gradient-flow time, dW/dt = -dloss/dW;
one step of gradient descent advances it by the learning rate.

Source: Saxe, Sodhani, Lewallen 2022, "The Neural Race Reduction", gradient flow dynamics.
"""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from jaxtyping import Float, Int

from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.gates.effective import EffectiveData
from neuralrace.theory.integration import descend, solve_flow


def pathway_maps(
    architecture: Architecture, weights: Sequence[Float[np.ndarray, "*runs _target _source"]]
) -> list[Float[np.ndarray, "*runs _target _source"]]:
    """Linear map of every pathway, the product of the weights along it.

    Raises:
        ValueError: if the weights do not fit the architecture.
    """
    _check_weights(architecture, weights)
    return [products[-1] for products in _products(architecture, weights)]


def gated_loss(
    effective: EffectiveData, weights: Sequence[Float[np.ndarray, "*runs _target _source"]]
) -> Float[np.ndarray, "*runs"]:
    """Loss y_power/2 - sum_p <W_p, sigma_yx(p)> + sum_jp <W_j sigma_xx(j, p), W_p>/2.

    Raises:
        ValueError: if the weights do not fit the architecture.

    Source: expands the squared error (Saxe, Sodhani, Lewallen 2022).
    """
    maps = pathway_maps(effective.architecture, weights)
    # With E(p) = sigma_yx(p) - sum_j W_j sigma_xx(j, p), twice the loss is
    # y_power - sum_p <W_p, sigma_yx(p) + E(p)>.
    gain = [(w * (sigma + error)).sum((-2, -1))
            for w, sigma, error in zip(maps, effective.sigma_yx, _errors(effective, maps),
                                       strict=True)]  # fmt: skip
    return np.asarray((effective.y_power - sum(gain)) / 2)


def gated_gradient(
    effective: EffectiveData, weights: Sequence[Float[np.ndarray, "*runs _target _source"]]
) -> list[Float[np.ndarray, "*runs _target _source"]]:
    """Negative gradient -dloss/dW_e for every edge e.

    It is the sum over all pathways p through e of W_after^T E(p) W_before^T. The error is
    E(p) = sigma_yx(p) - sum_j W_j sigma_xx(j, p), a sum over all pathways j to the same output.
    W_before and W_after are the products of the weights on p before and after e.

    Raises:
        ValueError: if the weights do not fit the architecture.

    Source: Saxe, Sodhani, Lewallen 2022, gradient flow dynamics.
    """
    architecture = effective.architecture
    _check_weights(architecture, weights)
    products = _products(architecture, weights)
    errors = _errors(effective, [along[-1] for along in products])
    gradient = [np.zeros_like(w) for w in weights]
    for pathway, along, back in zip(architecture.pathways, products, errors, strict=True):
        for edge, before in zip(pathway.edges[:0:-1], along[-2::-1], strict=True):
            gradient[edge] += back @ before.mT
            back = weights[edge].mT @ back
        gradient[pathway.edges[0]] += back
    return gradient


def gated_flow(
    time: Float[np.ndarray, " time"],
    effective: EffectiveData,
    weights: Sequence[Float[np.ndarray, "*runs _target _source"]],
    rtol: float = 1e-13,
    atol: float = 1e-16,
) -> list[Float[np.ndarray, "*runs time _target _source"]]:
    """Gradient flow of a gated deep linear network, solved for all runs at once.

    `solve_flow` explains the tolerances.

    Args:
        time: increasing, gradient-flow time, from 0.
        effective: effective data of the pathways.
        weights: initial weights by edge.
        rtol: relative tolerance of the solver.
        atol: absolute tolerance of the solver, in units of the weights.

    Returns:
        The weights at the times, by edge.

    Raises:
        ValueError: if the weights do not fit the architecture or `time` does not increase from 0
            or later.
        RuntimeError: if the solver fails.
    """
    path = solve_flow(time, weights, lambda now: gated_gradient(effective, now), rtol, atol)
    return [np.moveaxis(w, 0, -3) for w in path]


def gated_descent(
    step: Int[np.ndarray, " time"],
    learning_rate: float,
    effective: EffectiveData,
    weights: Sequence[Float[np.ndarray, "*runs _target _source"]],
) -> list[Float[np.ndarray, "*runs time _target _source"]]:
    """Full-batch gradient descent of a gated deep linear network.

    A step size that is too large returns infinite or NaN weights and raises no error.

    Args:
        step: numbers of steps at which to record, non-decreasing, from 0.
        learning_rate: gradient-flow time per step.
        effective: effective data of the pathways.
        weights: initial weights by edge.

    Returns:
        The weights after those numbers of steps, by edge.

    Raises:
        ValueError: if the weights do not fit the architecture or `step` is negative or decreases.
    """
    path = descend(step, learning_rate, weights, lambda now: gated_gradient(effective, now))
    return [np.moveaxis(w, 0, -3) for w in path]


def _products(architecture: Architecture, weights: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """By pathway, the products of the weights from its input node to each of its later nodes."""
    return [
        list(accumulate((weights[edge] for edge in pathway.edges), lambda below, w: w @ below))
        for pathway in architecture.pathways
    ]


def _errors(effective: EffectiveData, maps: Sequence[np.ndarray]) -> list[np.ndarray]:
    """By pathway, sigma_yx(p) - sum_j W_j sigma_xx(j, p)."""
    errors = list(effective.sigma_yx)
    for (j, p), sigma in effective.sigma_xx.items():
        errors[p] = errors[p] - maps[j] @ sigma
    return errors


def _check_weights(architecture: Architecture, weights: Sequence[np.ndarray]) -> None:
    nodes = architecture.nodes
    if len(weights) != len(architecture.edges):
        raise ValueError(f"{len(weights)} weights for {len(architecture.edges)} edges")
    for edge, (source, target) in enumerate(architecture.edges):
        have, need = weights[edge].shape[-2:], (nodes[target], nodes[source])
        if have != need:
            raise ValueError(f"weights of {architecture.edge_name(edge)} are {have}, not {need}")
    if len(runs := {w.shape[:-2] for w in weights}) > 1:
        raise ValueError(f"weights differ in runs: {sorted(runs)}")
