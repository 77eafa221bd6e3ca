"""Whether declarations are sound: by themselves, and beside all others."""

from collections.abc import Iterator

from neuralrace.config.requirements import REQUIREMENTS
from neuralrace.config.variables import REGISTRIES, RUN_AXES, declared_variables, layer_pattern
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
    """What is wrong with a declaration, each with the module that it stands in."""
    where = f"{entry.module}: {registry.kind[:-1]} {entry.name!r}"
    found = [] if entry.text else ["has no docstring"]
    if isinstance(entry.declaration, Figure):
        found += _of_figure(entry)
    else:
        found += [*_by_itself(entry), *_beside_others(registry, entry)]
    return [f"{where} {fault}" for fault in found]


def sound(registry: Registry) -> dict[str, Entry]:
    """The entries that can be tried out."""
    return {name: entry for name, entry in registry.items() if not faults(registry, entry)}


def names(declared: str) -> set[str]:
    """All names in a text of a declaration, alternatives among them."""
    return set(declared.replace("|", " ").split())


def _by_itself(entry: Entry) -> Iterator[str]:
    declaration = entry.declaration
    if not declaration.variables:
        yield "gives nothing"
    for name in names(declaration.requires) - set(REQUIREMENTS):
        yield f"needs {name!r}, which is no function of neuralrace.config.requirements"
    if isinstance(declaration, Metric):
        for name in names(declaration.observables) - set(OBSERVABLES):
            yield f"needs the observable {name!r}, which does not exist"
        starred = {f"*{variable}" for variable in ("", *theory_variables())}
        for name in names(declaration.solutions) - {*SOLUTIONS, *starred}:
            yield f"needs the solution {name!r}, which does not exist"
    for name, variable in declaration.outputs.items():
        dims = list(variable.dims)
        if isinstance(declaration, Observable):
            clock = "snapshot" if declaration.snapshots else "time"
            if dims[:1] != [clock]:
                yield f"gives {name!r}, whose first dimension must be {clock!r}"
            dims = [dim for dim in dims[1:] if not dim.startswith("unit_{")]
        for dim in dims:
            if dim not in COORDINATES or dim in RUN_AXES:
                yield f"gives {name!r} with the dimension {dim!r}, which is none of records.schema"
        if not variable.long_name or not variable.units:
            yield f"gives {name!r} without meaning or unit"


def _of_figure(entry: Entry[Figure]) -> Iterator[str]:
    letters = {letter for letter in entry.declaration.layout if letter.isalpha()}
    written = panels(entry)
    for letter in sorted(letters ^ set(written)):
        where = "layout" if letter in letters else "module"
        yield f"has panel {letter!r} in its {where} alone; a function panel_{letter} draws it"
    for letter in sorted(letters & set(written)):
        if not written[letter]:
            yield f"has no docstring of panel_{letter}, which is its caption"
    for letter in sorted(set(entry.declaration.cf) - letters):
        yield f"sets panel {letter!r} beside another, and has no such panel"
    if entry.declaration.height <= 0:
        yield "has no height"
    for kinds in entry.declaration.reads.values():
        for kind in sorted(set(kinds) - set(REGISTRIES)):
            yield f"reads {kind!r}, which is none of {', '.join(REGISTRIES)}"
        for kind, (_, registry) in REGISTRIES.items():
            known = declared_variables(kind, tuple(registry))
            for name in sorted(names(kinds.get(kind, ""))):
                if name not in known and layer_pattern(name) not in known:
                    yield f"reads {name!r} of {kind}, which nothing gives"


def _beside_others(registry: Registry, entry: Entry) -> Iterator[str]:
    for other in registry.values():
        for name in sorted(set(entry.declaration.variables) & set(other.declaration.variables)):
            if registry is METRICS:
                # those of one package are told apart by their needs: no cell can have both
                clash = entry.module.partition(".")[0] != other.module.partition(".")[0]
            else:
                clash = entry.declaration.outputs[name] != other.declaration.outputs[name]
            if clash:
                yield f"gives {name!r}, as {other.name!r} in {other.module} does otherwise"
