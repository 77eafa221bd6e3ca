"""Gradient descent as it is configured: the loss, the samples of a step, and its size."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, Union

import numpy as np
from pydantic import Field, model_validator

from neuralrace.datasets.base import Dataset
from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel
from neuralrace.extensions.registry import OBSERVABLES, RegisteredName, choices
from neuralrace.training.optimisers.base import Optimiser
from neuralrace.training.optimisers.sgd import Sgd

OPTIMISERS = choices("optimisers", Optimiser)

Positive = Annotated[int, Field(gt=0)]
Pick = Callable[[Any], Any]
Sampler = Callable[[Any, int], Any]


class Loss(ConfigModel):
    """What is minimised, with its normalisation."""

    name: Literal["squared_error", "cross_entropy"] = "squared_error"
    """Squared error, or cross-entropy of the softmax of the outputs; of the logistic function where
    there is one output."""
    normalisation: Literal["half_mean", "half_sum", "mean", "sum"] = "half_mean"
    """Over samples: 1/2 mean, 1/2 sum, mean or sum; cross-entropy knows mean and sum."""

    @model_validator(mode="after")
    def _no_half_cross_entropy(self) -> "Loss":
        if not self.squared and self.normalisation.startswith("half"):
            raise ValueError(
                f"normalisation {self.normalisation!r} is for squared_error; "
                "cross_entropy has mean or sum"
            )
        return self

    @property
    def squared(self) -> bool:
        """Whether it is squared error, which sees samples through their correlations alone."""
        return self.name == "squared_error"

    def factor(self, samples: int) -> float:
        """This loss over its per-sample reference, 1/2 |y - yhat|^2 or -log p, averaged."""
        per_sample = 0.5 if self.squared else 1.0
        factors = {"half_mean": 0.5, "half_sum": 0.5 * samples, "mean": 1.0, "sum": float(samples)}
        return factors[self.normalisation] / per_sample


class Batch(ConfigModel, ABC):
    """Which samples a step sees."""

    whole: ClassVar[bool] = False
    """Whether all of them, the same in all runs."""
    drawing: ClassVar[int] = 0
    """Multiply-adds that each input of a sample takes to be drawn."""

    @abstractmethod
    def samples(self, of: int) -> int:
        """How many a step sees of a dataset of so many."""

    def sampler(self, dataset: Dataset, items: int) -> Sampler | None:
        """What draws samples anew, (key, count) -> (x, y); None where steps see the dataset's.

        Args:
            dataset: what is trained on.
            items: how many a batch chooses from.

        Raises:
            UserError: the dataset has too few samples, or does not draw new ones.
        """
        return None

    def order(self, items: int) -> np.ndarray | None:
        """The order in which a run sees the items at first; None where it chooses from none."""
        return None

    def draw(self, order: Any, key: Any, step: Any, pick: Pick, sample: Sampler) -> tuple[Any, Any]:
        """The samples of a step of one run, inside the compiled program; where not `whole`.

        Args:
            order: of the items, after the step before.
            key: random key of the run.
            step: number of the step, the same for all runs.
            pick: samples of the dataset by the numbers of their items.
            sample: as `sampler` gives it.

        Returns:
            The order after this step, and the samples as the task's loss takes them.
        """
        raise NotImplementedError


class FullBatch(Batch):
    """Every step sees every sample."""

    whole: ClassVar[bool] = True
    name: Literal["full"] = "full"

    def samples(self, of: int) -> int:
        """See `Batch.samples`."""
        return of


class MiniBatch(Batch):
    """Every step sees the next part of a seeded shuffle, anew in each epoch."""

    name: Literal["mini"]
    size: Positive
    """Samples a step; what is left over at the end of an epoch is skipped."""

    def samples(self, of: int) -> int:
        """See `Batch.samples`."""
        return self.size

    def sampler(self, dataset: Dataset, items: int) -> None:
        """See `Batch.sampler`."""
        if self.size > items:
            raise UserError(
                f"training.batch.size: {self.size}: the dataset has {items} samples; use at most "
                "that"
            )

    def order(self, items: int) -> np.ndarray:
        """See `Batch.order`."""
        return np.arange(items)

    def draw(self, order: Any, key: Any, step: Any, pick: Pick, sample: Sampler) -> tuple[Any, Any]:
        """See `Batch.draw`."""
        from jax import lax, random

        per_epoch = len(order) // self.size
        # all runs are at one step, so this stays a branch: one shuffle an epoch, not one a step
        order = lax.cond(
            step % per_epoch == 0,
            lambda: random.permutation(random.fold_in(key, step // per_epoch), len(order)),
            lambda: order,
        )
        first = (step % per_epoch) * self.size
        return order, pick(lax.dynamic_slice_in_dim(order, first, self.size))


class FreshBatch(Batch):
    """Every step samples the dataset's distribution anew, the same at every init scale."""

    drawing: ClassVar[int] = 20
    name: Literal["fresh"]
    size: Positive
    """Samples a step."""

    def samples(self, of: int) -> int:
        """See `Batch.samples`."""
        return self.size

    def sampler(self, dataset: Dataset, items: int) -> Sampler:
        """See `Batch.sampler`."""
        sampler = dataset.sampler()
        if sampler is None:
            raise UserError(
                f"training.batch.name: 'fresh': dataset {type(dataset).__name__} is a fixed "
                "sample; use full or mini"
            )
        return sampler

    def draw(self, order: Any, key: Any, step: Any, pick: Pick, sample: Sampler) -> tuple[Any, Any]:
        """See `Batch.draw`."""
        from jax import random

        return order, sample(random.fold_in(key, step), self.size)


class Training(ConfigModel):
    """Gradient descent."""

    learning_rate: Annotated[float, Field(gt=0)]
    """Step size of gradient descent on the loss as normalised."""
    steps: Annotated[int, Field(gt=0, lt=2**62)]
    """Gradient steps; with batch `full`, one step is one epoch."""
    optimiser: Annotated[Union[OPTIMISERS], Field(discriminator="name")] = Sgd()  # pyright: ignore  # noqa: UP007
    """How gradients become steps."""
    loss: Loss = Loss()
    """Loss and its normalisation."""
    batch: Annotated[FullBatch | MiniBatch | FreshBatch, Field(discriminator="name")] = FullBatch()
    """Which samples a step sees."""

    @property
    def on_moments(self) -> bool:
        """Whether a linear network sees samples through their second moments alone."""
        return self.loss.squared and self.batch.whole

    def flow_step(self, samples: int) -> float:
        """Gradient-flow time of one step, in units of tau.

        Flow time is that of dW/dt = -grad of the loss averaged over samples, with 1/2 for squared
        error; the theory knows no other clock. Momentum lengthens a step by 1/(1 - momentum). An
        optimiser that does not follow gradient flow has a clock of its own, the learning rate:
        what it is called here is nominal, and theory has nothing to say of it.
        """
        time = self.optimiser.flow_time(self.learning_rate * self.loss.factor(samples))
        return self.learning_rate if time is None else time


class Record(ConfigModel):
    """What is observed during training, and how often."""

    every: Positive
    """Steps between two entries of the time axis."""
    snapshots: Positive = 1
    """Intervals between snapshots of large observables (weights, outputs)."""
    observables: tuple[Annotated[str, RegisteredName(OBSERVABLES)], ...] = ()
    """What is recorded beside the loss."""
