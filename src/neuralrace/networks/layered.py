"""Fully connected networks (multilayer perceptrons)."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.errors import UserError
from neuralrace.extensions.model import Positive, is_absent
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
    output: Literal["linear", "relu"] = Field(
        default="linear", exclude_if=lambda output: output == "linear"
    )
    """Activation of the output."""
    bias: bool = False
    """Whether layers have biases; they start at zero and are trained with the weights of their
    layer."""
    readout: Literal["trained", "fixed", "mean", "tied"] = "trained"
    """Whether the last layer is trained, fixed at its initial weights, fixed as the mean over
    hidden units at any init scale, or tied: the transpose of the first layer, with one hidden
    layer. A last layer that is not trained by itself has a bias of zero, unless `output_bias` is
    given."""
    output_bias: Literal["trained"] | float | None = Field(default=None, exclude_if=is_absent)
    """Bias of the output, for any `bias` and `readout`: `trained`, from zero, or the number at
    which it is fixed. When absent, the output has a bias if `bias` is true, and it is trained if
    the last layer is."""
    output_bias_rate: Annotated[float, Field(gt=0)] = Field(
        default=1.0, exclude_if=lambda rate: rate == 1
    )
    """Learning rate of a trained `output_bias` over that of all other parameters. Units that are
    averaged bear learning rates as large as their number; the output bias does not: gradient
    descent on half the squared error diverges where its own rate exceeds 2."""

    @field_validator("output_bias", mode="before")
    @classmethod
    def _word_or_number(cls, value: Any) -> Any:
        # Pydantic would report what is wrong for a word, and what for a number
        number = type(value) in (int, float) and math.isfinite(value)
        if not (number or value == "trained" or value is None):
            raise UserError("expected 'trained' or a finite number")
        return value

    @model_validator(mode="after")
    def _rate_of_trained_bias(self) -> "Layered":
        if self.output_bias_rate != 1 and self.output_bias != "trained":
            raise UserError(
                "is the rate of an output bias that is trained",
                key="output_bias_rate",
                value=self.output_bias_rate,
                remedy="add output_bias: trained, or leave it out",
            )
        return self

    @property
    def linear(self) -> bool:
        """See `Network.linear`."""
        activations = {self.activation, self.output}
        return activations == {"linear"} and not self.bias and not self.output_bias

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
        """See `Network.check`; only tied layers ask for samples of some sizes."""
        if self.readout != "tied":
            return
        _, inputs, outputs = dataset.sizes
        if len(self.hidden) != 1 or inputs != outputs:
            raise UserError(
                f"the last layer is the transpose of the first, and there are {len(self.hidden)} "
                f"hidden layers between {inputs} inputs and {outputs} outputs",
                key="network.readout",
                value=self.readout,
                remedy="give one hidden layer and as many outputs as inputs",
            )

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
        weights = initial_weights(initialiser, widths, examples.modes, scales, seeds, mean)
        if self.readout == "tied":
            weights[-1] = np.swapaxes(weights[0], -1, -2)
        return weights

    def arithmetic(
        self, dataset: Dataset, sizes: Sizes, initialiser: Initialiser, training: Training
    ) -> Arithmetic:
        """See `Network.arithmetic`."""
        return self.chain_arithmetic(self.hidden, sizes, training)
