"""Observables of weights and biases, layer by layer.

Each weight matrix of a gated or graph network counts as a layer. For a routing network these are
the layers of its first block, with one matrix per domain at both ends.
"""

from collections.abc import Mapping

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from neuralrace.extensions.registry import Observable
from neuralrace.training.observables.view import View


@Observable(
    requires="layered",
    snapshots=True,
    variables={
        "weight_{layer}": (
            "snapshot unit_{layer} unit_{below}",
            "weights of layer {layer}, (out, in)",
        ),
        "bias_{layer}": ("snapshot unit_{layer}", "biases of layer {layer}"),
    },
)
def weights(view: View) -> Mapping[str, Array]:
    """All weights, and biases if the network has any."""
    matrices = {f"weight_{n}": w for n, w in enumerate(view.network.weights, start=1)}
    biases = {f"bias_{n}": b for n, b in enumerate(view.network.biases, start=1)}
    return matrices | biases


@Observable(variables={"layer_norm": ("time layer", "Frobenius norm of the weights")})
def layer_norm(view: View) -> Mapping[str, Array]:
    """Frobenius norm of the weights of each layer."""
    return {"layer_norm": frobenius(view.network.weights)}


@Observable(
    variables={"weight_cosine": ("time layer", "cosine between the weights and those at the start")}
)
def weight_cosine(view: View) -> Mapping[str, Array]:
    """Cosine between the weights of each layer, as one vector, and its initial weights."""
    now, start = view.network.weights, view.initial.weights
    products = jnp.stack([jnp.vdot(w, w0) for w, w0 in zip(now, start, strict=True)])
    return {"weight_cosine": products / (frobenius(now) * frobenius(start))}


@Observable(
    requires="layered", variables={"bias_norm": ("time layer", "Euclidean norm of the biases")}
)
def bias_norm(view: View) -> Mapping[str, Array]:
    """Euclidean norm of the biases of each layer; zero without biases."""
    absent = [jnp.zeros(1, w.dtype) for w in view.network.weights]
    return {"bias_norm": frobenius(view.network.biases or absent)}


@Observable(
    variables={"singular_values": ("time layer singular_mode", "singular values of the weights")}
)
def singular_values(view: View) -> Mapping[str, Array]:
    """Singular values of each layer, padded with NaN; averaged over the matrices of a layer."""
    values = [_mean_values(w) for w in view.network.weights]
    rank = max(len(s) for s in values)
    padded = [jnp.pad(s, (0, rank - len(s)), constant_values=jnp.nan) for s in values]
    return {"singular_values": jnp.stack(padded)}


def frobenius(matrices: list[Array]) -> Float[Array, " n"]:
    """The Frobenius norm of each matrix."""
    return jnp.stack([jnp.linalg.norm(jnp.ravel(m)) for m in matrices])


def _mean_values(weights: Array) -> Array:
    values = jnp.linalg.svd(weights, compute_uv=False)
    return jnp.mean(values, axis=0) if weights.ndim == 3 else values
