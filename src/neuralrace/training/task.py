"""Tasks: a network on a dataset, as the trainer needs it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Int


class Axes(nnx.Variable):
    """Directions that weights are written along, neither weights nor trained.

    The gradient of a network is written along the same directions.
    """


class Task(ABC):
    """A network on a dataset: initial weights, loss and mini-batches.

    The trainer calls `weights`, `network` and `loss`, and knows nothing else of the network. A new
    network implements these three and sets the attributes in its `__init__`:

        class LinearTask(Task):
            def __init__(self, x, y):
                self.samples = len(x)
                self.arrays = {"x": x, "y": y, "loss": (x, y)}

            def weights(self, scales, seeds):
                shape = self.arrays["y"].shape[1], self.arrays["x"].shape[1]
                draws = [np.random.default_rng(seed).normal(size=shape) for seed in seeds]
                return [np.multiply.outer(scales, draws)]  # (init_scale, seed, out, in)

            def network(self, weights):
                return LayeredNetwork(weights, None, "linear")

            def loss(self, network, batch, per_run):
                x, y = batch
                return jnp.mean(jnp.sum((network(x) - y) ** 2, axis=1)) / 2

    Attributes:
        samples: number of samples that the loss is averaged over.
        arrays: NumPy arrays that all runs share, by name. Entry `loss` is the batch of all samples
            as `loss` takes it; mini-batches and observables use the other entries.
    """

    samples: int
    arrays: dict[str, Any]
    by_sample: bool = False
    """Whether batches are pytrees of arrays with a leading axis of samples, over which `loss` is a
    mean: a step may then take a few samples at a time."""
    trained_width: str = "all units"
    """Hidden units that are trained, for readers of the result file."""

    @property
    def items(self) -> int:
        """Number of items that a mini-batch chooses from; samples unless overridden."""
        return self.samples

    @abstractmethod
    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """Initial weights of all runs: a pytree of float64 arrays (init_scale, seed, ...)."""

    @abstractmethod
    def network(self, weights: Any) -> nnx.Module:
        """The network with the weights of one run."""

    @abstractmethod
    def loss(self, network: Any, batch: Any, per_run: Mapping[str, Array]) -> Array:
        """Loss of one run, averaged over the samples of a batch, before normalisation.

        Args:
            network: the network of the run.
            batch: entry `loss` of `arrays`, or a mini-batch.
            per_run: arrays of this run, see `per_run`.
        """

    def per_run(self, seeds: Sequence[int]) -> dict[str, np.ndarray]:
        """Arrays that differ between runs, (seed, ...); none unless overridden."""
        return {}

    def present(self, data: Mapping[str, Any], step: Int[Array, ""] | int) -> Mapping[str, Any]:
        """`arrays` on the device, as training and records at a step use them.

        Override it where tasks follow each other. The step is the number of the next gradient step.
        """
        return data

    def batch(self, data: Mapping[str, Any], numbers: Int[Array, " size"]) -> Any:
        """A mini-batch of the items with these numbers, from `arrays` on the device."""
        return data["x"][numbers], data["y"][numbers]

    def whole_loss(
        self, network: Any, data: Mapping[str, Any], per_run: Mapping[str, Array]
    ) -> Array:
        """The loss over all samples, before normalisation.

        Override it where all samples at once do not fit into memory.
        """
        return self.loss(network, data["loss"], per_run)
