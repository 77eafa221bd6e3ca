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
    return {"singular_values": _stacked([jnp.mean(s, axis=0) for s in _values(view)])}


@Observable(
    requires="routing",
    variables={
        "domain_singular_values": (
            "time layer domain singular_mode",
            "singular values of the weights of each domain",
        )
    },
)
def domain_singular_values(view: View) -> Mapping[str, Array]:
    """Singular values of every matrix in the first block of a routing network, padded with NaN.

    The first layer has an encoder for each input domain of the block, the last layer a decoder for
    each output domain. Layers between have one matrix, kept at domain 1 with NaN at the others.
    Means over domains are the observable `singular_values`.
    """
    return {"domain_singular_values": _stacked(_values(view))}


def frobenius(matrices: list[Array]) -> Float[Array, " n"]:
    """The Frobenius norm of each matrix."""
    return jnp.stack([jnp.linalg.norm(jnp.ravel(m)) for m in matrices])


def _values(view: View) -> list[Float[Array, "matrix _mode"]]:
    """Singular values of the matrices of each layer."""
    values = [jnp.linalg.svd(w, compute_uv=False) for w in view.network.weights]
    return [jnp.reshape(s, (-1, s.shape[-1])) for s in values]


def _stacked(arrays: list[Array]) -> Array:
    """The arrays along a new first axis, padded with NaN to a common shape."""
    shape = [max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True)]
    gaps = [[(0, n - size) for n, size in zip(shape, a.shape, strict=True)] for a in arrays]
    return jnp.stack(
        [jnp.pad(a, gap, constant_values=jnp.nan) for a, gap in zip(arrays, gaps, strict=True)]
    )
