"""Observables of the whole network's input-output map."""

from collections.abc import Mapping
from functools import reduce

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from neuralrace.extensions.registry import Observable
from neuralrace.training.observables.pairs import over_pairs
from neuralrace.training.observables.view import View


@Observable(
    requires="layered",
    variables={"linear_map": ("time output input", "product of all weights W_L ... W_1")},
)
def linear_map(view: View) -> Mapping[str, Array]:
    """Product of all weights, without activations."""
    return {"linear_map": _product(view.network.weights)}


@Observable(
    requires="layered|routing domains_in_memory",
    variables={"mode_strength": ("time mode", "effective singular value u_k^T W_L ... W_1 v_k")},
)
def mode_strength(view: View) -> Mapping[str, Array]:
    """Strength of each mode of the task; for routing networks, the mean over trained pairs."""
    u, v = view.data["u"], view.data["v"]
    if "mask" in view.per_run:
        strength = jnp.einsum("ijyk,ijyx,ijxk->ijk", u, view.network.maps(), v)
        return {"mode_strength": over_pairs(strength, view.per_run["mask"])}
    return {"mode_strength": jnp.einsum("ok,oi,ik->k", u, _product(view.network.weights), v)}


@Observable(
    requires="layered|gated|graph",
    snapshots=True,
    variables={"outputs": ("snapshot sample output", "network outputs on the dataset")},
)
def outputs(view: View) -> Mapping[str, Array]:
    """Network outputs on all samples."""
    return {"outputs": _outputs(view)}


@Observable(
    requires="layered|gated|graph",
    variables={"output_curve": ("time sample output", "network outputs on the dataset, each time")},
)
def output_curve(view: View) -> Mapping[str, Array]:
    """Network outputs on all samples as often as the loss, where snapshots of weights are rare."""
    return {"output_curve": _outputs(view)}


@Observable(
    requires="layered several_outputs",
    variables={"accuracy": ("time", "fraction of samples classified correctly")},
)
def accuracy(view: View) -> Mapping[str, Array]:
    """Fraction of samples whose largest output is the largest target."""
    x, y = view.data["x"], view.data["y"]
    hits = jnp.argmax(view.network(x), axis=-1) == jnp.argmax(y, axis=-1)
    return {"accuracy": jnp.mean(hits, dtype=x.dtype)}


@Observable(
    requires="layered",
    variables={
        "output_error": ("time output", "squared error of each output over its target's variance")
    },
)
def output_error(view: View) -> Mapping[str, Array]:
    """Mean squared error of each output, over that of the best constant."""
    x, y = view.data["x"], view.data["y"]
    return {"output_error": jnp.mean((view.network(x) - y) ** 2, axis=0) / jnp.var(y, axis=0)}


def _outputs(view: View) -> Float[Array, "sample output"]:
    gates = [view.data["gates"]] if "gates" in view.data else []
    return view.network(view.data["x"], *gates)


def _product(weights: list[Array]) -> Float[Array, "output input"]:
    """W_L ... W_1."""
    return reduce(lambda below, above: above @ below, weights)
