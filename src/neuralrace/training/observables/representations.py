"""Observables of hidden representations of samples and modes."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax import Array

from neuralrace.extensions.registry import Observable
from neuralrace.training.observables.view import View


@Observable(
    requires="layered one_hidden",
    variables={
        "gram": ("time vector other_vector", "inner products of encoder and decoder vectors"),
    },
)
def gram(view: View) -> Mapping[str, Array]:
    """Inner products of encoders W_1 v_k and decoders W_2^T u_k."""
    encoder, decoder = view.network.weights
    vectors = jnp.concatenate([encoder @ view.data["v"], decoder.T @ view.data["u"]], axis=1)
    return {"gram": vectors.T @ vectors}


@Observable(
    requires="layered|gated|routing hidden domains_in_memory",
    snapshots=True,
    variables={
        "similarity": (
            "snapshot domain_item other_domain_item",
            "inner products of first-hidden-layer representations, items within input domains",
        ),
        "sample_similarity": (
            "snapshot sample other_sample",
            "inner products of first-hidden-layer representations of samples",
        ),
    },
)
def similarity(view: View) -> Mapping[str, Array]:
    """Inner products of first-hidden-layer representations of samples, or of items of domains."""
    if "inputs" in view.data:
        return _domain_similarity(view)
    hidden = view.network.first_hidden(view.data["x"])
    return {"sample_similarity": hidden @ hidden.T}


def _domain_similarity(view: View) -> Mapping[str, Array]:
    """Inner products between items of all domains, summed over all blocks of the first family.

    Domains of different groups share no block: their products are zero.
    """
    encoders = view.network.families[0].encoder[...]
    rows, _, size, _, units = encoders.shape
    items = jnp.reshape(view.data["inputs"], (rows, size, -1, units))
    hidden = jnp.einsum("rcihx,rinx->rinch", encoders, items)
    hidden = jnp.reshape(hidden, (rows, size * items.shape[2], -1))
    groups = jnp.einsum("ram,rbm->rab", hidden, hidden)
    return {"similarity": jax.scipy.linalg.block_diag(*groups)}
