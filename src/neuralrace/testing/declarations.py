"""Checks of declarations: of each by itself, and for conflicts with all others."""

from collections.abc import Iterator

from neuralrace.config.requirements import REQUIREMENTS
from neuralrace.config.variables import REGISTRIES, RUN_AXES, declared_variables, layer_pattern
from neuralrace.errors import did_you_mean
from neuralrace.extensions.registry import (
    FIGURES,
    METRICS,
    OBSERVABLES,
    SOLUTIONS,
    Entry,
    Figure,
    Metric,
    Observable,
    Registry,
)
from neuralrace.figures.caption import panels
from neuralrace.results.schema import COORDINATES, theory_variables

EXTENSIONS = (METRICS, SOLUTIONS, OBSERVABLES, FIGURES)


def faults(registry: Registry, entry: Entry) -> list[str]:
    """Messages about what is wrong with a declaration; each begins with its module and name."""
    messages = [] if entry.text else ["there is no docstring"]
    if isinstance(entry.declaration, Figure):
        messages += _figure_faults(entry)
    else:
        messages += [*_own_faults(entry), *_conflicts(registry, entry)]
    return [f"{entry.module}: {registry.kind[:-1]} {entry.name!r}: {text}" for text in messages]


def valid_entries(registry: Registry) -> dict[str, Entry]:
    """The entries whose declarations have no faults."""
    return {name: entry for name, entry in registry.items() if not faults(registry, entry)}


def names(declared: str) -> set[str]:
    """All names in a field of a declaration, including alternatives."""
    return set(declared.replace("|", " ").split())


def _own_faults(entry: Entry) -> Iterator[str]:
    declaration = entry.declaration
    if not declaration.variables:
        yield "`variables` is empty; declare what the function returns"
    fields = [("requires", "function of neuralrace.config.requirements", set(REQUIREMENTS))]
    if isinstance(declaration, Metric):
        starred = {f"*{variable}" for variable in ("", *theory_variables())}
        fields += [
            ("observables", "registered observable", set(OBSERVABLES)),
            ("solutions", "registered solution", {*SOLUTIONS, *starred}),
        ]
    for field, meaning, known in fields:
        for name in sorted(names(getattr(declaration, field)) - known):
            meant = did_you_mean(name, known)
            yield f"`{field}` names {name!r}, which is no {meaning}; {meant}correct the name"
    for name, variable in declaration.outputs.items():
        where = f"`variables` declares {name!r}"
        dims = list(variable.dims)
        if isinstance(declaration, Observable):
            first = "snapshot" if declaration.snapshots else "time"
            if dims[:1] != [first]:
                yield f"{where} with the dimensions {dims}; the first one must be {first!r}"
            dims = [dim for dim in dims[1:] if not dim.startswith("unit_{")]
        known = COORDINATES.keys() - set(RUN_AXES)
        for dim in dims:
            if dim not in known:
                meant = did_you_mean(dim, known)
                yield (
                    f"{where} with the dimension {dim!r}; {meant}use a dimension of "
                    f"neuralrace.results.schema.COORDINATES except {' and '.join(RUN_AXES)}"
                )
        if not variable.long_name or not variable.units:
            yield f"{where} without a meaning or a unit; use (dimensions, meaning, unit)"


def _figure_faults(entry: Entry[Figure]) -> Iterator[str]:
    declaration = entry.declaration
    letters = {letter for letter in declaration.layout if letter.isalpha()}
    captions = panels(entry)
    for letter in sorted(letters - set(captions)):
        yield f"`layout` has panel {letter!r}; add a function panel_{letter} to the module"
    for letter in sorted(set(captions) - letters):
        yield f"`layout` has no panel {letter!r}; add it, or remove the function panel_{letter}"
    for letter in sorted(letters & set(captions)):
        if not captions[letter]:
            yield f"panel_{letter} has no docstring, which is the caption of the panel"
    for letter in sorted(set(declaration.cf) - letters):
        yield f"`cf` names panel {letter!r}, which is not in `layout`"
    if declaration.height <= 0:
        yield "`height` must be positive"
    for files in declaration.reads.values():
        for kind in sorted(set(files) - set(REGISTRIES)):
            yield f"`reads` names files {kind!r}; use {', '.join(REGISTRIES)}"
        for kind, (_, registry) in REGISTRIES.items():
            known = declared_variables(kind, tuple(registry))
            for name in sorted(names(files.get(kind, ""))):
                if name not in known and layer_pattern(name) not in known:
                    yield f"`reads` names the variable {name!r} of {kind}, which nothing declares"


def _conflicts(registry: Registry, entry: Entry) -> Iterator[str]:
    for other in registry.values():
        for name in sorted(set(entry.declaration.variables) & set(other.declaration.variables)):
            if registry is METRICS:
                # metrics of one package exclude each other by requirements: no cell can have both
                conflict = entry.module.partition(".")[0] != other.module.partition(".")[0]
            else:
                conflict = entry.declaration.outputs[name] != other.declaration.outputs[name]
            if conflict:
                yield (
                    f"`variables` declares {name!r}, which {other.name!r} in {other.module} "
                    "declares differently; use another name"
                )
