"""Fully connected networks (multilayer perceptrons)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.extensions.model import Positive
from neuralrace.networks.base import Arithmetic, Network
from neuralrace.networks.initial_weights import initial_weights
from neuralrace.networks.initialisers.base import Initialiser, Weights
from neuralrace.training.settings import Training

if TYPE_CHECKING:
    from neuralrace.training.task import Task

Activation = Literal["linear", "relu", "erf", "sigmoid", "tanh"]


class Layered(Network):
    """A fully connected network; input and output widths come from the dataset."""

    name: Literal["layered"]
    hidden: tuple[Positive, ...]
    """Units in each hidden layer; empty for a single layer of weights."""
    activation: Activation = "linear"
    """Activation of the hidden layers."""
    bias: bool = False
    """Whether layers have biases; they start at zero."""
    readout: Literal["trained", "fixed", "mean"] = "trained"
    """Whether the last layer is trained, fixed at its initial weights, or fixed as the mean over
    hidden units at any init scale; a fixed last layer has a bias of zero."""

    @property
    def linear(self) -> bool:
        """See `Network.linear`."""
        return self.activation == "linear" and not self.bias

    @property
    def has_fixed_gates(self) -> bool:
        """See `Network.has_fixed_gates`; ReLU units are gates that follow the weights."""
        return False

    def examples(self, dataset: Dataset) -> Data:
        """See `Network.examples`."""
        return dataset.load()

    def test_examples(self, examples: Data, test: Data) -> Data:
        """See `Network.test_examples`."""
        return test

    def task(self, dataset: Dataset, initialiser: Initialiser, training: Training) -> "Task":
        """See `Network.task`."""
        from neuralrace.networks.tasks.layered import LayeredTask

        return LayeredTask(self, self.examples(dataset), initialiser, training)

    def check(self, dataset: Dataset, training: Training) -> None:
        """See `Network.check`; it can be trained on any samples."""

    def initial(
        self,
        initialiser: Initialiser,
        examples: Data,
        scales: Sequence[float],
        seeds: Sequence[int],
    ) -> Weights:
        """See `Network.initial`."""
        widths = (examples.x.shape[1], *self.hidden, examples.y.shape[1])
        mean = self.readout == "mean"
        return initial_weights(initialiser, widths, examples.modes, scales, seeds, mean)

    def arithmetic(
        self, dataset: Dataset, sizes: Sizes, initialiser: Initialiser, training: Training
    ) -> Arithmetic:
        """See `Network.arithmetic`."""
        return self.chain_arithmetic(self.hidden, sizes, training)
