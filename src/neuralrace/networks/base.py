"""Base class of networks: training data, initial weights and computational cost."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel
from neuralrace.networks.initialisers.base import Initialiser, Weights
from neuralrace.training.settings import Training

if TYPE_CHECKING:  # configurations are read without JAX
    from neuralrace.training.task import Task


@dataclass(frozen=True)
class Arithmetic:
    """Approximate computational cost of one run."""

    weights: float
    """Number of weights."""
    whole: float
    """Multiply-adds of a forward pass over all samples, and held-out ones, for a record."""
    step: float
    """Multiply-adds of a forward pass over the samples of a step."""
    changed: float = 1.0
    """Share of the numbers in these weights that a step changes."""


class Network(ConfigModel, ABC):
    """Configuration of a network.

    A new network is a subclass with a `name: Literal[...]` in a module of `neuralrace.networks`. It
    implements `linear`, `examples`, `initial`, `arithmetic` and `task`. Its Flax module is in
    `modules` and its task in `tasks`.
    """

    by_domain: ClassVar[bool] = False
    """Whether it routes input domains to output domains."""

    @property
    def has_fixed_gates(self) -> bool:
        """Whether its gates do not depend on its weights, so that it has a `wiring` on samples."""
        return True

    @property
    def resolved(self) -> "Network":
        """The network; one with learned gates as the equivalent ReLU network."""
        return self

    @property
    @abstractmethod
    def linear(self) -> bool:
        """Whether outputs are linear in the gated inputs."""

    @property
    def averages_units(self) -> bool:
        """Whether outputs are the mean over pathways; other widths make another network then."""
        return False

    @abstractmethod
    def examples(self, dataset: Dataset) -> Any:
        """The dataset in the form that the network is trained on.

        Returns:
            Samples (`Data`), samples with the gates of each (`Wiring`), or `Domains`.

        Raises:
            UserError: gates do not fit the dataset, or files are missing.
        """

    def test_examples(self, examples: Any, test: Data) -> Any:
        """Test samples in the form that `examples` has; networks of domains have none.

        Raises:
            UserError: gates are not known on them.
        """
        return examples

    @abstractmethod
    def task(self, dataset: Dataset, initialiser: Initialiser, training: Training) -> "Task":
        """The network on a dataset, for the trainer.

        Import JAX inside this method: configurations are read without it.

        Args:
            dataset: training data.
            initialiser: draws the initial weights.
            training: loss, batches and optimiser.

        Raises:
            UserError: gates do not fit the dataset, or files are missing.
        """

    def check(self, dataset: Dataset, training: Training) -> None:
        """Refuses combinations that the network cannot be trained on.

        Raises:
            UserError: the dataset, the loss or the batches do not fit.
        """
        if not training.batch.whole:
            raise UserError(
                f"a {type(self).__name__.lower()} network is trained on all samples",
                key="training.batch.name",
                value=training.batch.name,
                remedy="use full",
            )

    @abstractmethod
    def initial(
        self,
        initialiser: Initialiser,
        examples: Any,
        scales: Sequence[float],
        seeds: Sequence[int],
    ) -> Weights:
        """Initial weights of all runs, each (init_scale, seed, out, in), float64.

        Args:
            initialiser: draws them.
            examples: result of `examples`.
            scales: init scales.
            seeds: run seeds.

        Returns:
            W_1 ... W_L of a layered network; otherwise one array for each edge of the wiring.

        Raises:
            UserError: the initialiser does not exist for this network.
        """

    @abstractmethod
    def arithmetic(
        self, dataset: Dataset, sizes: Sizes, initialiser: Initialiser, training: Training
    ) -> Arithmetic:
        """Cost of a run, from the specification; gates may load the dataset.

        Args:
            dataset: training data.
            sizes: sizes of the dataset, which may be slow to compute.
            initialiser: draws the initial weights.
            training: loss, batches and optimiser.
        """

    def chain_arithmetic(
        self, hidden: Sequence[int], sizes: Sizes, training: Training
    ) -> Arithmetic:
        """Cost of a chain of layers that is trained sample by sample."""
        samples, inputs, outputs = sizes
        weights = chain_weights(hidden, sizes)
        if self.linear and training.on_moments:
            rows = min(samples, inputs + outputs)
            return Arithmetic(weights, rows * weights, rows * weights)
        batch = training.batch
        step = batch.samples(samples) * (weights + batch.draw_cost * inputs)
        return Arithmetic(weights, samples * weights, step)


def chain_weights(hidden: Sequence[int], sizes: Sizes) -> float:
    """Weights of a chain of layers: also its multiply-adds for one sample."""
    widths = (sizes.inputs, *hidden, sizes.outputs)
    return float(sum(below * above for below, above in pairwise(widths)))
