"""Training of gated networks with parallel pathways."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import stop_gradient
from jaxtyping import Float

from neuralrace.networks.gated import Gated
from neuralrace.networks.gates.wiring import Wiring
from neuralrace.networks.initialisers.base import Initialiser
from neuralrace.networks.modules.gated import ParallelNetwork, side_by_side
from neuralrace.networks.tasks.samples import SampleTask, second_moments
from neuralrace.training.settings import Training


class ParallelTask(SampleTask):
    """Parallel gated pathways on samples: a linear network of the gated inputs."""

    spec: Gated
    examples: Wiring

    def __init__(
        self, network: Gated, examples: Wiring, initialiser: Initialiser, training: Training
    ):
        """See `SampleTask`."""
        super().__init__(network, examples, initialiser, training)
        self.arrays = self.batches(examples.gated_inputs) | self.test_arrays()

    def batches(self, x: Float[np.ndarray, "sample pathway_input"]) -> dict[str, Any]:
        """Arrays of `Task` for gated inputs of all pathways, concatenated."""
        y = self.data.y
        whole = second_moments(x, y) if self.training.on_moments else (x, y)
        return {"x": x, "y": y, "loss": whole}

    def test_inputs(self, examples: Wiring) -> tuple[Any, ...]:
        """See `SampleTask.test_inputs`."""
        return (examples.gated_inputs,)

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        return side_by_side(super().weights(scales, seeds), self.examples.architecture)

    def network(self, weights: Any) -> ParallelNetwork:
        """See `Task.network`."""
        return ParallelNetwork(weights, trained_readout=self.spec.readout == "trained")

    def loss(self, network: Any, batch: Any, per_run: Mapping[str, Array]) -> Array:
        """See `Task.loss`; with stages, its gradient is that of stagewise descent."""
        if self.spec.stages is None:
            return super().loss(network, batch, per_run)
        x, y = batch
        outputs = jnp.zeros_like(y)
        losses = []
        for stage in jnp.split(network.pathway_outputs(x), np.cumsum(self.spec.stages)[:-1]):
            outputs = stop_gradient(outputs) + jnp.sum(stage, axis=0)
            losses.append(jnp.mean(self.training.loss.per_sample(outputs, y)))
        *earlier, joint = losses
        # the value is the joint loss, and the gradient that of all losses
        for loss in earlier:
            joint += loss - stop_gradient(loss)
        return joint
