"""Batches: the samples of each gradient step."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np

from neuralrace.datasets.base import Dataset
from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel, Positive

Pick = Callable[[Any], Any]
Sampler = Callable[[Any, int], Any]


class Batch(ConfigModel, ABC):
    """The samples of each gradient step.

    `order` and `draw` say how a batch is made inside the compiled program; a batch that is `whole`
    needs neither.
    """

    whole: ClassVar[bool] = False
    """Whether every step uses all samples, the same in all runs."""
    draw_cost: ClassVar[int] = 0
    """Multiply-adds to draw one input of a sample."""

    @abstractmethod
    def samples(self, available: int) -> int:
        """Number of samples in a step, for a dataset of this many."""

    def sampler(self, dataset: Dataset, items: int) -> Sampler | None:
        """A function (key, count) -> (x, y) that draws new samples; None for those of the dataset.

        Args:
            dataset: training data.
            items: how many items a batch can choose from, see `Task.items`.

        Raises:
            UserError: the dataset has too few samples, or cannot draw new ones.
        """
        return None

    def steps_per_epoch(self, items: int) -> int | None:
        """Steps until all items have been used once; None for batches of new samples."""
        return None

    def order(self, items: int) -> np.ndarray | None:
        """The initial order of the items, which `draw` shuffles; None for batches without one."""
        return None

    def draw(self, order: Any, key: Any, step: Any, pick: Pick, sample: Sampler) -> tuple[Any, Any]:
        """The samples of one step of one run; called inside the compiled program.

        Args:
            order: order of the items after the previous step.
            key: random key of the run.
            step: number of the step, the same for all runs.
            pick: returns samples of the dataset by the numbers of their items.
            sample: the result of `sampler`.

        Returns:
            The order after this step, and the samples in the form that the task's loss takes.
        """
        raise NotImplementedError


class FullBatch(Batch):
    """Every step uses all samples."""

    whole: ClassVar[bool] = True
    name: Literal["full"] = "full"

    def samples(self, available: int) -> int:
        """See `Batch.samples`."""
        return available

    def steps_per_epoch(self, items: int) -> int:
        """See `Batch.steps_per_epoch`."""
        return 1


class MiniBatch(Batch):
    """Every step uses the next part of the shuffled samples; they are shuffled in each epoch."""

    name: Literal["mini"]
    size: Positive
    """Samples in a step; a smaller rest at the end of an epoch is skipped."""

    def samples(self, available: int) -> int:
        """See `Batch.samples`."""
        return self.size

    def sampler(self, dataset: Dataset, items: int) -> None:
        """See `Batch.sampler`."""
        if self.size > items:
            raise UserError(
                f"the dataset has {items} samples",
                key="training.batch.size",
                value=self.size,
                remedy="use at most that",
            )

    def steps_per_epoch(self, items: int) -> int:
        """See `Batch.steps_per_epoch`."""
        return items // self.size

    def order(self, items: int) -> np.ndarray:
        """See `Batch.order`."""
        return np.arange(items)

    def draw(self, order: Any, key: Any, step: Any, pick: Pick, sample: Sampler) -> tuple[Any, Any]:
        """See `Batch.draw`."""
        from jax import lax, random

        per_epoch = self.steps_per_epoch(len(order))
        # One shuffle an epoch, not one a step: all runs share the step number, so `vmap` leaves the
        # condition unbatched and `cond` a branch. A batched one would become `select`, which
        # computes both sides.
        order = lax.cond(
            step % per_epoch == 0,
            lambda: random.permutation(random.fold_in(key, step // per_epoch), len(order)),
            lambda: order,
        )
        first = (step % per_epoch) * self.size
        return order, pick(lax.dynamic_slice_in_dim(order, first, self.size))


class FreshBatch(Batch):
    """Every step draws new samples from the distribution of the dataset.

    Runs of one seed draw the same samples at every init scale.
    """

    draw_cost: ClassVar[int] = 20
    name: Literal["fresh"]
    size: Positive
    """Samples in a step."""

    def samples(self, available: int) -> int:
        """See `Batch.samples`."""
        return self.size

    def sampler(self, dataset: Dataset, items: int) -> Sampler:
        """See `Batch.sampler`."""
        sampler = dataset.sampler()
        if sampler is None:
            raise UserError(
                f"dataset {type(dataset).__name__} is a fixed sample",
                key="training.batch.name",
                value=self.name,
                remedy="use full or mini",
            )
        return sampler

    def draw(self, order: Any, key: Any, step: Any, pick: Pick, sample: Sampler) -> tuple[Any, Any]:
        """See `Batch.draw`."""
        from jax import random

        return order, sample(random.fold_in(key, step), self.size)
