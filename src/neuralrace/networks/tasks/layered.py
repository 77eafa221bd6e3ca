"""Fully connected networks on samples."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from neuralrace.datasets import Data
from neuralrace.networks.initialisers.base import Initialiser
from neuralrace.networks.layered import Layered
from neuralrace.networks.modules.layered import LayeredNetwork
from neuralrace.networks.tasks.samples import SampleTask, second_moments
from neuralrace.training.settings import Training


class LayeredTask(SampleTask):
    """A layered network on samples."""

    spec: Layered
    seen: Data

    def __init__(self, network: Layered, seen: Data, law: Initialiser, training: Training):
        """See `SampleTask`."""
        super().__init__(network, seen, law, training)
        data = self.data
        named = {"x": data.x, "y": data.y, "u": data.modes.u, "v": data.modes.v}
        on_moments = network.linear and training.on_moments
        compressed = second_moments(data.x, data.y) if on_moments else (data.x, data.y)
        self.arrays = {**named, "loss": compressed}

    @property
    def data(self) -> Data:
        """The samples."""
        return self.seen

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        return self.initial(scales, seeds)

    def network(self, weights: Any) -> LayeredNetwork:
        """See `Task.network`."""
        biases = [jnp.zeros(len(w), w.dtype) for w in weights] if self.spec.bias else None
        trained = self.spec.readout == "trained"
        return LayeredNetwork(weights, biases, self.spec.activation, trained_readout=trained)
