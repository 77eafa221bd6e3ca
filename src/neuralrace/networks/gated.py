"""Gated pathways side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Union

from pydantic import Field

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.errors import UserError
from neuralrace.extensions.registry import choices
from neuralrace.networks.base import Arithmetic, Network, layers_in_a_row
from neuralrace.networks.gates import wiring
from neuralrace.networks.gates.base import SampleScheme
from neuralrace.networks.gates.wiring import Wiring
from neuralrace.networks.initial_weights import initial_edges
from neuralrace.networks.initialisers.base import Initialiser, Weights
from neuralrace.networks.layered import Layered
from neuralrace.training.settings import Training

if TYPE_CHECKING:
    from neuralrace.training.task import Task

SAMPLE_SCHEMES = choices("gates", SampleScheme)

Positive = Annotated[int, Field(gt=0)]


class Gated(Network):
    """Gated pathways side by side, each a chain of linear layers from the inputs to the outputs."""

    name: Literal["gated"]
    hidden: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """Units in each hidden layer of a pathway."""
    gates: Annotated[Union[SAMPLE_SCHEMES], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """On which samples each pathway is open."""
    widths: tuple[Positive, ...] | None = None
    """How many times `hidden` each pathway is wide, for pathways of unequal width; 1 each when
    absent."""
    readout: Literal["trained", "mean"] = "trained"
    """Whether the last layer of each pathway is trained, or stays the mean over the last hidden
    units of all pathways at any init scale."""

    @property
    def resolved(self) -> Network:
        """See `Network.resolved`."""
        if self.gates.learned:
            return Layered(
                name="layered", hidden=self.hidden, activation="relu", readout=self.readout
            )
        return self

    @property
    def linear(self) -> bool:
        """See `Network.linear`."""
        return not self.gates.learned

    @property
    def gates_given(self) -> bool:
        """See `Network.gates_given`."""
        return not self.gates.learned

    @property
    def averaged(self) -> bool:
        """See `Network.averaged`."""
        return self.readout == "mean"

    def task(self, dataset: Dataset, law: Initialiser, training: Training) -> "Task":
        """See `Network.task`."""
        from neuralrace.networks.tasks.gated import ParallelTask

        return ParallelTask(self, self.view(dataset), law, training)

    def view(self, dataset: Dataset) -> Wiring:
        """See `Network.view`."""
        return self.wiring(dataset.load())

    def wiring(self, data: Data) -> Wiring:
        """The pathways with their gates on these samples.

        Raises:
            UserError: a pathway that opens on no sample, a sample on which none is open, gates that
                do not fit the dataset or are of the network's own making, or as many widths as
                there are no pathways.
        """
        if self.gates.learned:
            raise UserError("network.gates: learned gates follow the weights: there is no wiring")
        gates = self.gates.gates(data)
        widths = self.widths or (1,) * len(gates)
        if len(widths) != len(gates):
            raise UserError(
                f"network.widths: has {len(widths)} entries; the gates make {len(gates)} pathways"
            )
        hidden = [tuple(width * units for units in self.hidden) for width in widths]
        # units that are averaged may all be closed, as ReLU units may: the answer is zero then
        covered = not self.averaged
        return wiring.parallel(hidden, gates, self.gates.sees(data), data, covered)

    def initial(
        self, law: Initialiser, seen: Wiring, scales: Sequence[float], seeds: Sequence[int]
    ) -> Weights:
        """See `Network.initial`."""
        graph, effective = seen.architecture, lambda _: seen.effective
        return initial_edges(law, graph, effective, scales, seeds, seen.sees, self.averaged)

    def arithmetic(self, dataset: Dataset, sizes: Sizes, training: Training) -> Arithmetic:
        """See `Network.arithmetic`."""
        pathways = getattr(self.gates, "pathways", 0) or self.gates.count(dataset)
        (samples, inputs, outputs), batch = sizes, training.batch
        weights = pathways * layers_in_a_row(self.hidden, sizes)
        # the maps of all pathways, then what these make of the samples
        maps = inputs * (weights - pathways * inputs * self.hidden[0])
        sample = float(pathways * inputs * outputs)
        rows = min(samples, inputs * pathways + outputs) if training.on_moments else samples
        seen = rows if batch.whole else batch.samples(samples)
        drawn = batch.samples(samples) * batch.drawing * inputs
        return Arithmetic(weights, maps + rows * sample, maps + seen * sample + drawn)
