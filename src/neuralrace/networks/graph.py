"""Gated networks on any architecture graph."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.networks.base import Arithmetic, Network
from neuralrace.networks.gates import wiring
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.gates.wiring import Wiring
from neuralrace.networks.initial_weights import initial_edges
from neuralrace.networks.initialisers.base import Initialiser, Weights
from neuralrace.training.settings import Training

if TYPE_CHECKING:
    from neuralrace.training.task import Task


class Graph(Architecture, Network):
    """A gated network on any architecture graph, with gates written out.

    Its input and output nodes must fit the dataset.
    """

    name: Literal["graph"]
    gates: dict[str, tuple[float, ...]] = Field(default={})
    """Gates in [0, 1] by node `a` or edge `a->b`, one value per context of the dataset (per sample
    of a dataset without contexts). Nodes and edges that are not listed are always open."""

    @property
    def linear(self) -> bool:
        """See `Network.linear`."""
        return True

    def examples(self, dataset: Dataset) -> Wiring:
        """See `Network.examples`."""
        return self.wiring(dataset.load())

    def test_examples(self, examples: Wiring, test: Data) -> Wiring:
        """See `Network.test_examples`."""
        return wiring.on_test_samples(examples, test, self.wiring)

    def task(self, dataset: Dataset, initialiser: Initialiser, training: Training) -> "Task":
        """See `Network.task`."""
        from neuralrace.networks.tasks.graph import GraphTask

        return GraphTask(self, self.examples(dataset), initialiser, training)

    def wiring(self, data: Data) -> Wiring:
        """The graph with its gates on these samples.

        Raises:
            UserError: gates do not fit the graph or the dataset.
        """
        return wiring.explicit(self, self.gates, data)

    def initial(
        self,
        initialiser: Initialiser,
        examples: Wiring,
        scales: Sequence[float],
        seeds: Sequence[int],
    ) -> Weights:
        """See `Network.initial`."""
        return initial_edges(initialiser, self, lambda _: examples.effective, scales, seeds)

    def arithmetic(
        self, dataset: Dataset, sizes: Sizes, initialiser: Initialiser, training: Training
    ) -> Arithmetic:
        """See `Network.arithmetic`; hidden nodes count as a chain of layers."""
        return self.chain_arithmetic([self.nodes[name] for name in self.hidden], sizes, training)
