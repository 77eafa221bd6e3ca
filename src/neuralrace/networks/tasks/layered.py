"""Training of fully connected networks."""

from typing import Any

import jax.numpy as jnp

from neuralrace.datasets import Data
from neuralrace.networks.initialisers.base import Initialiser
from neuralrace.networks.layered import Layered
from neuralrace.networks.modules.layered import LayeredNetwork
from neuralrace.networks.tasks.samples import SampleTask, second_moments
from neuralrace.training.settings import Training


class LayeredTask(SampleTask):
    """A fully connected network on samples."""

    spec: Layered
    examples: Data

    def __init__(
        self, network: Layered, examples: Data, initialiser: Initialiser, training: Training
    ):
        """See `SampleTask`."""
        super().__init__(network, examples, initialiser, training)
        x, y, modes = examples.x, examples.y, examples.modes
        on_moments = network.linear and training.on_moments
        whole = second_moments(x, y) if on_moments else (x, y)
        self.arrays = {"x": x, "y": y, "u": modes.u, "v": modes.v, "loss": whole}
        self.arrays |= self.test_arrays()

    @property
    def data(self) -> Data:
        """The samples."""
        return self.examples

    def network(self, weights: Any) -> LayeredNetwork:
        """See `Task.network`."""
        spec = self.spec
        trained, output = spec.readout == "trained", spec.output_bias
        biases = rates = None
        if spec.bias or output is not None:
            biases = [jnp.zeros(len(w), w.dtype) for w in weights]
            rates = [float(spec.bias)] * len(weights)
            if output == "trained":
                rates[-1] = spec.output_bias_rate
            elif output is None:
                rates[-1] = float(trained)
            else:
                biases[-1], rates[-1] = biases[-1] + output, 0.0
        tied = spec.readout == "tied"
        return LayeredNetwork(weights, biases, spec.activation, trained, rates, spec.output, tied)
