"""Variables of the result files of a cell, from its specification and from declarations alone."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from neuralrace.config.cell import Cell
from neuralrace.errors import did_you_mean
from neuralrace.extensions.registry import METRICS, OBSERVABLES, SOLUTIONS, Registry, Variable

FileKind = Literal["trajectory", "theory", "metrics"]
RUN_AXES = ("init_scale", "seed")
"""Axes of every file, before the dimensions of its variables."""
DIVERGED = {
    "diverged_at": Variable((), "step at which the run diverged, -1 if it did not", "steps")
}
COMMON_VARIABLES: dict[FileKind, dict[str, Variable]] = {
    "trajectory": {"loss": Variable(("time",), "training loss over all samples"), **DIVERGED},
    "theory": {},
    "metrics": DIVERGED,
}
"""Variables that each kind of file has in any configuration."""
REGISTRIES: dict[FileKind, tuple[str, Registry[Any]]] = {
    "trajectory": ("record.observables", OBSERVABLES),
    "theory": ("solutions", SOLUTIONS),
    "metrics": ("metrics", METRICS),
}
"""Key of a specification that names the extensions which give the variables of a file."""


@cache
def declared_variables(kind: FileKind, names: tuple[str, ...]) -> Mapping[str, Variable]:
    """Variables of a file; `{layer}` in a name stands for the number of a layer.

    Args:
        kind: kind of the file.
        names: the observables, solutions or metrics of the cell.
    """
    _, registry = REGISTRIES[kind]
    variables = dict(COMMON_VARIABLES[kind])
    for name in names:
        variables |= registry[name].declaration.outputs
    return variables


@cache
def layer_pattern(variable: str) -> str:
    """The name as it is declared, with `{layer}` in place of a number at its end."""
    return re.sub(r"_[1-9]\d*$", "_{layer}", variable)


def why_absent(cell: Cell, kind: FileKind, variable: str) -> str | None:
    """Why a file of a cell will not have a variable, with a remedy; None if it will have it."""
    names = {"theory": cell.solutions, "metrics": cell.metrics}
    known = declared_variables(kind, names.get(kind, cell.record.observables))
    spellings = {variable, layer_pattern(variable)}
    if spellings & known.keys():
        return None
    key, registry = REGISTRIES[kind]
    sources = [
        name for name, entry in registry.items() if spellings & entry.declaration.variables.keys()
    ]
    if sources:
        return f"add {' or '.join(sources)} to its {key}"
    there = ", ".join(sorted(known)) or "nothing"
    return f"nothing in {key} gives it; {did_you_mean(variable, known)}there is {there}"
