"""Observables of trained and untrained pairs of input and output domain."""

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
    """Mean squared error over pairs, relative to a network with output zero."""
    error = view.task.pair_errors(view.network, view.data)
    # an error computed from correlations may be negative by rounding
    return _by_training("{}_error", jnp.maximum(error, 0), view.per_run["mask"])


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
    """Accuracy of pairs on held-out images; errors too if the loss is squared error."""
    error, accuracy = view.task.held_out(view.network, view.data)
    scores = _by_training("{}_accuracy", accuracy, view.per_run["mask"])
    if view.training.loss.squared:
        scores |= _by_training("held_out_{}_error", error, view.per_run["mask"])
    return scores


@Observable(
    requires="routing domains_in_memory",
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
    """Network outputs on all items in all pairs, and which pairs are trained."""
    outputs = jnp.einsum("ijyx,inx->ijny", view.network.maps(), view.data["inputs"])
    return {"pair_outputs": outputs, "trained_pair": view.per_run["mask"]}


def over_pairs(values: Array, mask: Array) -> Array:
    """Mean over the pairs of a mask, of values (input_domain, output_domain, ...); NaN for none."""
    return jnp.tensordot(mask, values, 2) / jnp.sum(mask)


def _by_training(name: str, values: Array, mask: Array) -> dict[str, Array]:
    """Means over trained and over untrained pairs."""
    masks = {"trained": mask, "untrained": 1 - mask}
    return {name.format(pairs): over_pairs(values, each) for pairs, each in masks.items()}
