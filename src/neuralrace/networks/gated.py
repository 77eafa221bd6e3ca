"""Gated linear networks with parallel pathways."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Union

from pydantic import Field, model_validator

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.errors import UserError
from neuralrace.extensions.model import Positive
from neuralrace.extensions.registry import choices
from neuralrace.networks.base import Arithmetic, Network, chain_weights
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


class Gated(Network):
    """Parallel gated pathways, each a chain of linear layers from the inputs to the outputs."""

    name: Literal["gated"]
    hidden: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """Units in each hidden layer of a pathway."""
    gates: Annotated[Union[SAMPLE_SCHEMES], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Samples on which each pathway is open."""
    widths: tuple[Positive, ...] | None = None
    """Factors on `hidden`, one for each pathway, for pathways of unequal width; 1 when absent."""
    readout: Literal["trained", "mean"] = "trained"
    """Whether the last layer of each pathway is trained, or fixed as the mean over the last hidden
    units of all pathways at any init scale."""
    stages: Annotated[tuple[Positive, ...], Field(min_length=2)] | None = None
    """Stagewise descent: numbers of pathways in each stage, in the order of the gates, such as
    [1, 3]. The gradient of a stage is that of the loss without later stages, with earlier ones held
    constant: it descends on the residual that these leave. All pathways descend on the joint
    residual when absent."""

    @model_validator(mode="after")
    def _has_stages(self) -> "Gated":
        for key, value, possible in (
            ("gates.name", self.gates.name, not self.gates.learned),
            ("readout", self.readout, self.readout == "trained"),
        ):
            if self.stages and not possible:
                raise UserError(
                    "has no stagewise descent, as its units are one network",
                    key=key,
                    value=value,
                    remedy="leave stages out",
                )
        return self

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
    def has_fixed_gates(self) -> bool:
        """See `Network.has_fixed_gates`."""
        return not self.gates.learned

    @property
    def averages_units(self) -> bool:
        """See `Network.averages_units`."""
        return self.readout == "mean"

    def examples(self, dataset: Dataset) -> Wiring:
        """See `Network.examples`."""
        return self.wiring(dataset.load())

    def test_examples(self, examples: Wiring, test: Data) -> Wiring:
        """See `Network.test_examples`."""
        return wiring.on_test_samples(examples, test, self.wiring)

    def task(self, dataset: Dataset, initialiser: Initialiser, training: Training) -> "Task":
        """See `Network.task`."""
        from neuralrace.networks.tasks.gated import ParallelTask

        return ParallelTask(self, self.examples(dataset), initialiser, training)

    def wiring(self, data: Data) -> Wiring:
        """The pathways with their gates on these samples.

        Raises:
            UserError: a pathway is open on no sample, or no pathway is open on a sample; gates do
                not fit the dataset, or are learned; `widths` does not have one entry per pathway;
                `stages` do not sum to the number of pathways.
        """
        if self.gates.learned:
            raise UserError(
                "learned gates follow the weights: there is no wiring",
                key="network.gates",
                remedy="use other gates",
            )
        gates = self.gates.gates(data)
        widths = self.widths or (1,) * len(gates)
        if len(widths) != len(gates):
            raise UserError(
                f"has {len(widths)} entries, and the gates make {len(gates)} pathways",
                key="network.widths",
                remedy="give one entry for each",
            )
        if self.stages and sum(self.stages) != len(gates):
            raise UserError(
                f"have {sum(self.stages)} pathways, and the gates make {len(gates)}",
                key="network.stages",
                value=self.stages,
                remedy="put every pathway into one stage",
            )
        hidden = [tuple(width * units for units in self.hidden) for width in widths]
        # averaged units may all be closed, as ReLU units may: the output is zero then
        covered = not self.averages_units
        visible = self.gates.visible_inputs(data)
        return wiring.parallel(hidden, gates, visible, data, covered)

    def initial(
        self,
        initialiser: Initialiser,
        examples: Wiring,
        scales: Sequence[float],
        seeds: Sequence[int],
    ) -> Weights:
        """See `Network.initial`."""
        return initial_edges(
            initialiser,
            examples.architecture,
            lambda _: examples.effective,
            scales,
            seeds,
            examples.visible_inputs,
            self.averages_units,
        )

    def arithmetic(
        self, dataset: Dataset, sizes: Sizes, initialiser: Initialiser, training: Training
    ) -> Arithmetic:
        """See `Network.arithmetic`."""
        pathways = getattr(self.gates, "pathways", 0) or self.gates.count(dataset)
        (samples, inputs, outputs), batch = sizes, training.batch
        weights = pathways * chain_weights(self.hidden, sizes)
        # the maps of all pathways, then their products with the samples
        maps = inputs * (weights - pathways * inputs * self.hidden[0])
        sample = float(pathways * inputs * outputs)
        rows = min(samples, inputs * pathways + outputs) if training.on_moments else samples
        in_step = rows if batch.whole else batch.samples(samples)
        drawn = batch.samples(samples) * batch.draw_cost * inputs
        return Arithmetic(weights, maps + rows * sample, maps + in_step * sample + drawn)
