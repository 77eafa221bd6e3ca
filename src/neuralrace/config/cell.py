"""Cells: the configuration of experiments, with types, defaults and meaning of every key.

A `Cell` is one point of an experiment's sweep: an `Ensemble` of runs, one for each init scale and
seed, with its theory and metrics. `neuralrace.config.load` reads cells from `config/`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, cast

from pydantic import Field, model_validator

from neuralrace.config.requirements import unmet
from neuralrace.datasets.base import Dataset
from neuralrace.errors import UserError, configured_as
from neuralrace.extensions.model import ConfigModel, Positive
from neuralrace.extensions.registry import (
    METRICS,
    OBSERVABLES,
    SOLUTIONS,
    RegisteredName,
    Registry,
    choices,
)
from neuralrace.networks.base import Network
from neuralrace.networks.initialisers.base import Initialiser
from neuralrace.networks.layered import Layered
from neuralrace.training.settings import Record, Training

if TYPE_CHECKING:  # configurations are read without JAX
    from neuralrace.training.task import Task

DATASETS = choices("datasets", Dataset)
NETWORKS = choices("networks", Network)
INITIALISERS = choices("initialisers", Initialiser)
APPLICABLE = "applicable"
"""In a file: all solutions that apply to the cell, those of installed packages too."""
NESTED = (ConfigModel, dict, list, tuple)
"""What the values of a configuration may consist of, besides numbers and texts."""


def _first_unmet(
    ensemble: "Ensemble", key: str, names: Iterable[str], registry: Registry[Any], data: bool
) -> UserError | None:
    """The first of the named extensions whose requirements the ensemble does not meet."""
    for name in names:
        if error := unmet(ensemble, registry[name].declaration.requires, data):
            problem = f"does not apply to this experiment: {error}"
            return UserError(problem, key=key, value=name, remedy=_others(ensemble, registry, data))
    return None


def _others(ensemble: "Ensemble", registry: Registry[Any], data: bool) -> str:
    """Which solutions to use in place of one that does not apply; nothing for other extensions."""
    if registry is not SOLUTIONS:
        return ""
    names = [
        name
        for name, entry in SOLUTIONS.items()
        if not entry.declaration.baseline and not unmet(ensemble, entry.declaration.requires, data)
    ]
    which = "these apply" if data else "these may apply"
    return f"{which}: {', '.join(names)}" if names else "no other solution applies"


def _check_extensions(
    ensemble: "Ensemble", key: str, names: Iterable[str], registry: Registry[Any]
) -> None:
    """Raises a `UserError` if requirements are not met or two extensions share a variable."""
    if error := _first_unmet(ensemble, key, names, registry, data=False):
        raise error
    sources: dict[str, str] = {}
    for name in names:
        for variable in registry[name].declaration.variables:
            if sources.setdefault(variable, name) != name:
                raise UserError(
                    f"gives {variable!r}, as {sources[variable]!r} does",
                    key=key,
                    value=name,
                    remedy="use one of them",
                )


class Ensemble(ConfigModel):
    """All runs of a cell, (init_scale, seed): everything that determines its trajectory."""

    dataset: Annotated[Union[DATASETS], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Dataset and its parameters."""
    network: Annotated[Union[NETWORKS], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Architecture and gates."""
    init: Annotated[Union[INITIALISERS], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Initialiser and its parameters."""
    init_scales: Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(min_length=1)]
    """Factors on every initial weight; a dimension of the results."""
    seeds: Positive
    """Runs per init scale; a dimension of the results."""
    first_seed: Annotated[int, Field(ge=0, lt=2**62)] = 0
    """Smallest seed; the others follow it."""
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
        """The network; one with learned gates as the ReLU network that it is."""
        return self.network.resolved

    @property
    def layered(self) -> Layered:
        """The network as a layered one.

        Raises:
            UserError: the configuration gives its gates.
        """
        if error := unmet(self, "layered"):
            raise error
        return cast(Layered, self.resolved)

    @model_validator(mode="after")
    def _consistent(self) -> "Ensemble":
        if len(set(self.init_scales)) < len(self.init_scales):
            raise UserError(
                "repeats a value", key="init_scales", value=self.init_scales, remedy="leave it out"
            )
        steps, every, snapshots = self.training.steps, self.record.every, self.record.snapshots
        if steps % (every * snapshots):
            raise UserError(
                f"must be a multiple of record.every ({every}) times record.snapshots "
                f"({snapshots})",
                key="training.steps",
                value=steps,
            )
        if self.precision == "float32" and steps >= 2**31:
            raise UserError(
                f"float32 counts up to {2**31 - 1}",
                key="training.steps",
                value=steps,
                remedy="use precision: float64",
            )
        return self

    @model_validator(mode="after")
    def _observable(self) -> "Ensemble":
        _check_extensions(self, "record.observables", self.record.observables, OBSERVABLES)
        return self

    @model_validator(mode="after")
    def _trainable(self) -> "Ensemble":
        self.network.check(self.dataset, self.training)
        if unmet(self, "task_sequence"):
            return self
        if error := unmet(self, "layered|gated"):
            raise error.replaced(problem="is not trained on a sequence of tasks")
        start, _ = self.dataset.phases[-1]
        if start >= self.training.steps:
            raise UserError(
                f"training ends after {self.training.steps} steps, before the last task begins",
                key="dataset.switches",
                value=start,
                remedy="use earlier ones, or more steps",
            )
        return self

    @property
    def networks(self) -> tuple[Network, ...]:
        """All networks that training or theory uses."""
        return (self.network,)

    def task(self) -> "Task":
        """The task of `neuralrace.training.runs.Runs`."""
        starts, datasets = zip(*self.dataset.phases, strict=True)
        tasks = [self.resolved.task(each, self.init, self.training) for each in datasets]
        if len(tasks) == 1:
            return tasks[0]
        from neuralrace.networks.tasks.sequence import SequenceTask

        return SequenceTask(tasks, starts)

    @property
    def modules(self) -> frozenset[str]:
        """Modules of all extensions named here; results depend on them and on their imports."""
        observables = (OBSERVABLES[name].module for name in self.record.observables)
        return frozenset([*_defined_in(self), *observables])


def _defined_in(value: Any) -> Iterator[str]:
    """Modules of the classes of a configuration and of everything inside it."""
    if isinstance(value, ConfigModel):
        yield type(value).__module__
        value = vars(value)
    if isinstance(value, dict):
        value = value.values()
    for item in value:
        if isinstance(item, NESTED):  # a table holds many numbers
            yield from _defined_in(item)


R = TypeVar("R", bound=Ensemble)


class OrApplicable:
    """Annotation of a list in the schema of files, where a word may stand for all its names.

    `neuralrace.config.load` replaces the word: it takes the dataset to know what applies.
    """

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [handler(core), {"enum": [APPLICABLE]}]}


class SolvedEnsemble(Ensemble):
    """An ensemble and its theory."""

    solutions: Annotated[tuple[Annotated[str, RegisteredName(SOLUTIONS)], ...], OrApplicable()] = ()
    """Theory solved from the same initial weights: names, or `applicable` for all that apply."""
    candidates: dict[
        str, Annotated[Union[NETWORKS], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    ] = Field(default={})
    """Gated networks, parallel pathways or graphs, that may stand for a ReLU network, by names of
    your choice. Their theory and training are compared with it."""

    @property
    def networks(self) -> tuple[Network, ...]:
        """The network and its candidates."""
        return (self.network, *self.candidates.values())

    def applicable_solutions(self) -> tuple[str, ...]:
        """All solutions whose requirements it meets, sorted; this loads the dataset."""
        return tuple(
            name
            for name, entry in SOLUTIONS.items()
            if not unmet(self, entry.declaration.requires, data=True)
        )

    @property
    def modules(self) -> frozenset[str]:
        """See `Ensemble.modules`; solutions too."""
        return super().modules | {SOLUTIONS[name].module for name in self.solutions}

    @model_validator(mode="after")
    def _candidates_for_relu(self) -> "SolvedEnsemble":
        if self.candidates and unmet(self, "layered relu"):
            raise UserError(
                "stand for a ReLU network without biases", key="candidates", remedy="leave them out"
            )
        for name, candidate in self.candidates.items():
            as_network = self.model_copy(update={"network": candidate, "candidates": {}})
            kinds = "gated" if candidate.name == "gated" else "gated|graph"
            with configured_as(f"candidates.{name}"):
                if error := unmet(as_network, kinds):  # a network with learned gates is not gated
                    raise error
        return self

    @model_validator(mode="after")
    def _solvable(self) -> "SolvedEnsemble":
        if error := _first_unmet(self, "solutions", self.solutions, SOLUTIONS, data=False):
            raise error
        return self

    def unfit(self) -> UserError | None:
        """The first data requirement that is not met; None if all are.

        It loads the dataset: planning calls it once, and validation never does.
        """
        observables = self.record.observables
        return (
            unmet(self, "tasks_fit start_exists gates_fit", data=True)
            or _first_unmet(self, "record.observables", observables, OBSERVABLES, data=True)
            or _first_unmet(self, "solutions", self.solutions, SOLUTIONS, data=True)
        )


class Cell(SolvedEnsemble):
    """One point of a sweep: an ensemble, its theory and its metrics."""

    metrics: tuple[Annotated[str, RegisteredName(METRICS)], ...] = ()
    """Metrics computed from trajectory and theory."""

    @model_validator(mode="after")
    def _measurable(self) -> "Cell":
        _check_extensions(self, "metrics", self.metrics, METRICS)
        for name in self.metrics:
            declaration = METRICS[name].declaration
            if error := declaration.absent(self.record.observables, self.solutions):
                raise error.replaced(key="metrics", value=name)
        return self

    @property
    def modules(self) -> frozenset[str]:
        """See `Ensemble.modules`; metrics too."""
        return super().modules | {METRICS[name].module for name in self.metrics}

    def unfit(self) -> UserError | None:
        """See `SolvedEnsemble.unfit`; metrics too."""
        return super().unfit() or _first_unmet(self, "metrics", self.metrics, METRICS, data=True)

    def only(self, part: type[R]) -> R:
        """The part that determines an earlier stage: a change of metrics must not retrain."""
        return part.model_construct(**{name: getattr(self, name) for name in part.model_fields})


def flatten_keys(spec: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Entries of a specification by dotted key, such as `training.learning_rate`."""
    entries = {}
    for key, value in spec.items():
        inner = isinstance(value, dict)
        entries |= flatten_keys(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return entries
