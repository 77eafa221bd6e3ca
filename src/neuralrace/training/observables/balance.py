"""Observables of the balance between the weights into and out of each hidden layer."""

import itertools
from collections.abc import Mapping
from functools import reduce
from typing import Any

import jax.numpy as jnp
from jax import Array

from neuralrace.extensions.registry import Observable
from neuralrace.training.observables.layers import frobenius
from neuralrace.training.observables.view import View


@Observable(
    requires="hidden",
    variables={
        "imbalance_trace": ("time pair", "trace of C = W_{l+1}^T W_{l+1} - W_l W_l^T"),
        "imbalance_norm": ("time pair", "Frobenius norm of C"),
        "imbalance_drift": ("time pair", "Frobenius norm of C(t) - C(0)"),
        "neuron_imbalance_drift": (
            "time pair",
            "norm over units of the change of |outgoing|^2 - |incoming|^2 - bias^2",
        ),
        "offdiagonal_imbalance_drift": (
            "time pair",
            "Frobenius norm of the off-diagonal part of C(t) - C(0)",
        ),
    },
)
def imbalance(view: View) -> Mapping[str, Array]:
    """Imbalance C of each hidden layer, and its drift; of the first block of a routing network.

    C is the sum of W^T W over the weights out of a layer, minus the sum of W W^T over the weights
    into it.

    Source: Basu et al., eq. 9, for fully connected networks.
    """
    now, start = _imbalances(view.network), _imbalances(view.initial)
    neurons = _neuron_imbalances(view.network, now)
    neurons_start = _neuron_imbalances(view.initial, start)
    drift = [c - c0 for c, c0 in zip(now, start, strict=True)]
    return {
        "imbalance_trace": jnp.stack([jnp.trace(c) for c in now]),
        "imbalance_norm": frobenius(now),
        "imbalance_drift": frobenius(drift),
        "neuron_imbalance_drift": frobenius(
            [n - n0 for n, n0 in zip(neurons, neurons_start, strict=True)]
        ),
        "offdiagonal_imbalance_drift": frobenius([d - jnp.diag(jnp.diag(d)) for d in drift]),
    }


@Observable(
    requires="layered hidden",
    variables={
        "rate_gap": (
            "time pair",
            "|d(W_{l+1}^T W_{l+1})/dt - d(W_l W_l^T)/dt|_F along the gradient",
        ),
        "relative_rate_gap": ("time pair", "rate_gap over the sum of the two rates' norms"),
        "relative_norm_rate_gap": (
            "time pair",
            "difference of d|W|_F^2/dt over the sum of their sizes",
        ),
    },
)
def rate_gap(view: View) -> Mapping[str, Array]:
    """Difference between the growth rates of neighbouring layers along the gradient.

    Source: Basu et al., conjecture 4.
    """
    rates = [-g for g in view.gradient().weights]
    gaps, sizes, scalar_gaps, scalar_sizes = [], [], [], []
    layers = list(zip(view.network.weights, rates, strict=True))
    for (below, below_rate), (above, above_rate) in itertools.pairwise(layers):
        upper = above_rate.T @ above
        lower = below_rate @ below.T
        gaps.append(jnp.linalg.norm(upper + upper.T - lower - lower.T))
        sizes.append(jnp.linalg.norm(upper + upper.T) + jnp.linalg.norm(lower + lower.T))
        scalar_gaps.append(2 * jnp.abs(jnp.trace(upper) - jnp.trace(lower)))
        scalar_sizes.append(2 * (jnp.abs(jnp.trace(upper)) + jnp.abs(jnp.trace(lower))))
    return {
        "rate_gap": jnp.stack(gaps),
        "relative_rate_gap": _share(jnp.stack(gaps), jnp.stack(sizes)),
        "relative_norm_rate_gap": _share(jnp.stack(scalar_gaps), jnp.stack(scalar_sizes)),
    }


def _imbalances(network: Any) -> list[Array]:
    """C of each hidden layer."""
    return [
        reduce(jnp.add, (above.T @ above for above in out_of))
        - reduce(jnp.add, (below @ below.T for below in into))
        for into, out_of in network.junctions
    ]


def _neuron_imbalances(network: Any, imbalances: list[Array]) -> list[Array]:
    """For each hidden unit: squared outgoing minus squared incoming weights and squared bias."""
    diagonals = [jnp.diag(c) for c in imbalances]
    if not getattr(network, "biases", None):
        return diagonals
    return [c - b**2 for c, b in zip(diagonals, network.biases[:-1], strict=True)]


def _share(part: Array, whole: Array) -> Array:
    """Part / whole; 0 where the whole is 0."""
    return jnp.where(whole > 0, part / jnp.where(whole > 0, whole, 1), 0)
