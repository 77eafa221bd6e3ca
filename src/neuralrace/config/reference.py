"""The reference of all metrics, solutions and observables, generated from their declarations.

Declarations are read as source, so that neither JAX nor xarray is loaded.
"""

import inspect
import re
from collections.abc import Iterator

from neuralrace.config.requirements import REQUIREMENTS
from neuralrace.extensions.registry import (
    METRICS,
    OBSERVABLES,
    SOLUTIONS,
    Entry,
    Metric,
    Observable,
    Registry,
)

INTRODUCTION = """# Metrics, solutions and observables

For anyone who writes a configuration or opens result files: every name that a configuration can \
list under `metrics`, `solutions` and `record.observables`, with the variables that it writes. \
Every variable also has the axes `init_scale` and `seed`; units are 1 where none is given. \
See also [all keys](keys.md) and the [axes](data_model.md#axes) of result files."""
KINDS = {
    "Metric": (METRICS, "Computed from trajectory and theory, into `metrics.nc`."),
    "Solution": (SOLUTIONS, "Theory solved from the initial weights of a run, into `theory.nc`."),
    "Observable": (OBSERVABLES, "Recorded while networks train, into `trajectory.nc`."),
}


def reference() -> str:
    """The whole page, as Markdown."""
    contents = (
        f"- [{kind}s](#{kind.lower()}s): {', '.join(_link(kind, name) for name in registry)}"
        for kind, (registry, _) in KINDS.items()
    )
    parts = [INTRODUCTION, "\n".join(contents)]
    for kind, (registry, what) in KINDS.items():
        parts += [f"## {kind}s", what, *_entries(kind, registry)]
    return "\n\n".join(parts) + "\n"


def _entries(kind: str, registry: Registry) -> Iterator[str]:
    for name, entry in registry.items():
        yield f"### {kind} `{name}`"
        yield from _paragraphs(entry.text)
        if conditions := "\n".join(f"- {each}" for each in _conditions(entry)):
            yield conditions
        yield _table(entry)


def _conditions(entry: Entry) -> Iterator[str]:
    """What an entry needs and does, a line each."""
    declaration = entry.declaration
    for each in declaration.requires.split():
        words = (
            _line(inspect.getdoc(REQUIREMENTS[name]) or "").rstrip(".") for name in each.split("|")
        )
        yield f"Needs: {'; or '.join(words)} (`{each.replace('|', '` or `')}`)."
    if isinstance(declaration, Metric):
        for kind, names in (
            ("Observable", declaration.observables),
            ("Solution", declaration.solutions),
        ):
            if names.startswith("*"):
                given = f" that gives `{names[1:]}`" if names[1:] else ", whichever"
                yield f"Needs a [{kind.lower()}](#{kind.lower()}s) at least{given}."
            elif names:
                needed = (
                    " or ".join(_link(kind, name) for name in each.split("|"))
                    for each in names.split()
                )
                yield f"{kind}s: {'; '.join(needed)}."
        if declaration.trains:
            yield "Trains networks of its own, to compare with."
    if isinstance(declaration, Observable) and declaration.snapshots:
        yield "Recorded at snapshots."
    if source := re.search(r"(?s)^Source: (.+?)(?=\n\n|\Z)", entry.text, re.MULTILINE):
        yield f"Source: {_line(source[1])}"


def _paragraphs(docstring: str) -> Iterator[str]:
    """The text before sections such as `Args:`; the source is shown below the conditions."""
    for paragraph in docstring.split("\n\n"):
        if re.match(r"(Args|Returns|Raises|Attributes|Example):\n", paragraph):
            return
        if not paragraph.startswith("Source: "):
            yield _line(paragraph)


def _table(entry: Entry) -> str:
    rows = [
        f"| `{name}` | {', '.join(f'`{dim}`' for dim in each.dims)} | {each.units} "
        f"| {_line(each.long_name)} |"
        for name, each in entry.declaration.outputs.items()
    ]
    return "\n".join(["| Variable | Dimensions | Unit | Meaning |", "|---|---|---|---|", *rows])


def _link(kind: str, name: str) -> str:
    return f"[`{name}`](#{kind.lower()}-{name})"


def _line(text: str) -> str:
    """A paragraph as one line, where no sign divides a table or begins emphasis."""
    return re.sub(r"([|*])", r"\\\1", " ".join(text.split()))
