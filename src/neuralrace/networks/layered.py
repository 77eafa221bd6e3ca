"""Layers in a row."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.networks.base import Arithmetic, Network
from neuralrace.networks.initial_weights import initial_weights
from neuralrace.networks.initialisers.base import Initialiser, Weights
from neuralrace.training.settings import Training

if TYPE_CHECKING:
    from neuralrace.training.task import Task

Activation = Literal["linear", "relu", "erf", "sigmoid", "tanh"]


class Layered(Network):
    """Layers in a row; input and output widths come from the dataset."""

    name: Literal["layered"]
    hidden: tuple[Annotated[int, Field(gt=0)], ...]
    """Units in each hidden layer; empty for a single layer of weights."""
    activation: Activation = "linear"
    """Activation of the hidden layers."""
    bias: bool = False
    """Whether layers have biases; they start at zero."""
    readout: Literal["trained", "fixed", "mean"] = "trained"
    """Whether the last layer is trained, stays as drawn, or stays the mean over hidden units at any
    init scale; a last layer that stays keeps a bias of zero."""

    @property
    def linear(self) -> bool:
        """See `Network.linear`."""
        return self.activation == "linear" and not self.bias

    @property
    def gates_given(self) -> bool:
        """See `Network.gates_given`: its units are their own gates."""
        return False

    def task(self, dataset: Dataset, law: Initialiser, training: Training) -> "Task":
        """See `Network.task`."""
        from neuralrace.networks.tasks.layered import LayeredTask

        return LayeredTask(self, self.view(dataset), law, training)

    def view(self, dataset: Dataset) -> Data:
        """See `Network.view`."""
        return dataset.load()

    def check(self, dataset: Dataset, training: Training) -> None:
        """See `Network.check`: it is trained on any samples."""

    def initial(
        self, law: Initialiser, seen: Data, scales: Sequence[float], seeds: Sequence[int]
    ) -> Weights:
        """See `Network.initial`."""
        widths = (seen.x.shape[1], *self.hidden, seen.y.shape[1])
        mean = self.readout == "mean"
        return initial_weights(law, widths, seen.modes, scales, seeds, mean)

    def arithmetic(self, dataset: Dataset, sizes: Sizes, training: Training) -> Arithmetic:
        """See `Network.arithmetic`."""
        return self.in_a_row(self.hidden, sizes, training)
