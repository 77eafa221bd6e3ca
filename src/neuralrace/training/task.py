"""What the trainer sees of an ensemble: how its network is built and what its loss is."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Int


class Task(ABC):
    """An ensemble as the trainer sees it.

    Attributes:
        samples: how many samples the loss is over.
        arrays: what all runs share, as NumPy arrays; entry `loss` is what the full-batch loss is
            computed from, all other entries are for observables.
    """

    samples: int
    arrays: dict[str, Any]

    @property
    def items(self) -> int:
        """How many things a mini-batch chooses from."""
        return self.samples

    @abstractmethod
    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """Initial weights: a tree of arrays (init_scale, seed, ...)."""

    @abstractmethod
    def network(self, weights: Any) -> nnx.Module:
        """The network with the weights of one run."""

    @abstractmethod
    def loss(self, network: Any, batch: Any, own: Mapping[str, Array]) -> Array:
        """Loss of one run before its normalisation: averaged over samples, 1/2 for squares."""

    def own(self, seeds: Sequence[int]) -> dict[str, np.ndarray]:
        """Arrays that differ between runs, (seed, ...)."""
        return {}

    def batch(self, data: Mapping[str, Any], chosen: Int[Array, " size"]) -> Any:
        """A mini-batch as `loss` takes it, from `arrays` on the device."""
        return data["x"][chosen], data["y"][chosen]

    def whole_loss(self, network: Any, data: Mapping[str, Any], own: Mapping[str, Array]) -> Array:
        """The loss over all samples, before its normalisation."""
        return self.loss(network, data["loss"], own)
