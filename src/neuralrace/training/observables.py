"""What is observed while a network trains.

An observable maps one network, as it stands, to named arrays; the engine batches it over runs and
calls it inside the compiled loop. Names, dimensions and units of the arrays are those of
`records.schema`.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from neuralrace.models.layered import LayeredNetwork
from neuralrace.spec import Observable


@dataclass(frozen=True)
class View:
    """All that an observable may look at."""

    network: LayeredNetwork
    initial: LayeredNetwork
    """The same run before training."""
    x: Float[Array, "sample input"]
    y: Float[Array, "sample output"]
    u: Float[Array, "output mode"]
    v: Float[Array, "input mode"]
    gradient: Callable[[], LayeredNetwork]
    """Gradient of the loss over all samples, as a network of the same shape."""


def linear_map(weights: list[Array]) -> Float[Array, "output input"]:
    """W_L ... W_1."""
    return reduce(lambda below, above: above @ below, weights)


def _pairs(weights: list[Array]) -> list[tuple[Array, Array]]:
    return list(itertools.pairwise(weights))


def _frobenius(matrices: list[Array]) -> Float[Array, " n"]:
    return jnp.stack([jnp.linalg.norm(m) for m in matrices])


def _imbalances(weights: list[Array]) -> list[Array]:
    """C_l = W_{l+1}^T W_{l+1} - W_l W_l^T (Basu et al., eq. 9)."""
    return [above.T @ above - below @ below.T for below, above in _pairs(weights)]


def _neuron_imbalances(network: LayeredNetwork) -> list[Array]:
    """Per hidden unit: squared outgoing weights minus squared incoming ones and squared bias."""
    biases = [b**2 for b in network.biases[:-1]] or [0.0] * (len(network.weights) - 1)
    return [
        jnp.sum(above**2, axis=0) - jnp.sum(below**2, axis=1) - b
        for (below, above), b in zip(_pairs(network.weights), biases, strict=True)
    ]


def _layer_norm(view: View) -> Mapping[str, Array]:
    return {"layer_norm": _frobenius(view.network.weights)}


def _bias_norm(view: View) -> Mapping[str, Array]:
    absent = [jnp.zeros(1, view.x.dtype)] * len(view.network.weights)
    return {"bias_norm": _frobenius(view.network.biases or absent)}


def _singular_values(view: View) -> Mapping[str, Array]:
    values = [jnp.linalg.svd(w, compute_uv=False) for w in view.network.weights]
    rank = max(len(s) for s in values)
    padded = [jnp.pad(s, (0, rank - len(s)), constant_values=jnp.nan) for s in values]
    return {"singular_values": jnp.stack(padded)}


def _linear_map(view: View) -> Mapping[str, Array]:
    return {"linear_map": linear_map(view.network.weights)}


def _mode_strength(view: View) -> Mapping[str, Array]:
    total = linear_map(view.network.weights)
    return {"mode_strength": jnp.einsum("ok,oi,ik->k", view.u, total, view.v)}


def _gram(view: View) -> Mapping[str, Array]:
    encoder, decoder = view.network.weights
    vectors = jnp.concatenate([encoder @ view.v, decoder.T @ view.u], axis=1)
    return {"gram": vectors.T @ vectors}


def _imbalance(view: View) -> Mapping[str, Array]:
    now, start = _imbalances(view.network.weights), _imbalances(view.initial.weights)
    neurons, neurons_start = _neuron_imbalances(view.network), _neuron_imbalances(view.initial)
    drift = [c - c0 for c, c0 in zip(now, start, strict=True)]
    return {
        "imbalance_trace": jnp.stack([jnp.trace(c) for c in now]),
        "imbalance_norm": _frobenius(now),
        "imbalance_drift": _frobenius(drift),
        "neuron_imbalance_drift": _frobenius(
            [n - n0 for n, n0 in zip(neurons, neurons_start, strict=True)]
        ),
        "offdiagonal_imbalance_drift": _frobenius([d - jnp.diag(jnp.diag(d)) for d in drift]),
    }


def _rate_gap(view: View) -> Mapping[str, Array]:
    """|d(W_{l+1}^T W_{l+1})/dt - d(W_l W_l^T)/dt|_F down the gradient (conjecture 4)."""
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


def _share(part: Array, whole: Array) -> Array:
    """Part / whole; 0 where nothing grows and there is no gap to speak of."""
    return jnp.where(whole > 0, part / jnp.where(whole > 0, whole, 1), 0)


def _accuracy(view: View) -> Mapping[str, Array]:
    hits = jnp.argmax(view.network(view.x), axis=-1) == jnp.argmax(view.y, axis=-1)
    return {"accuracy": jnp.mean(hits, dtype=view.x.dtype)}


def _weights(view: View) -> Mapping[str, Array]:
    weights = {f"weight_{n}": w for n, w in enumerate(view.network.weights, start=1)}
    biases = {f"bias_{n}": b for n, b in enumerate(view.network.biases, start=1)}
    return weights | biases


def _outputs(view: View) -> Mapping[str, Array]:
    return {"outputs": view.network(view.x)}


OBSERVABLES: dict[Observable, Callable[[View], Mapping[str, Array]]] = {
    "accuracy": _accuracy,
    "bias_norm": _bias_norm,
    "gram": _gram,
    "imbalance": _imbalance,
    "layer_norm": _layer_norm,
    "linear_map": _linear_map,
    "mode_strength": _mode_strength,
    "outputs": _outputs,
    "rate_gap": _rate_gap,
    "singular_values": _singular_values,
    "weights": _weights,
}
SNAPSHOTS: frozenset[Observable] = frozenset({"outputs", "weights"})
"""Observables too large for the time axis: recorded along `snapshot`."""
