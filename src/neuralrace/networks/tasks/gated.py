"""Training of gated networks with parallel pathways."""

from collections.abc import Sequence
from typing import Any

import numpy as np
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
        self.arrays = self.batches(examples.gated_inputs)

    def batches(self, x: Float[np.ndarray, "sample pathway_input"]) -> dict[str, Any]:
        """Arrays of `Task` for gated inputs of all pathways, concatenated."""
        y = self.data.y
        whole = second_moments(x, y) if self.training.on_moments else (x, y)
        return {"x": x, "y": y, "loss": whole}

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        return side_by_side(super().weights(scales, seeds), self.examples.architecture)

    def network(self, weights: Any) -> ParallelNetwork:
        """See `Task.network`."""
        return ParallelNetwork(weights, trained_readout=self.spec.readout == "trained")
