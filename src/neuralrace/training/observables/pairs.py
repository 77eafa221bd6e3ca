"""Pairs of an input domain and an output domain: those that are trained, and those never seen."""

from collections.abc import Mapping

import jax.numpy as jnp
from jax import Array

from neuralrace.extensions.registry import Observable
from neuralrace.training.observables.view import View


@Observable(
    requires="routing squared_error",
    variables={
        "trained_error": ("time", "relative squared error of trained pairs of domains"),
        "untrained_error": (
            "time",
            "relative squared error of pairs of domains that are never trained",
        ),
    },
)
def pair_error(view: View) -> Mapping[str, Array]:
    """Mean error over pairs, relative to that of a network that answers zero."""
    error = view.task.pair_errors(view.network, view.data)
    # rounding may leave less than nothing
    return _seen_and_unseen("{}_error", jnp.maximum(error, 0), view.own["mask"])


@Observable(
    requires="routing domains_of_images",
    variables={
        "trained_accuracy": (
            "time",
            "fraction of held-out images classified correctly, over trained pairs",
        ),
        "untrained_accuracy": (
            "time",
            "fraction of held-out images classified correctly, over untrained pairs",
        ),
        "held_out_trained_error": (
            "time",
            "relative squared error of trained pairs of domains on held-out images",
        ),
        "held_out_untrained_error": (
            "time",
            "relative squared error of untrained pairs of domains on held-out images",
        ),
    },
)
def pair_accuracy(view: View) -> Mapping[str, Array]:
    """How pairs do on held-out images; errors where squared error is what is trained."""
    error, accuracy = view.task.held_out(view.network, view.data)
    scores = _seen_and_unseen("{}_accuracy", accuracy, view.own["mask"])
    if view.training.loss.squared:
        scores |= _seen_and_unseen("held_out_{}_error", error, view.own["mask"])
    return scores


@Observable(
    requires="routing domains_spelled_out",
    snapshots=True,
    variables={
        "pair_outputs": (
            "snapshot input_domain output_domain item output",
            "network outputs by pair of domains",
        ),
        "trained_pair": (
            "snapshot input_domain output_domain",
            "1 where a pair of domains is trained",
        ),
    },
)
def pair_outputs(view: View) -> Mapping[str, Array]:
    """Answers to all items in all pairs, and which of these are trained."""
    outputs = jnp.einsum("ijyx,inx->ijny", view.network.maps(), view.data["inputs"])
    return {"pair_outputs": outputs, "trained_pair": view.own["mask"]}


def over_pairs(values: Array, chosen: Array) -> Array:
    """Mean over chosen pairs of domains, axes (input_domain, output_domain, ...); NaN for none."""
    return jnp.tensordot(chosen, values, 2) / jnp.sum(chosen)


def _seen_and_unseen(name: str, values: Array, mask: Array) -> dict[str, Array]:
    """Means over pairs that are trained, and over those that never are."""
    chosen = {"trained": mask, "untrained": 1 - mask}
    return {name.format(pairs): over_pairs(values, which) for pairs, which in chosen.items()}
