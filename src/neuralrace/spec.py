"""The one definition of an experiment: what can be configured, its types, defaults and meaning.

A `Cell` is one point of an experiment's sweep: a `Run` (what is trained) and what is computed about
it. Init scales and seeds are dimensions inside a run. `neuralrace.plan` reads cells from `config/`.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union

import numpy as np
from pydantic import Field, model_validator

from neuralrace.base import Strict
from neuralrace.datasets.base import Data, Dataset, DomainDataset, Domains
from neuralrace.datasets.image_domains import ImageDomainDataset
from neuralrace.errors import UserError
from neuralrace.gates import wiring
from neuralrace.gates.architecture import Architecture
from neuralrace.gates.base import DomainScheme, Family, Pairs, SampleScheme
from neuralrace.gates.effective import EffectiveData
from neuralrace.gates.wiring import Wiring
from neuralrace.initialisation.base import Law
from neuralrace.needs import unmet
from neuralrace.optimisers.base import Optimiser
from neuralrace.optimisers.sgd import Sgd
from neuralrace.registry import METRICS, OBSERVABLES, SOLUTIONS, Known, choices

DATASETS = choices("datasets", Dataset)
SAMPLE_SCHEMES = choices("gates", SampleScheme)
DOMAIN_SCHEMES = choices("gates", DomainScheme)
PAIRS = choices("gates", Pairs)
LAWS = choices("initialisation", Law)

Positive = Annotated[int, Field(gt=0)]
OPTIMISERS = choices("optimisers", Optimiser)

Activation = Literal["linear", "relu", "erf", "sigmoid", "tanh"]


class Layered(Strict):
    """Layers in a row; input and output widths come from the dataset."""

    name: Literal["layered"]
    hidden: tuple[Positive, ...]
    """Units in each hidden layer; empty for a single layer of weights."""
    activation: Activation = "linear"
    """Activation of the hidden layers."""
    bias: bool = False
    """Whether layers have biases; they start at zero."""
    readout: Literal["trained", "fixed", "mean"] = "trained"
    """Whether the last layer is trained, stays as drawn, or stays the mean over hidden units at any
    init scale; a last layer that stays keeps a bias of zero."""


class Gated(Strict):
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
    def layered(self) -> Layered | None:
        """The ordinary network that gates of its own making amount to; None for given gates."""
        if self.gates.learned:
            return Layered(
                name="layered", hidden=self.hidden, activation="relu", readout=self.readout
            )
        return None

    def wiring(self, data: Data) -> Wiring:
        """The pathways with their gates on these samples.

        Raises:
            UserError: a pathway that opens on no sample, a sample on which none is open, gates that
                do not fit the dataset or are of the network's own making, or as many widths as
                there are no pathways.
        """
        if self.layered:
            raise UserError("network.gates: learned gates follow the weights: there is no wiring")
        gates = self.gates.gates(data)
        widths = self.widths or (1,) * len(gates)
        if len(widths) != len(gates):
            raise UserError(
                f"network.widths: has {len(widths)} entries; the gates make {len(gates)} pathways"
            )
        hidden = [tuple(width * units for units in self.hidden) for width in widths]
        # units that are averaged may all be closed, as ReLU units may: the answer is zero then
        covered = self.readout == "trained"
        return wiring.parallel(hidden, gates, self.gates.sees(data), data, covered)


class Graph(Architecture):
    """Any architecture graph, with gates written out; inputs and outputs must fit the dataset."""

    name: Literal["graph"]
    gates: dict[str, tuple[float, ...]] = Field(default={})
    """Gates in [0, 1] by node `a` or edge `a->b`, one value per context of the dataset (per sample
    where it has none); what is not listed is always open."""

    def wiring(self, data: Data) -> Wiring:
        """The graph with its gates on these samples.

        Raises:
            UserError: gates that do not fit the graph or the dataset.
        """
        return wiring.explicit(self, self.gates, data)


class Routing(Strict):
    """From every input domain to every output domain, through pathway blocks that they share."""

    name: Literal["routing"]
    hidden: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """Units in each hidden layer of a block."""
    gates: Annotated[Union[DOMAIN_SCHEMES], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Which pairs of domains share a block."""
    pairs: Annotated[Union[PAIRS], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Which pairs of domains are trained; the others are never seen."""
    activation: Literal["linear", "relu"] = "linear"
    """Activation of the hidden layers; relu is for transformed_images."""

    def families(self, count: int) -> tuple[Family, ...]:
        """The pathway blocks between this many domains, by families of one size.

        Raises:
            UserError: the domains cannot be divided so.
        """
        try:
            return self.gates.families(count, self.hidden)
        except ValueError as error:
            raise UserError(f"network.{error}") from error

    def partners(self, count: int) -> int:
        """Output domains that each of this many input domains is trained with.

        Raises:
            UserError: more partners than domains.
        """
        try:
            return self.pairs.count(count)
        except ValueError as error:
            raise UserError(f"network.{error}") from error

    def mask(self, count: int, seed: int) -> np.ndarray:
        """Trained pairs of a run between this many domains, bool (input domain, output domain).

        Raises:
            UserError: more partners than domains.
        """
        try:
            return self.pairs.mask(count, seed)
        except ValueError as error:
            raise UserError(f"network.{error}") from error

    def wiring(self, domains: Domains, seed: int = 0) -> Wiring:
        """The graph with its gates on the samples of the pairs that a seed is trained on.

        Raises:
            UserError: the domains do not fit the blocks or the pairs.
        """
        count = domains.count
        return wiring.routing(domains, self.families(count), self.mask(count, seed))

    def effective(self, domains: Domains) -> Callable[[int], EffectiveData]:
        """What the pathways of each run seed learn from, worked out once for each mask."""
        masks = cache(lambda seed: self.wiring(domains, seed).effective)
        return lambda seed: masks(seed if self.pairs.varies else 0)


class Loss(Strict):
    """What is minimised, with its normalisation."""

    name: Literal["squared_error", "cross_entropy"] = "squared_error"
    """Squared error, or cross-entropy of the softmax of the outputs; of the logistic function where
    there is one output."""
    normalisation: Literal["half_mean", "half_sum", "mean", "sum"] = "half_mean"
    """Over samples: 1/2 mean, 1/2 sum, mean or sum; cross-entropy knows mean and sum."""

    @model_validator(mode="after")
    def _no_half_cross_entropy(self) -> "Loss":
        if self.name == "cross_entropy" and self.normalisation.startswith("half"):
            raise ValueError(
                f"normalisation {self.normalisation!r} is for squared_error; "
                "cross_entropy has mean or sum"
            )
        return self

    def factor(self, samples: int) -> float:
        """This loss over its per-sample reference, 1/2 |y - yhat|^2 or -log p, averaged."""
        per_sample = 0.5 if self.name == "squared_error" else 1.0
        factors = {"half_mean": 0.5, "half_sum": 0.5 * samples, "mean": 1.0, "sum": float(samples)}
        return factors[self.normalisation] / per_sample


class FullBatch(Strict):
    """Every step sees every sample."""

    name: Literal["full"] = "full"


class MiniBatch(Strict):
    """Every step sees the next part of a seeded shuffle, anew in each epoch."""

    name: Literal["mini"]
    size: Positive
    """Samples a step; what is left over at the end of an epoch is skipped."""


class FreshBatch(Strict):
    """Every step draws new samples from the dataset's law, the same at every init scale."""

    name: Literal["fresh"]
    size: Positive
    """Samples a step."""


class Training(Strict):
    """Gradient descent."""

    learning_rate: Annotated[float, Field(gt=0)]
    """Step size of gradient descent on the loss as normalised."""
    steps: Positive
    """Gradient steps; with batch `full`, one step is one epoch."""
    optimiser: Annotated[Union[OPTIMISERS], Field(discriminator="name")] = Sgd()  # pyright: ignore  # noqa: UP007
    """How gradients become steps."""
    loss: Loss = Loss()
    """Loss and its normalisation."""
    batch: Annotated[FullBatch | MiniBatch | FreshBatch, Field(discriminator="name")] = FullBatch()
    """Which samples a step sees."""

    def flow_step(self, samples: int) -> float:
        """Gradient-flow time of one step, in units of tau.

        Flow time is that of dW/dt = -grad of the loss averaged over samples, with 1/2 for squared
        error; the theory knows no other clock. Momentum lengthens a step by 1/(1 - momentum). An
        optimiser that does not follow gradient flow has a clock of its own, the learning rate:
        what it is called here is nominal, and theory has nothing to say of it.
        """
        time = self.optimiser.flow_time(self.learning_rate * self.loss.factor(samples))
        return self.learning_rate if time is None else time


class Record(Strict):
    """What is observed during training, and how often."""

    every: Positive
    """Steps between two entries of the time axis."""
    snapshots: Positive = 1
    """Intervals between snapshots of large observables (weights, outputs)."""
    observables: tuple[Annotated[str, Known(OBSERVABLES)], ...] = ()
    """What is recorded beside the loss."""


class Run(Strict):
    """What is trained: the part of a cell that fixes its trajectory."""

    dataset: Annotated[Union[DATASETS], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Dataset and its parameters."""
    network: Annotated[Layered | Gated | Graph | Routing, Field(discriminator="name")]
    """Architecture and gates."""
    init: Annotated[Union[LAWS], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Initialisation law and its parameters."""
    init_scales: Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(min_length=1)]
    """Factors on every initial weight; a dimension of the results."""
    seeds: Positive
    """Runs per init scale; a dimension of the results."""
    first_seed: Annotated[int, Field(ge=0)] = 0
    """Runs have the seeds from this one on."""
    training: Training
    """Gradient descent."""
    record: Record
    """Observations."""
    precision: Literal["float32", "float64"] = "float64"
    """Arithmetic of training; float64 where theory is compared with simulation."""
    matmul_precision: Literal["default", "high", "highest"] = "highest"
    """Matrix products of float32: `highest` is float32 throughout; a GPU is faster with `high`
    (three passes of shorter numbers) and `default` (one pass, TF32). CPUs know only `highest`."""

    @property
    def seed_numbers(self) -> range:
        """The seeds of the runs."""
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def resolved(self) -> Layered | Gated | Graph | Routing:
        """The network; one with gates of its own making as the ordinary network that it is."""
        network = self.network
        return (network.layered or network) if isinstance(network, Gated) else network

    @property
    def layered(self) -> Layered:
        """The network, where it is a layered one.

        Raises:
            UserError: it has given gates.
        """
        network = self.resolved
        if not isinstance(network, Layered):
            raise UserError(f"network.name: {network.name!r}: this is for layered networks")
        return network

    @model_validator(mode="after")
    def _consistent(self) -> "Run":
        if len(set(self.init_scales)) < len(self.init_scales):
            raise ValueError(f"init_scales {list(self.init_scales)} repeats a value")
        steps, every, snapshots = self.training.steps, self.record.every, self.record.snapshots
        if steps % every or (steps // every) % snapshots:
            raise ValueError(
                f"training.steps ({steps}) must be a multiple of record.every ({every}) times "
                f"record.snapshots ({snapshots})"
            )
        return self

    @model_validator(mode="after")
    def _observable(self) -> "Run":
        given: dict[str, str] = {}
        for name in self.record.observables:
            observable = OBSERVABLES[name].declaration
            if wrong := unmet(self, observable.needs):
                raise ValueError(f"record.observables: {name!r} needs another run: {wrong}")
            for variable in observable.gives:
                if given.setdefault(variable, name) != name:
                    raise ValueError(
                        f"record.observables: {name!r} gives {variable!r}, as {given[variable]!r} "
                        "does; use one of them"
                    )
        return self

    @model_validator(mode="after")
    def _trainable(self) -> "Run":
        network, batch = self.network, self.training.batch.name
        if isinstance(network, Layered):
            return self
        if isinstance(network, Routing) and isinstance(self.dataset, ImageDomainDataset):
            self._trainable_on_images(network)
            return self
        if batch != "full":
            raise ValueError(
                f"training.batch.name: {batch!r}: a {network.name} network is trained on all "
                "samples; use full"
            )
        if isinstance(network, Routing):
            self._trainable_on_correlations(network)
        return self

    def _trainable_on_images(self, network: Routing) -> None:
        if network.gates.name != "always_on":
            raise ValueError(
                f"network.gates.name: {network.gates.name!r}: images are routed through one "
                "shared pathway block; use always_on"
            )
        if self.training.batch.name == "full" and not self.on_moments:
            raise ValueError(
                "training.batch.name: 'full': only a linear network with squared error sees all "
                "images at once, through their correlations; use mini"
            )

    def _trainable_on_correlations(self, network: Routing) -> None:
        if not isinstance(self.dataset, DomainDataset):
            raise ValueError(
                f"network.name: 'routing': dataset {self.dataset.name!r} has no domains; use "
                "one that has, such as routing"
            )
        if network.activation != "linear":
            raise ValueError(
                f"network.activation: {network.activation!r}: dataset {self.dataset.name!r} is "
                "learned from correlations, as linear networks can; use linear"
            )
        if self.training.loss.name != "squared_error":
            raise ValueError(
                f"training.loss.name: {self.training.loss.name!r}: a routing network is "
                "trained on correlations; use squared_error"
            )

    @property
    def on_moments(self) -> bool:
        """Whether a routing network on images is trained on their second moments alone."""
        network = self.network
        return (
            isinstance(network, Routing)
            and network.activation == "linear"
            and self.training.loss.name == "squared_error"
            and self.training.batch.name == "full"
        )

    @property
    def modules(self) -> frozenset[str]:
        """Names of the modules that are named here: what has been declared or defined in them."""
        named = (OBSERVABLES[name].module for name in self.record.observables)
        return frozenset([*_defined_in(self), *named])


def _defined_in(value: Any) -> Iterator[str]:
    """Modules of the classes of a configuration and of all that is inside it."""
    if isinstance(value, Strict):
        yield type(value).__module__
        value = dict(value)
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for each in value:
        yield from _defined_in(each)


R = TypeVar("R", bound=Run)


class SolvedRun(Run):
    """A run and the theory that stands beside it."""

    solutions: tuple[Annotated[str, Known(SOLUTIONS)], ...] = ()
    """Theory solved from the same initial weights."""
    candidates: dict[str, Gated] = Field(default={})
    """Gated networks that may stand for a ReLU network, by names of your choice: what theory and
    training say of them is compared with it."""

    @property
    def modules(self) -> frozenset[str]:
        """As of a run, and of its solutions."""
        return super().modules | {SOLUTIONS[name].module for name in self.solutions}

    @model_validator(mode="after")
    def _candidates_for_relu(self) -> "SolvedRun":
        if not self.candidates:
            return self
        network = self.resolved
        if not isinstance(network, Layered) or network.activation != "relu" or network.bias:
            raise ValueError("candidates: stand for a ReLU network without biases; leave them out")
        for name, candidate in self.candidates.items():
            if candidate.layered:
                raise ValueError(f"candidates.{name}.gates: 'learned' are those of the network")
        return self

    @model_validator(mode="after")
    def _solvable(self) -> "SolvedRun":
        for name in self.solutions:
            if missing := unmet(self, SOLUTIONS[name].declaration.needs):
                raise ValueError(f"solutions: {name!r} needs another run: {missing}")
        return self


class Cell(SolvedRun):
    """One job's worth: a run, its theory, and what is measured in both."""

    metrics: tuple[Annotated[str, Known(METRICS)], ...] = ()
    """Metrics computed from trajectory and theory."""

    @model_validator(mode="after")
    def _measurable(self) -> "Cell":
        giving: dict[str, str] = {}
        for name in self.metrics:
            metric = METRICS[name].declaration
            if problem := unmet(self, metric.needs):
                raise ValueError(f"metrics: {name!r}: {problem}")
            if absent := metric.absent(self.record.observables, self.solutions):
                raise ValueError(f"metrics: {name!r} needs {absent}")
            for variable in metric.gives:
                if giving.setdefault(variable, name) != name:
                    raise ValueError(
                        f"metrics: {giving[variable]!r} and {name!r} both give {variable!r}; "
                        "leave one out"
                    )
        return self

    @property
    def modules(self) -> frozenset[str]:
        """As of a run and its solutions, and of its metrics."""
        return super().modules | {METRICS[name].module for name in self.metrics}

    def only(self, part: type[R]) -> R:
        """The part that fixes an earlier stage: editing a metric must not retrain anything."""
        return part.model_construct(**{name: getattr(self, name) for name in part.model_fields})
