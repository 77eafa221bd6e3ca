"""What the files of a cell will hold: told from its specification and from declarations alone."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from neuralrace.config.cell import Cell
from neuralrace.errors import did_you_mean
from neuralrace.extensions.registry import METRICS, OBSERVABLES, SOLUTIONS, Registry, Variable

FileKind = Literal["trajectory", "theory", "metrics"]
RUN_AXES = ("init_scale", "seed")
"""Axes that every file has, beside the dimensions of its variables."""
DIVERGED = {
    "diverged_at": Variable((), "step at which the run diverged, -1 if it did not", "steps")
}
COMMON_VARIABLES: dict[FileKind, dict[str, Variable]] = {
    "trajectory": {"loss": Variable(("time",), "training loss over all samples"), **DIVERGED},
    "theory": {},
    "metrics": DIVERGED,
}
"""Variables of each kind of file, whatever is configured."""
REGISTRIES: dict[FileKind, tuple[str, Registry[Any]]] = {
    "trajectory": ("record.observables", OBSERVABLES),
    "theory": ("solutions", SOLUTIONS),
    "metrics": ("metrics", METRICS),
}
"""Key of a specification that names what gives the variables of a file."""


@cache
def declared_variables(kind: FileKind, names: tuple[str, ...]) -> Mapping[str, Variable]:
    """Variables of a file; `{layer}` in a name stands for the number of a layer.

    Args:
        kind: of the file.
        names: the observables, solutions or metrics of the cell.
    """
    _, registry = REGISTRIES[kind]
    found = dict(COMMON_VARIABLES[kind])
    for name in names:
        found |= registry[name].declaration.outputs
    return found


@cache
def layer_pattern(variable: str) -> str:
    """The name with `{layer}` in place of the number that it ends in, as it is declared if so."""
    return re.sub(r"_[1-9]\d*$", "_{layer}", variable)


def why_absent(cell: Cell, kind: FileKind, variable: str) -> str | None:
    """Why a file of a cell will not have a variable, in words with the remedy; None if it will."""
    names = {"theory": cell.solutions, "metrics": cell.metrics}
    known = declared_variables(kind, names.get(kind, cell.record.observables))
    wanted = {variable, layer_pattern(variable)}
    if wanted & known.keys():
        return None
    key, registry = REGISTRIES[kind]
    givers = [
        name for name, entry in registry.items() if wanted & entry.declaration.variables.keys()
    ]
    if givers:
        return f"add {' or '.join(givers)} to its {key}"
    there = ", ".join(sorted(known)) or "nothing"
    return f"nothing in {key} gives it; {did_you_mean(variable, known)}there is {there}"
