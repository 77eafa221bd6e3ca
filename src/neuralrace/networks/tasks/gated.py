"""Gated pathways side by side on samples."""

from collections.abc import Sequence
from typing import Any

from neuralrace.networks.gated import Gated
from neuralrace.networks.gates.wiring import Wiring
from neuralrace.networks.initialisers.base import Initialiser
from neuralrace.networks.modules.gated import ParallelNetwork, side_by_side
from neuralrace.networks.tasks.samples import SampleTask, second_moments
from neuralrace.training.settings import Training


class ParallelTask(SampleTask):
    """Gated pathways side by side, which are a linear network of their gated inputs."""

    spec: Gated
    seen: Wiring

    def __init__(self, network: Gated, seen: Wiring, law: Initialiser, training: Training):
        """See `SampleTask`."""
        super().__init__(network, seen, law, training)
        gated, y = self.seen.gated_inputs, self.data.y
        compressed = second_moments(gated, y) if training.on_moments else (gated, y)
        self.arrays = {"x": gated, "y": y, "loss": compressed}

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        return side_by_side(self.initial(scales, seeds), self.seen.architecture)

    def network(self, weights: Any) -> ParallelNetwork:
        """See `Task.network`."""
        return ParallelNetwork(weights, trained_readout=self.spec.readout == "trained")
