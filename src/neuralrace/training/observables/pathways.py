"""Observables of single pathways."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax import Array

from neuralrace.extensions.registry import Observable
from neuralrace.training.observables.pairs import over_pairs
from neuralrace.training.observables.view import View


@Observable(
    requires="gated",
    snapshots=True,
    variables={
        "pathway_maps": (
            "snapshot pathway output input",
            "product of the weights along each pathway",
        )
    },
)
def pathway_maps(view: View) -> Mapping[str, Array]:
    """Product of the weights along each pathway."""
    return {"pathway_maps": view.network.maps()}


@Observable(
    requires="gated|graph",
    variables={
        "pathway_values": (
            "time pathway pathway_mode",
            "singular values of the map of each pathway",
        )
    },
)
def pathway_values(view: View) -> Mapping[str, Array]:
    """Singular values of each pathway's map.

    In a graph, maps may differ in size: values are 0 beyond those of a smaller map.
    """
    maps = view.network.maps()
    if not isinstance(maps, list):
        return {"pathway_values": jnp.linalg.svd(maps, compute_uv=False)}
    values = [jnp.linalg.svd(each, compute_uv=False) for each in maps]
    most = max(map(len, values))
    return {"pathway_values": jnp.stack([jnp.pad(s, (0, most - len(s))) for s in values])}


@Observable(
    requires="routing domains_in_memory",
    variables={
        "trained_power": (
            "time family",
            "squared norm of the map of a trained pair through a pathway family",
        ),
        "untrained_power": (
            "time family",
            "squared norm of the map of an untrained pair through a pathway family",
        ),
    },
)
def pathway_power(view: View) -> Mapping[str, Array]:
    """Squared norm of the map of each family of pathway blocks, averaged over pairs of domains."""
    maps = jnp.stack([family.maps() for family in view.network.families])
    power = jnp.sum(maps**2, axis=(-2, -1))
    return {
        "trained_power": jax.vmap(over_pairs, (0, None))(power, view.per_run["mask"]),
        "untrained_power": jax.vmap(over_pairs, (0, None))(power, 1 - view.per_run["mask"]),
    }
