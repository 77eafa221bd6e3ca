"""Training of gated networks on any architecture graph."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from neuralrace.networks.gates.wiring import Wiring
from neuralrace.networks.graph import Graph
from neuralrace.networks.initialisers.base import Initialiser
from neuralrace.networks.modules.graph import GatedNetwork
from neuralrace.networks.tasks.samples import SampleTask
from neuralrace.training.settings import Training


class GraphTask(SampleTask):
    """A gated network on samples, or on the effective data of its pathways."""

    spec: Graph
    examples: Wiring

    def __init__(
        self, network: Graph, examples: Wiring, initialiser: Initialiser, training: Training
    ):
        """See `SampleTask`."""
        super().__init__(network, examples, initialiser, training)
        samples = {"x": self.data.x, "y": self.data.y, "gates": dict(examples.gates)}
        self.arrays = {**samples, "loss": samples} | self.test_arrays()
        # effective correlations: a step costs the same for any number of samples
        if training.on_moments:
            self.by_sample = False
            effective = examples.effective
            self.keys = list(effective.sigma_xx)
            correlations = [effective.sigma_xx[key] for key in self.keys]
            y_power = np.asarray(effective.y_power)
            self.arrays["loss"] = (list(effective.sigma_yx), correlations, y_power)

    def test_inputs(self, examples: Wiring) -> tuple[Any, ...]:
        """See `SampleTask.test_inputs`."""
        return examples.data.x, dict(examples.gates)

    def network(self, weights: Any) -> GatedNetwork:
        """See `Task.network`."""
        return GatedNetwork(self.examples.architecture, weights)

    def loss(self, network: Any, batch: Any, per_run: Mapping[str, Array]) -> Array:
        """See `Task.loss`."""
        if not self.training.on_moments:
            outputs = network(batch["x"], batch["gates"])
            return jnp.mean(self.training.loss.per_sample(outputs, batch["y"]))
        sigma_yx, sigma_xx, y_power = batch
        maps = network.maps()
        loss = 0.5 * y_power
        for total, sigma in zip(maps, sigma_yx, strict=True):
            loss -= jnp.sum(total * sigma)
        for (j, p), sigma in zip(self.keys, sigma_xx, strict=True):
            loss += 0.5 * jnp.sum((maps[j] @ sigma) * maps[p])
        return loss
