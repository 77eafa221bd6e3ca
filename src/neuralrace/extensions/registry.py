"""Registries of extensions: metrics, solutions, observables, figures, datasets and others.

A metric, a solution, an observable or a figure is a function. Its declaration is the decorator
above it, written in literals, so that planning can read it without running the module. Its module
is in the package of its kind (see `PACKAGES`), or in a package that an installed distribution names
in the entry-point group `neuralrace`:

    [project.entry-points.neuralrace]
    metrics = "mypackage.metrics"

The module `<paper>/<figure>.py` of such a package of figures holds the figure `paper/figure`.

Datasets, gating schemes, initialisers and others are classes with a configuration, in modules that
are listed in the same way; see `choices`. No other file of the library lists extensions.
"""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoints, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args

from pydantic import Field
from pydantic_core import core_schema

from neuralrace.errors import UserError, did_you_mean
from neuralrace.extensions.model import ConfigModel
from neuralrace.extensions.source import decorated, docstring

ENTRY_POINT_GROUP = "neuralrace"
PACKAGES = {
    "datasets": "neuralrace.datasets",
    "networks": "neuralrace.networks",
    "gates": "neuralrace.networks.gates",
    "initialisers": "neuralrace.networks.initialisers",
    "optimisers": "neuralrace.training.optimisers",
    "observables": "neuralrace.training.observables",
    "solutions": "neuralrace.theory.solutions",
    "metrics": "neuralrace.metrics",
    "figures": "neuralrace.figures",
}
"""Package of this library by kind of extension."""
F = TypeVar("F", bound=Callable)
C = TypeVar("C", bound=ConfigModel)
D = TypeVar("D", bound="Declaration")
ExtensionKind = Literal["metrics", "solutions", "observables", "figures"]


@dataclass(frozen=True)
class Variable:
    """A variable of a result file, beyond the run axes `init_scale` and `seed`."""

    dims: tuple[str, ...]
    long_name: str
    units: str = "1"


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """Properties of an extension, written as a decorator with literals as arguments."""

    def __call__(self, function: F) -> F:
        """The function itself, unchanged."""
        return function


@dataclass(frozen=True, kw_only=True)
class Quantity(Declaration):
    """An extension that gives variables of a result file.

    Required names are separated by spaces; `a|b` requires one of the two.
    """

    variables: Mapping[str, tuple[str, str] | tuple[str, str, str]]
    """Dimensions (separated by spaces), meaning, and unit (1 when absent) of each variable."""
    requires: str = ""
    """Requirements on the ensemble: names of functions of `neuralrace.config.requirements`."""

    @property
    def outputs(self) -> dict[str, Variable]:
        """The declared variables."""
        return {
            name: Variable(tuple(dims.split()), *texts)
            for name, (dims, *texts) in self.variables.items()
        }


@dataclass(frozen=True, kw_only=True)
class Observable(Quantity):
    """A quantity that is recorded while a network trains."""

    snapshots: bool = False
    """Whether it is recorded along `snapshot`, as it is too large for the time axis."""


@dataclass(frozen=True, kw_only=True)
class OfOneTask(Quantity):
    """A quantity that takes the dataset for one task, unless `requires` names `task_sequence`."""

    def __post_init__(self) -> None:
        if "task_sequence" not in self.requires.replace("|", " ").split():
            object.__setattr__(self, "requires", f"{self.requires} one_task".strip())


@dataclass(frozen=True, kw_only=True)
class Solution(OfOneTask):
    """Theory that is solved from the initial weights of a run."""

    baseline: bool = False
    """Whether it is a baseline, to compare theory with: `neuralrace.simulate` leaves it out unless
    it is named."""
    derived_for: str = ""
    """Initial weights for which it is derived, in words, if it can be computed for others."""


@dataclass(frozen=True, kw_only=True)
class Metric(OfOneTask):
    """A quantity that is computed from trajectory and theory."""

    observables: str = ""
    """Required observables."""
    solutions: str = ""
    """Required solutions; `*` requires any solution, and `*loss` one that gives this variable."""
    shares: str = ""
    """Variables that are shares of units, from 0 to 1, as are confidence intervals of them."""
    trains: bool = False
    """Whether it trains other networks for comparison."""

    def absent(self, observables: Collection[str], solutions: Collection[str]) -> UserError | None:
        """The first requirement that these do not meet; None if they meet all of them."""
        for noun, requirements, present, key in (
            ("observable", self.observables, observables, "record.observables"),
            ("solution", self.solutions, solutions, "solutions"),
        ):
            for requirement in requirements.split():
                names, remedy = requirement.split("|"), f"add one to {key}"
                if requirement.startswith("*"):
                    variable = requirement[1:]
                    gives = (SOLUTIONS[name].declaration.variables for name in present)
                    met = any(not variable or variable in variables for variables in gives)
                    problem = f"needs a {noun}" + (f" that gives {variable}" if variable else "")
                else:
                    met = set(names) & set(present)
                    problem = f"needs the {noun} {' or '.join(names)}"
                    remedy = f"add it to {key}" if len(names) == 1 else remedy
                if not met:
                    return UserError(problem, remedy=remedy)
        return None


@dataclass(frozen=True, kw_only=True)
class Figure(Declaration):
    """A figure, drawn from the results of cells.

    Its module has a function `panel_<letter>(results, ax)` for each panel. The decorated function
    returns the entries of the legend above all panels; the list may be empty.
    """

    layout: str
    """Letters of the panels, with semicolons between rows, for matplotlib's `subplot_mosaic`."""
    height: int | float
    """Height in inches."""
    width: int | float | None = None
    """Width in inches; that of a page when absent."""
    widths: tuple[int | float, ...] = ()
    """Relative widths of columns; equal when absent."""
    heights: tuple[int | float, ...] = ()
    """Relative heights of rows; equal when absent."""
    cf: Mapping[str, str] = field(default_factory=dict)
    """Panel of the paper to compare with, such as `Fig. 4e`, by letter."""
    reads: Mapping[str, Mapping[str, str]]
    """Variables (separated by spaces) by kind of file (trajectory, theory, metrics), by experiment.
    A file without variables is read for its specification. An experiment is one of the figure's
    paper, or `paper/experiment`, or a glob, which may match nothing."""
    claims: bool = False
    """Whether it shows the known verdicts on claims: it is drawn anew when claim files change."""


@dataclass(frozen=True)
class Entry(Generic[D]):
    """A declaration with its function."""

    name: str
    module: str
    """Dotted name of the module."""
    path: Path
    """File of the module."""
    function: str
    """Name of the function."""
    text: str
    """Docstring of the function; for a figure, of its module."""
    declaration: D

    def load(self) -> Callable[..., Any]:
        """The function; this imports its module."""
        return getattr(import_module(self.module), self.function)


class Registry(Mapping[str, Entry[D]]):
    """All extensions of one kind by name, sorted.

    Modules are listed on first use.

    Args:
        kind: kind of the extensions, a key of `PACKAGES`.
        declaration: class of the decorator.
        folders: whether an extension is a module in a folder, named `folder/module`. Otherwise it
            is a function with its own name.

    Raises:
        UserError: on first use, if a declaration cannot be read or two have the same name.
    """

    def __init__(self, kind: ExtensionKind, declaration: type[D], folders: bool = False):
        self.kind = kind
        self.declaration = declaration
        self.folders = folders

    def __getitem__(self, name: str) -> Entry[D]:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def known(self, name: str, key: str = "") -> str:
        """The name, if there is such an extension.

        Args:
            name: a name that may be unknown.
            key: the argument or option that has it, for messages.

        Raises:
            UserError: there is none.
        """
        if name not in self:
            similar = did_you_mean(name, self)
            remedy = f"{similar}`neuralrace list {self.kind}` lists all"
            raise UserError(f"no such {self.kind[:-1]}", key=key, value=name, remedy=remedy)
        return name

    @cached_property
    def _entries(self) -> dict[str, Entry[D]]:
        entries: dict[str, Entry[D]] = {}
        for module, path in modules(self.kind, "*/" if self.folders else "**/"):
            for function, source in decorated(path, self.declaration.__name__).items():
                name = f"{path.parent.name}/{path.stem}" if self.folders else function
                if name in entries:
                    raise _same_name(self.kind, name, entries[name].module, module)
                declaration = self.declaration(**source.keywords)
                text = docstring(path) if self.folders else source.text
                entries[name] = Entry(name, module, path, function, text, declaration)
        return dict(sorted(entries.items()))


@dataclass(frozen=True)
class RegisteredName:
    """Annotation of a `str` in a configuration that names an extension."""

    registry: Registry[Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_after_validator_function(self.registry.known, handler(source))

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        return handler(core) | {"enum": list(self.registry)}


METRICS = Registry("metrics", Metric)
SOLUTIONS = Registry("solutions", Solution)
OBSERVABLES = Registry("observables", Observable)
FIGURES = Registry("figures", Figure, folders=True)


def modules(kind: str, folders: str = "") -> Iterator[tuple[str, Path]]:
    """Dotted name and file of every module of a kind, with other distributions last.

    Args:
        kind: kind of extension: a key of `PACKAGES`, and the name of entry points.
        folders: glob of the folders inside a package, with a slash at its end; the package itself
            when absent.

    Raises:
        UserError: a package that an entry point names does not exist.
    """
    for package in (PACKAGES[kind], *sorted(packages(kind))):
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise UserError(
                f"{kind} = {package!r}: there is no such package",
                key=f"entry point {ENTRY_POINT_GROUP}",
            )
        for folder in spec.submodule_search_locations:
            for path in sorted(Path(folder).glob(f"{folders}[!_]*.py")):
                yield ".".join((package, *path.relative_to(folder).with_suffix("").parts)), path


@cache
def packages(kind: str | None = None) -> frozenset[str]:
    """Packages of other distributions that extend this library, of one kind or of all."""
    return frozenset(entry.value for entry in _entry_points() if kind in (None, entry.name))


@cache
def _entry_points() -> EntryPoints:
    return entry_points(group=ENTRY_POINT_GROUP)


@cache
def choices(kind: str, base: type[C]) -> tuple[type[C], ...]:
    """All classes of a kind that a configuration can choose by their `name`, sorted by name.

    Args:
        kind: kind of extension, a key of `PACKAGES`.
        base: base class of the choices.

    Raises:
        UserError: two have the same name.
    """
    classes: dict[str, type[C]] = {}
    for module, _ in modules(kind):
        for cls in vars(import_module(module)).values():
            if not inspect.isclass(cls) or cls.__module__ != module or not issubclass(cls, base):
                continue
            name_field = cls.model_fields.get("name")
            for name in get_args(name_field.annotation) if name_field else ():
                if name in classes:
                    raise _same_name(kind, name, classes[name].__module__, module)
                classes[name] = cls
    return tuple(classes[name] for name in sorted(classes))


def _same_name(kind: str, name: str, *modules: str) -> UserError:
    return UserError(
        f"is in {' and '.join(modules)}", key=kind, value=name, remedy="rename one of them"
    )


@dataclass(frozen=True)
class ChoiceOf:
    """Annotation of a base class: one of the `choices` of a kind, by name.

    Modules of the same kind use it, together with `defer_build`, as they may import each other.
    Choices are listed when a configuration is first read, and not while a module is imported.
    """

    kind: str
    without: tuple[str, ...] = ()
    """Names that are no choice here, as a schema that contains itself would have no end."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        every = choices(self.kind, source)
        allowed = (
            c for c in every if get_args(c.model_fields["name"].annotation)[0] not in self.without
        )
        union = Union[tuple(allowed)]  # noqa: UP007
        return handler.generate_schema(Annotated[union, Field(discriminator="name")])
