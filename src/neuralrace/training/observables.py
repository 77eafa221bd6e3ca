"""What is observed while a network trains.

An observable maps one network, as it stands, to named arrays; the engine batches it over runs and
calls it inside the compiled loop. Names, dimensions and units of the arrays are those of
`records.schema`.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from neuralrace.models.routing import RoutingNetwork
from neuralrace.spec import Observable
from neuralrace.training.base import Task
from neuralrace.training.domain_tasks import DomainTask, ImageTask


@dataclass(frozen=True)
class View:
    """All that an observable may look at."""

    task: Task
    network: Any
    initial: Any
    """The same run before training."""
    data: Mapping[str, Any]
    """`Task.arrays` on the device."""
    own: Mapping[str, Array]
    """`Task.own` of this run."""
    gradient: Callable[[], Any]
    """Gradient of the loss over all samples, as a network of the same shape."""


def linear_map(weights: list[Array]) -> Float[Array, "output input"]:
    """W_L ... W_1."""
    return reduce(lambda below, above: above @ below, weights)


def _frobenius(matrices: list[Array]) -> Float[Array, " n"]:
    return jnp.stack([jnp.linalg.norm(jnp.ravel(m)) for m in matrices])


def _imbalances(network: Any) -> list[Array]:
    """C = sum W^T W over the weights out of a hidden layer - sum W W^T over those into it.

    Source: Basu et al., eq. 9, for layers in a row.
    """
    return [
        reduce(jnp.add, (above.T @ above for above in out_of))
        - reduce(jnp.add, (below @ below.T for below in into))
        for into, out_of in network.junctions
    ]


def _neuron_imbalances(network: Any, imbalances: list[Array]) -> list[Array]:
    """Per hidden unit: squared outgoing weights minus squared incoming ones and squared bias."""
    diagonals = [jnp.diag(c) for c in imbalances]
    if not getattr(network, "biases", None):
        return diagonals
    return [c - b**2 for c, b in zip(diagonals, network.biases[:-1], strict=True)]


def _layer_norm(view: View) -> Mapping[str, Array]:
    return {"layer_norm": _frobenius(view.network.weights)}


def _weight_cosine(view: View) -> Mapping[str, Array]:
    """Of all weights of a layer as one vector; of a routing network those of the first block."""
    now, start = view.network.weights, view.initial.weights
    products = jnp.stack([jnp.vdot(w, w0) for w, w0 in zip(now, start, strict=True)])
    return {"weight_cosine": products / (_frobenius(now) * _frobenius(start))}


def _bias_norm(view: View) -> Mapping[str, Array]:
    absent = [jnp.zeros(1, w.dtype) for w in view.network.weights]
    return {"bias_norm": _frobenius(view.network.biases or absent)}


def _singular_values(view: View) -> Mapping[str, Array]:
    values = [_mean_values(w) for w in view.network.weights]
    rank = max(len(s) for s in values)
    padded = [jnp.pad(s, (0, rank - len(s)), constant_values=jnp.nan) for s in values]
    return {"singular_values": jnp.stack(padded)}


def _mean_values(weights: Array) -> Array:
    """Singular values; of a stack of matrices, averaged over the stack."""
    values = jnp.linalg.svd(weights, compute_uv=False)
    return jnp.mean(values, axis=0) if weights.ndim == 3 else values


def _linear_map(view: View) -> Mapping[str, Array]:
    return {"linear_map": linear_map(view.network.weights)}


def _mode_strength(view: View) -> Mapping[str, Array]:
    u, v = view.data["u"], view.data["v"]
    if isinstance(view.network, RoutingNetwork):
        strength = jnp.einsum("ijyk,ijyx,ijxk->ijk", u, view.network.maps(), v)
        return {"mode_strength": _over_pairs(strength, view.own["mask"])}
    return {"mode_strength": jnp.einsum("ok,oi,ik->k", u, linear_map(view.network.weights), v)}


def _gram(view: View) -> Mapping[str, Array]:
    encoder, decoder = view.network.weights
    vectors = jnp.concatenate([encoder @ view.data["v"], decoder.T @ view.data["u"]], axis=1)
    return {"gram": vectors.T @ vectors}


def _imbalance(view: View) -> Mapping[str, Array]:
    now, start = _imbalances(view.network), _imbalances(view.initial)
    neurons = _neuron_imbalances(view.network, now)
    neurons_start = _neuron_imbalances(view.initial, start)
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
    x, y = view.data["x"], view.data["y"]
    hits = jnp.argmax(view.network(x), axis=-1) == jnp.argmax(y, axis=-1)
    return {"accuracy": jnp.mean(hits, dtype=x.dtype)}


def _weights(view: View) -> Mapping[str, Array]:
    weights = {f"weight_{n}": w for n, w in enumerate(view.network.weights, start=1)}
    biases = {f"bias_{n}": b for n, b in enumerate(view.network.biases, start=1)}
    return weights | biases


def _outputs(view: View) -> Mapping[str, Array]:
    gates = [view.data["gates"]] if "gates" in view.data else []
    return {"outputs": view.network(view.data["x"], *gates)}


# Routing networks ------------------------------------------------------------------------------


def _over_pairs(values: Array, chosen: Array) -> Array:
    """Mean over chosen pairs of domains, axes (input_domain, output_domain, ...); NaN for none."""
    return jnp.tensordot(chosen, values, 2) / jnp.sum(chosen)


def _seen_and_unseen(name: str, values: Array, mask: Array) -> dict[str, Array]:
    """Means over pairs that are trained, and over those that never are."""
    chosen = {"trained": mask, "untrained": 1 - mask}
    return {name.format(pairs): _over_pairs(values, which) for pairs, which in chosen.items()}


def _pair_error(view: View) -> Mapping[str, Array]:
    error = cast(DomainTask, view.task).pair_errors(view.network, view.data)
    # rounding may leave less than nothing
    return _seen_and_unseen("{}_error", jnp.maximum(error, 0), view.own["mask"])


def _pair_accuracy(view: View) -> Mapping[str, Array]:
    task = cast(ImageTask, view.task)
    error, accuracy = task.held_out(view.network, view.data)
    seen = _seen_and_unseen("{}_accuracy", accuracy, view.own["mask"])
    if task.run.training.loss.name == "squared_error":
        seen |= _seen_and_unseen("held_out_{}_error", error, view.own["mask"])
    return seen


def _pair_outputs(view: View) -> Mapping[str, Array]:
    outputs = jnp.einsum("ijyx,inx->ijny", view.network.maps(), view.data["inputs"])
    return {"pair_outputs": outputs, "trained_pair": view.own["mask"]}


def _similarity(view: View) -> Mapping[str, Array]:
    """Inner products of what samples are mapped to in the first hidden layers."""
    if isinstance(view.network, RoutingNetwork):
        return _domain_similarity(view)
    hidden = view.network.first_hidden(view.data["x"])
    return {"sample_similarity": hidden @ hidden.T}


def _domain_similarity(view: View) -> Mapping[str, Array]:
    """The same for the items of all domains, in all blocks of the first family.

    Domains of different groups share none.
    """
    encoders = view.network.families[0].encoder[...]
    rows, _, size, _, units = encoders.shape
    items = jnp.reshape(view.data["inputs"], (rows, size, -1, units))
    hidden = jnp.einsum("rcihx,rinx->rinch", encoders, items)
    hidden = jnp.reshape(hidden, (rows, size * items.shape[2], -1))
    groups = jnp.einsum("ram,rbm->rab", hidden, hidden)
    return {"similarity": jax.scipy.linalg.block_diag(*groups)}


def _pathway_power(view: View) -> Mapping[str, Array]:
    maps = jnp.stack([family.maps() for family in view.network.families])
    power = jnp.sum(maps**2, axis=(-2, -1))
    return {
        "trained_power": jax.vmap(_over_pairs, (0, None))(power, view.own["mask"]),
        "untrained_power": jax.vmap(_over_pairs, (0, None))(power, 1 - view.own["mask"]),
    }


def _pathway_maps(view: View) -> Mapping[str, Array]:
    return {"pathway_maps": view.network.maps()}


def _pathway_values(view: View) -> Mapping[str, Array]:
    return {"pathway_values": jnp.linalg.svd(view.network.maps(), compute_uv=False)}


OBSERVABLES: dict[Observable, Callable[[View], Mapping[str, Array]]] = {
    "accuracy": _accuracy,
    "bias_norm": _bias_norm,
    "gram": _gram,
    "imbalance": _imbalance,
    "layer_norm": _layer_norm,
    "linear_map": _linear_map,
    "mode_strength": _mode_strength,
    "outputs": _outputs,
    "pair_accuracy": _pair_accuracy,
    "pair_error": _pair_error,
    "pair_outputs": _pair_outputs,
    "pathway_maps": _pathway_maps,
    "pathway_power": _pathway_power,
    "pathway_values": _pathway_values,
    "rate_gap": _rate_gap,
    "similarity": _similarity,
    "singular_values": _singular_values,
    "weight_cosine": _weight_cosine,
    "weights": _weights,
}
SNAPSHOTS: frozenset[Observable] = frozenset(
    {"outputs", "pair_outputs", "pathway_maps", "similarity", "weights"}
)
"""Observables too large for the time axis: recorded along `snapshot`."""
