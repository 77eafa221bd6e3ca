"""Any architecture graph."""

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
    """Any architecture graph, with gates written out; inputs and outputs must fit the dataset."""

    name: Literal["graph"]
    gates: dict[str, tuple[float, ...]] = Field(default={})
    """Gates in [0, 1] by node `a` or edge `a->b`, one value per context of the dataset (per sample
    where it has none); what is not listed is always open."""

    @property
    def linear(self) -> bool:
        """See `Network.linear`."""
        return True

    def task(self, dataset: Dataset, law: Initialiser, training: Training) -> "Task":
        """See `Network.task`."""
        from neuralrace.networks.tasks.graph import GraphTask

        return GraphTask(self, self.view(dataset), law, training)

    def view(self, dataset: Dataset) -> Wiring:
        """See `Network.view`."""
        return self.wiring(dataset.load())

    def wiring(self, data: Data) -> Wiring:
        """The graph with its gates on these samples.

        Raises:
            UserError: gates that do not fit the graph or the dataset.
        """
        return wiring.explicit(self, self.gates, data)

    def initial(
        self, law: Initialiser, seen: Wiring, scales: Sequence[float], seeds: Sequence[int]
    ) -> Weights:
        """See `Network.initial`."""
        return initial_edges(law, self, lambda _: seen.effective, scales, seeds)

    def arithmetic(self, dataset: Dataset, sizes: Sizes, training: Training) -> Arithmetic:
        """See `Network.arithmetic`; hidden nodes count as layers in a row."""
        return self.in_a_row([self.nodes[name] for name in self.hidden], sizes, training)
