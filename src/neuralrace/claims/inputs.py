"""Which cells claims and findings rest on, and whether these will have what is read of them."""

from collections.abc import Mapping
from functools import cache
from math import isclose
from typing import Any

from neuralrace.claims.spec import Claims, Measure, matching_cells, naming
from neuralrace.config.cell import Cell
from neuralrace.config.variables import RUN_AXES, declared_variables, why_absent
from neuralrace.errors import UserError, did_you_mean
from neuralrace.extensions.model import ConfigModel
from neuralrace.extensions.registry import Variable

CLOCKS = {"flow_time": "time", "snapshot_flow_time": "snapshot"}
"""Coordinates that are no dimensions, by the dimension that they lie along."""


def needed_cells(claims: Claims, cells: Mapping[str, Cell]) -> list[str]:
    """The cells whose metrics decide these claims and findings, sorted.

    Args:
        claims: of all papers.
        cells: all cells that there are, by `paper/experiment/label`.

    Raises:
        UserError: a glob that matches no cell; a variable, a dimension, a coordinate or the label
            of a run axis that a cell will not have.
    """
    found = cache(lambda globs: matching_cells(globs, list(cells)))
    needed: set[str] = set()
    for file, written in claims.items():
        for statement in written.statements:
            with naming(file, statement):
                for measure in (*statement.measures(), *statement.alternative_measures()):
                    for name in found(measure.cells):
                        _check(measure, name, cells[name])
                    needed.update(found(measure.cells))
    return sorted(needed)


def _check(measure: Measure, name: str, cell: Cell) -> None:
    """Refuses what is read of a cell that its metrics, as they are declared, do not give."""
    variable = declared_variables("metrics", cell.metrics).get(measure.metric)
    if variable is None:
        raise UserError(
            f"metric: {measure.metric!r}: {name} will not have it; "
            f"{why_absent(cell, 'metrics', measure.metric)}"
        )
    dims = (*RUN_AXES, *variable.dims)
    for dim in measure.select:
        if dim not in dims:
            raise UserError(
                f"select: {dim!r} is no dimension of {measure.metric} of {name}; "
                f"{did_you_mean(dim, dims)}it has {', '.join(dims)}"
            )
    for scale in measure.select.get("init_scale", ()):
        if isinstance(scale, str) or not any(
            isclose(scale, known, rel_tol=1e-9) for known in cell.init_scales
        ):
            raise UserError(
                f"select: init_scale: {scale!r} is no init scale of {name}; use one of "
                f"{', '.join(map(str, cell.init_scales))}"
            )
    sweep = measure.fit or measure.crossing
    if sweep and not (_along(sweep.x, variable) or _is_number(cell, sweep.x)):
        lines = sorted({*dims, *(c for c in CLOCKS if _along(c, variable))} - {"seed"})
        raise UserError(
            f"{type(sweep).__name__.lower()}.x: {sweep.x!r} is neither a coordinate of "
            f"{measure.metric} of {name} nor the key of a number in its specification; "
            f"{did_you_mean(sweep.x, lines)}it has {', '.join(lines)}"
        )


def _along(x: str, variable: Variable) -> bool:
    """Whether a variable can be followed along a coordinate."""
    return x == "init_scale" or CLOCKS.get(x, x) in variable.dims


def _is_number(cell: Cell, key: str) -> bool:
    """Whether a dotted key holds a number."""
    value: Any = cell
    for part in key.split("."):
        value = dict(value).get(part) if isinstance(value, ConfigModel | Mapping) else None
    return isinstance(value, int | float) and not isinstance(value, bool)
