"""What extends the library: declared beside its code, found by listing, read without running.

A metric, a solution, an observable or a figure is a function, and its declaration is the decorator
above it, written in literals. It stands in any module of the package of its kind (see `PACKAGES`),
or of one that an installed distribution names in the entry-point group `neuralrace` under that
kind:

    [project.entry-points.neuralrace]
    metrics = "mypackage.metrics"

The figure `paper/figure` is the one of the module `<paper>/<figure>.py` of `neuralrace.figures`, or
of such a package.

Datasets, gating schemes and initialisation laws are classes with a configuration of their own, in
modules that are found likewise; see `choices`. Nothing else names any of them.
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

from neuralrace.errors import did_you_mean
from neuralrace.extensions.model import ConfigModel
from neuralrace.extensions.source import decorated, docstring

ENTRY_POINT_GROUP = "neuralrace"
PACKAGES = {
    "datasets": "neuralrace.datasets",
    "networks": "neuralrace.networks",
    "gates": "neuralrace.networks.gates",
    "initialisation": "neuralrace.networks.initialisers",
    "optimisers": "neuralrace.training.optimisers",
    "observables": "neuralrace.training.observables",
    "solutions": "neuralrace.theory.solutions",
    "metrics": "neuralrace.metrics",
    "figures": "neuralrace.figures",
}
"""The package of this library that holds each kind of extension."""
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
    """What is said of an extension, in literals: it is read as source."""

    def __call__(self, function: F) -> F:
        """As a decorator: the function as it is."""
        return function


@dataclass(frozen=True, kw_only=True)
class Quantity(Declaration):
    """Something that gives variables of a result file.

    Names stand side by side in one text; all are needed, and of `a|b` either.
    """

    variables: Mapping[str, tuple[str, str] | tuple[str, str, str]]
    """Dimensions side by side, meaning, and unit (1 when absent) of each variable it gives."""
    requires: str = ""
    """Conditions on the ensemble, functions of `neuralrace.config.requirements`."""

    @property
    def outputs(self) -> dict[str, Variable]:
        """What it gives."""
        return {name: Variable(tuple(g[0].split()), *g[1:]) for name, g in self.variables.items()}


@dataclass(frozen=True, kw_only=True)
class Observable(Quantity):
    """Something that is recorded while a network trains."""

    snapshots: bool = False
    """Whether it is too large for the time axis, and recorded along `snapshot`."""


@dataclass(frozen=True, kw_only=True)
class Solution(Quantity):
    """Theory that is solved from the initial weights of a run."""


@dataclass(frozen=True, kw_only=True)
class Metric(Quantity):
    """Something that is computed from trajectory and theory."""

    observables: str = ""
    """What must be recorded."""
    solutions: str = ""
    """What must be solved; `*` for one at least, whichever, and `*loss` for one that gives this."""
    trains: bool = False
    """Whether it trains networks of its own, to compare with."""

    def absent(self, observables: Collection[str], solutions: Collection[str]) -> str | None:
        """What it lacks first among these, in words with the remedy; None where all is there."""
        for what, wanted, given, key in (
            ("observable", self.observables, observables, "record.observables"),
            ("solution", self.solutions, solutions, "solutions"),
        ):
            for each in wanted.split():
                names = each.split("|")
                if each.startswith("*"):
                    variable = each.removeprefix("*")
                    if not any(
                        variable in ("", *SOLUTIONS[name].declaration.variables) for name in given
                    ):
                        what += f" that gives {variable}" if variable else ""
                        return f"a {what}; add one to {key}"
                elif not set(names) & set(given):
                    one = "it" if len(names) == 1 else "one"
                    return f"the {what} {' or '.join(names)}; add {one} to {key}"
        return None


@dataclass(frozen=True, kw_only=True)
class Figure(Declaration):
    """A figure, drawn from the results of cells.

    Its module holds a function `panel_<letter>(results, ax)` for each panel, and the function under
    this decorator gives the entries of the legend above all of them, which may be none.
    """

    layout: str
    """Letters of the panels, rows parted by semicolons, as matplotlib's `subplot_mosaic` takes."""
    height: int | float
    """Inches; its width is that of a page."""
    widths: tuple[int | float, ...] = ()
    """Of columns, in proportion; alike when absent."""
    heights: tuple[int | float, ...] = ()
    """Of rows, in proportion; alike when absent."""
    cf: Mapping[str, str] = field(default_factory=dict)
    """Panel of the paper that each is to be set beside, such as `Fig. 4e`, by letter."""
    reads: Mapping[str, Mapping[str, str]]
    """Variables of each kind of file (trajectory, theory, metrics), by experiments; names stand
    side by side, and none where only the specification in the file is read. An experiment is of
    the figure's paper or `paper/experiment`, or a glob, which may match none."""


@dataclass(frozen=True)
class Entry(Generic[D]):
    """A declaration with the function that it stands above."""

    name: str
    module: str
    """Dotted name."""
    path: Path
    """Its file."""
    function: str
    """Name of the function."""
    text: str
    """The function's docstring; where a module is the extension, that of the module."""
    declaration: D

    def load(self) -> Callable[..., Any]:
        """The function; only now is its module run."""
        return getattr(import_module(self.module), self.function)


class Registry(Mapping[str, Entry[D]]):
    """All extensions of one kind by name, sorted.

    Args:
        kind: the package that is listed.
        declaration: the decorator.
        folders: whether modules stand in folders, and what is in one is called `folder/module`;
            else in the package itself, and it is called as its function.

    Raises:
        ValueError: on first use, where a declaration cannot be read or two have one name.
    """

    def __init__(self, kind: ExtensionKind, declaration: type[D], folders: bool = False):
        """Nothing is listed yet."""
        self.kind = kind
        self.declaration = declaration
        self.folders = folders

    def __getitem__(self, name: str) -> Entry[D]:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def known(self, name: str) -> str:
        """The name, if there is such an extension.

        Raises:
            ValueError: there is none; with those that are spelt alike.
        """
        if name not in self:
            meant = did_you_mean(name, self)
            raise ValueError(f"no such {self.kind[:-1]}; {meant}config/README.md lists all")
        return name

    @cached_property
    def _entries(self) -> dict[str, Entry[D]]:
        found: dict[str, Entry[D]] = {}
        for module, path in modules(self.kind, "*/" if self.folders else "**/"):
            for function, said in decorated(path, self.declaration.__name__).items():
                name = f"{path.parent.name}/{path.stem}" if self.folders else function
                if name in found:
                    raise ValueError(
                        f"{self.kind}: {name!r} is in {found[name].module} and in {module}"
                    )
                declaration = self.declaration(**said.keywords)
                text = docstring(path) if self.folders else said.text
                found[name] = Entry(name, module, path, function, text, declaration)
        return dict(sorted(found.items()))


@dataclass(frozen=True)
class RegisteredName:
    """As an annotation of `str` in a configuration: the name of an extension."""

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
    """Dotted name and file of every module of a kind, those of other distributions last.

    Args:
        kind: the package that is listed, here and under this name in the entry-point group.
        folders: where in it, a glob that ends in a slash; in the package itself when absent.

    Raises:
        ValueError: a package that an entry point names does not exist.
    """
    for package in (PACKAGES[kind], *sorted(packages(kind))):
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise ValueError(
                f"entry point {ENTRY_POINT_GROUP}: {kind} = {package!r}: there is no such package"
            )
        for folder in spec.submodule_search_locations:
            for path in sorted(Path(folder).glob(f"{folders}[!_]*.py")):
                yield ".".join((package, *path.relative_to(folder).with_suffix("").parts)), path


@cache
def packages(kind: str | None = None) -> frozenset[str]:
    """Packages of other distributions that extend this library: in a kind, or in any."""
    return frozenset(entry.value for entry in _extensions() if kind in (None, entry.name))


@cache
def _extensions() -> EntryPoints:
    return entry_points(group=ENTRY_POINT_GROUP)


@cache
def choices(kind: str, base: type[C]) -> tuple[type[C], ...]:
    """All classes of a kind that can be configured: those with a `name` of their own, by name.

    Args:
        kind: the package that is listed.
        base: what they inherit from.

    Raises:
        ValueError: two have one name.
    """
    found: dict[str, type[C]] = {}
    for module, _ in modules(kind):
        for each in vars(import_module(module)).values():
            if not inspect.isclass(each) or each.__module__ != module or not issubclass(each, base):
                continue
            field = each.model_fields.get("name")
            for name in get_args(field.annotation) if field else ():  # none of what has no name
                if name in found:
                    raise ValueError(
                        f"{kind}: {name!r} is in {found[name].__module__} and {module}"
                    )
                found[name] = each
    return tuple(found[name] for name in sorted(found))


@dataclass(frozen=True)
class ChoiceOf:
    """As an annotation of a base class: one of the `choices` of a kind, told by name.

    For modules of that very kind, together with `defer_build`: all are listed when a configuration
    is first read, and not while the module is imported, which others of its kind may import.
    """

    kind: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        union = Union[choices(self.kind, source)]  # noqa: UP007
        return handler.generate_schema(Annotated[union, Field(discriminator="name")])
