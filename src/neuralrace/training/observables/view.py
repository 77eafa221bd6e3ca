"""The argument of every observable: one run at one moment of its training."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jax import Array

from neuralrace.extensions.representation import short_repr
from neuralrace.training.settings import Training


@dataclass(frozen=True)
class View:
    """One run at one moment of its training, as observables see it.

    An observable maps a view to named arrays, without axes for runs or time:

        @Observable(variables={"loudest": ("time", "largest weight of the first layer")})
        def loudest(view):
            return {"loudest": jnp.max(jnp.abs(view.network.weights[0]))}

    The trainer calls it under `jit` and `vmap`: it must be a pure JAX function.
    """

    training: Training
    """Loss, batches and optimiser."""
    task: Any
    """The task that is trained. Tasks between domains have `pair_errors(network, data)`, those on
    images also `held_out(network, data)`: scores of all pairs (input_domain, output_domain)."""
    network: Any
    """The network with its present weights, a module of `neuralrace.networks.modules`."""
    initial: Any
    """The same network with its initial weights."""
    data: Mapping[str, Any]
    """Arrays that all runs share. Layered, gated and graph networks: samples `x` and `y`, and
    `test` for `task.test_loss(network, data)` if the dataset has test samples. Routing
    networks: `inputs` and `targets` by domain. Linear tasks: singular vectors `u` and `v`. In a
    sequence of tasks, these are of the present one, and `tasks` has those of all, stacked."""
    per_run: Mapping[str, Array]
    """Arrays of this run alone. Routing networks: `mask`, 1 where a pair of domains is trained."""
    gradient: Callable[[], Any]
    """Computes the gradient that training descends on, over all samples, as a network of the same
    shape."""

    __repr__ = short_repr
