"""The one definition of an experiment: what can be configured, its types, defaults and meaning.

A `Cell` is one point of an experiment's sweep: an `Ensemble` of runs, one for each init scale and
seed, and what is computed about them. `neuralrace.config.load` reads cells from `config/`.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, cast

from pydantic import Field, model_validator

from neuralrace.config.requirements import unmet
from neuralrace.datasets.base import Dataset
from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel
from neuralrace.extensions.registry import METRICS, OBSERVABLES, SOLUTIONS, RegisteredName, choices
from neuralrace.networks.base import Network
from neuralrace.networks.gated import Gated
from neuralrace.networks.initialisers.base import Initialiser
from neuralrace.networks.layered import Layered
from neuralrace.training.batches import Positive
from neuralrace.training.settings import Record, Training

if TYPE_CHECKING:  # configurations are read without JAX
    from neuralrace.training.task import Task

DATASETS = choices("datasets", Dataset)
NETWORKS = choices("networks", Network)
INITIALISERS = choices("initialisation", Initialiser)


class Ensemble(ConfigModel):
    """All runs of a cell, (init_scale, seed): what fixes its trajectory."""

    dataset: Annotated[Union[DATASETS], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Dataset and its parameters."""
    network: Annotated[Union[NETWORKS], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Architecture and gates."""
    init: Annotated[Union[INITIALISERS], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Initialisation law and its parameters."""
    init_scales: Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(min_length=1)]
    """Factors on every initial weight; a dimension of the results."""
    seeds: Positive
    """Runs per init scale; a dimension of the results."""
    first_seed: Annotated[int, Field(ge=0, lt=2**62)] = 0
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
    def resolved(self) -> Network:
        """The network; one with gates of its own making as the ordinary network that it is."""
        return self.network.resolved

    @property
    def layered(self) -> Layered:
        """The network, where it is a layered one.

        Raises:
            UserError: it has given gates.
        """
        if wrong := unmet(self, "layered"):
            raise UserError(wrong)
        return cast(Layered, self.resolved)

    @model_validator(mode="after")
    def _consistent(self) -> "Ensemble":
        if len(set(self.init_scales)) < len(self.init_scales):
            raise ValueError(f"init_scales {list(self.init_scales)} repeats a value")
        steps, every, snapshots = self.training.steps, self.record.every, self.record.snapshots
        if steps % every or (steps // every) % snapshots:
            raise ValueError(
                f"training.steps ({steps}) must be a multiple of record.every ({every}) times "
                f"record.snapshots ({snapshots})"
            )
        if self.precision == "float32" and steps >= 2**31:
            raise ValueError(
                f"training.steps: {steps}: float32 counts up to {2**31 - 1}; use precision: float64"
            )
        return self

    @model_validator(mode="after")
    def _observable(self) -> "Ensemble":
        given: dict[str, str] = {}
        for name in self.record.observables:
            observable = OBSERVABLES[name].declaration
            if wrong := unmet(self, observable.requires):
                raise ValueError(f"record.observables: {name!r} needs another run: {wrong}")
            for variable in observable.variables:
                if given.setdefault(variable, name) != name:
                    raise ValueError(
                        f"record.observables: {name!r} gives {variable!r}, as {given[variable]!r} "
                        "does; use one of them"
                    )
        return self

    @model_validator(mode="after")
    def _trainable(self) -> "Ensemble":
        self.network.check(self.dataset, self.training)
        return self

    @property
    def networks(self) -> tuple[Network, ...]:
        """All networks that training or theory may be asked about."""
        return (self.network,)

    def task(self) -> "Task":
        """See `neuralrace.training.runs.Runs`."""
        return self.resolved.task(self.dataset, self.init, self.training)

    @property
    def modules(self) -> frozenset[str]:
        """Modules of all that is named here; results rest on them and on their imports."""
        observed = (OBSERVABLES[name].module for name in self.record.observables)
        return frozenset([*_defined_in(self), *observed])


def _defined_in(value: Any) -> Iterator[str]:
    """Modules of the classes of a configuration and of all that is inside it."""
    if isinstance(value, ConfigModel):
        yield type(value).__module__
        value = vars(value)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for each in value:
        yield from _defined_in(each)


R = TypeVar("R", bound=Ensemble)


class SolvedEnsemble(Ensemble):
    """An ensemble and the theory that stands beside it."""

    solutions: tuple[Annotated[str, RegisteredName(SOLUTIONS)], ...] = ()
    """Theory solved from the same initial weights."""
    candidates: dict[str, Gated] = Field(default={})
    """Gated networks that may stand for a ReLU network, by names of your choice: what theory and
    training say of them is compared with it."""

    @property
    def networks(self) -> tuple[Network, ...]:
        """The network and its candidates."""
        return (self.network, *self.candidates.values())

    @property
    def modules(self) -> frozenset[str]:
        """See `Ensemble.modules`; solutions too."""
        return super().modules | {SOLUTIONS[name].module for name in self.solutions}

    @model_validator(mode="after")
    def _candidates_for_relu(self) -> "SolvedEnsemble":
        if not self.candidates:
            return self
        if unmet(self, "layered relu"):
            raise ValueError("candidates: stand for a ReLU network without biases; leave them out")
        for name, candidate in self.candidates.items():
            if candidate.gates.learned:
                raise ValueError(f"candidates.{name}.gates: 'learned' are those of the network")
        return self

    @model_validator(mode="after")
    def _solvable(self) -> "SolvedEnsemble":
        for name in self.solutions:
            if missing := unmet(self, SOLUTIONS[name].declaration.requires):
                raise ValueError(f"solutions: {name!r} needs another run: {missing}")
        return self

    def unfit(self) -> str | None:
        """What requires other data or another start, in words; None where all fits.

        It loads the dataset: planning asks once, and validation never does.
        """
        if missing := unmet(self, "start_exists gates_fit", data=True):
            return missing
        for name in self.record.observables:
            if missing := unmet(self, OBSERVABLES[name].declaration.requires, data=True):
                return f"record.observables: {name!r} needs another run: {missing}"
        for name in self.solutions:
            if missing := unmet(self, SOLUTIONS[name].declaration.requires, data=True):
                return f"solutions: {name!r} needs another run: {missing}"
        return None


class Cell(SolvedEnsemble):
    """One point of a sweep: an ensemble, its theory, and what is measured in both."""

    metrics: tuple[Annotated[str, RegisteredName(METRICS)], ...] = ()
    """Metrics computed from trajectory and theory."""

    @model_validator(mode="after")
    def _measurable(self) -> "Cell":
        giving: dict[str, str] = {}
        for name in self.metrics:
            metric = METRICS[name].declaration
            if problem := unmet(self, metric.requires):
                raise ValueError(f"metrics: {name!r}: {problem}")
            if absent := metric.absent(self.record.observables, self.solutions):
                raise ValueError(f"metrics: {name!r} needs {absent}")
            for variable in metric.variables:
                if giving.setdefault(variable, name) != name:
                    raise ValueError(
                        f"metrics: {giving[variable]!r} and {name!r} both give {variable!r}; "
                        "leave one out"
                    )
        return self

    @property
    def modules(self) -> frozenset[str]:
        """See `Ensemble.modules`; metrics too."""
        return super().modules | {METRICS[name].module for name in self.metrics}

    def unfit(self) -> str | None:
        """See `SolvedEnsemble.unfit`; metrics too."""
        if missing := super().unfit():
            return missing
        for name in self.metrics:
            if missing := unmet(self, METRICS[name].declaration.requires, data=True):
                return f"metrics: {name!r}: {missing}"
        return None

    def only(self, part: type[R]) -> R:
        """The part that fixes an earlier stage: editing a metric must not retrain anything."""
        return part.model_construct(**{name: getattr(self, name) for name in part.model_fields})


def flatten_keys(spec: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Entries of a specification by dotted key, such as `training.learning_rate`."""
    entries = {}
    for key, value in spec.items():
        inner = isinstance(value, dict)
        entries |= flatten_keys(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return entries
