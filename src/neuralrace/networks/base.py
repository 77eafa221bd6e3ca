"""What a network is: a configuration that says what it can be trained on, starts from and costs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from neuralrace.datasets.base import Dataset, Sizes
from neuralrace.extensions.model import ConfigModel
from neuralrace.networks.initialisers.base import Initialiser, Weights
from neuralrace.training.settings import Training

if TYPE_CHECKING:  # configurations are read without JAX
    from neuralrace.training.task import Task


@dataclass(frozen=True)
class Arithmetic:
    """What one run computes, about."""

    weights: float
    """Its weights."""
    whole: float
    """Multiply-adds of a forward pass over all samples, and those held out, for a record."""
    step: float
    """The same over the samples of a step."""


class Network(ConfigModel, ABC):
    """What is trained."""

    by_domain: ClassVar[bool] = False
    """Whether it routes input domains to output domains."""

    @property
    def gates_given(self) -> bool:
        """Whether it has a `wiring` on samples: its gates do not follow its weights."""
        return True

    @property
    def resolved(self) -> "Network":
        """The network; one with gates of its own making as the ordinary network that it is."""
        return self

    @property
    @abstractmethod
    def linear(self) -> bool:
        """Whether it is linear in what its gates let through."""

    @property
    def averaged(self) -> bool:
        """Whether it answers with the mean over pathways of fixed width: wider ones are others."""
        return False

    @abstractmethod
    def task(self, dataset: Dataset, law: Initialiser, training: Training) -> "Task":
        """The network on a dataset, as the trainer takes it.

        It imports JAX where it is called: configurations are read without.

        Args:
            dataset: what it is trained on.
            law: how initial weights are drawn.
            training: how it is trained.

        Raises:
            UserError: gates that do not fit the dataset, or missing files.
        """

    @abstractmethod
    def view(self, dataset: Dataset) -> Any:
        """The dataset as the network sees it: samples, gated samples (a `Wiring`) or domains.

        Raises:
            UserError: gates that do not fit the dataset, or missing files.
        """

    def check(self, dataset: Dataset, training: Training) -> None:
        """Refuses what it cannot be trained on.

        Raises:
            ValueError: the dataset, the loss or the batches do not fit.
        """
        if not training.batch.whole:
            raise ValueError(
                f"training.batch.name: {training.batch.name!r}: a "
                f"{type(self).__name__.lower()} network is trained on all samples; use full"
            )

    @abstractmethod
    def initial(
        self, law: Initialiser, seen: Any, scales: Sequence[float], seeds: Sequence[int]
    ) -> Weights:
        """Initial weights of every run, each (init_scale, seed, out, in), float64.

        Args:
            law: how to draw.
            seen: the dataset as `view` gives it.
            scales: init scales.
            seeds: run seeds.

        Returns:
            W_1 ... W_L of a layered network, by edge of the wiring of any other.

        Raises:
            UserError: the law does not exist for this network.
        """

    @abstractmethod
    def arithmetic(self, dataset: Dataset, sizes: Sizes, training: Training) -> Arithmetic:
        """What a run of it computes, from the specification; gates may load the dataset.

        Args:
            dataset: what it is trained on.
            sizes: of the dataset, which may take long to ask for.
            training: how it is trained.
        """

    def in_a_row(self, hidden: Sequence[int], sizes: Sizes, training: Training) -> Arithmetic:
        """The arithmetic of layers in a row, sample by sample."""
        samples, inputs, outputs = sizes
        each = layers_in_a_row(hidden, sizes)
        if self.linear and training.on_moments:
            rows = min(samples, inputs + outputs)
            return Arithmetic(each, rows * each, rows * each)
        batch = training.batch
        step = batch.samples(samples) * (each + batch.drawing * inputs)
        return Arithmetic(each, samples * each, step)


def layers_in_a_row(hidden: Sequence[int], sizes: Sizes) -> float:
    """Multiply-adds of one sample through layers in a row, and the weights of these."""
    widths = (sizes.inputs, *hidden, sizes.outputs)
    return float(sum(below * above for below, above in pairwise(widths)))
