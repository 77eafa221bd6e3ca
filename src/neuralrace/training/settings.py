"""Configuration of training and of what it records."""

from typing import Annotated, Union

from pydantic import Field

from neuralrace.extensions.model import ConfigModel, Positive
from neuralrace.extensions.registry import OBSERVABLES, RegisteredName, choices
from neuralrace.training.batches import FreshBatch, FullBatch, MiniBatch
from neuralrace.training.loss import Loss
from neuralrace.training.optimisers.base import Optimiser
from neuralrace.training.optimisers.sgd import Sgd

OPTIMISERS = choices("optimisers", Optimiser)


class Training(ConfigModel):
    """Gradient descent."""

    learning_rate: Annotated[float, Field(gt=0)]
    """Step size of gradient descent on the normalised loss."""
    steps: Annotated[int, Field(gt=0, lt=2**62)]
    """Gradient steps; with batch `full`, one step is one epoch."""
    optimiser: Annotated[Union[OPTIMISERS], Field(discriminator="name")] = Sgd()  # pyright: ignore  # noqa: UP007
    """How gradients become steps."""
    loss: Loss = Loss()
    """Loss and its normalisation."""
    batch: Annotated[FullBatch | MiniBatch | FreshBatch, Field(discriminator="name")] = FullBatch()
    """Samples of each step."""

    @property
    def on_moments(self) -> bool:
        """Whether a linear network depends on samples through their second moments alone."""
        return self.loss.squared and self.batch.whole

    def flow_step(self, samples: int) -> float:
        """Gradient-flow time of one step, in units of tau.

        Flow time is the time of dW/dt = -grad of the loss averaged over samples, with 1/2 for
        squared error: the only clock of the theory. Momentum lengthens a step by 1/(1 - momentum).
        An optimiser that does not follow gradient flow has no flow time; its nominal clock is the
        learning rate, and no theory uses it.
        """
        time = self.optimiser.flow_time(self.learning_rate * self.loss.factor(samples))
        return self.learning_rate if time is None else time


class Record(ConfigModel):
    """Variables that training records, and how often."""

    every: Positive
    """Steps between two entries of the time axis."""
    snapshots: Positive = 1
    """Intervals between snapshots of large observables (weights, outputs)."""
    observables: tuple[Annotated[str, RegisteredName(OBSERVABLES)], ...] = ()
    """Observables that are recorded in addition to the loss."""
