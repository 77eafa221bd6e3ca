"""Inputs of claims: the cells that are read, checked against the variables that they will have."""

from collections.abc import Mapping
from functools import cache
from math import isclose
from typing import Any

from neuralrace.claims.spec import Claims, Measure, errors_located, matching_cells
from neuralrace.config.cell import Cell
from neuralrace.config.variables import RUN_AXES, declared_variables, why_absent
from neuralrace.errors import UserError, did_you_mean
from neuralrace.extensions.model import ConfigModel
from neuralrace.extensions.registry import Variable

CLOCKS = {"flow_time": "time", "snapshot_flow_time": "snapshot"}
"""Coordinates along a dimension of another name, with that dimension."""


def needed_cells(claims: Claims, cells: Mapping[str, Cell]) -> list[str]:
    """The cells whose metrics decide these claims and findings, sorted.

    Args:
        claims: of all papers.
        cells: all configured cells, by `paper/experiment/label`.

    Raises:
        UserError: a glob that matches no cell; a variable, dimension, coordinate or label of a run
            axis that the metrics of a cell will not have.
    """
    match = cache(lambda globs: matching_cells(globs, list(cells)))
    needed: set[str] = set()
    for file, content in claims.items():
        for statement in content.statements:
            with errors_located(file, statement):
                for measure in (*statement.measures(), *statement.other_measures()):
                    for name in match(measure.cells):
                        _check(measure, name, cells[name])
                    needed.update(match(measure.cells))
    return sorted(needed)


def _check(measure: Measure, name: str, cell: Cell) -> None:
    """Refuses a measure that the metrics of a cell, as they are declared, cannot give."""
    variable = declared_variables("metrics", cell.metrics).get(measure.metric)
    if variable is None:
        raise UserError(
            f"{name} will not have this metric",
            key="metric",
            value=measure.metric,
            remedy=why_absent(cell, "metrics", measure.metric) or "",
        )
    dims = (*RUN_AXES, *variable.dims)
    for dim in measure.select:
        if dim not in dims:
            raise UserError(
                f"is no dimension of {measure.metric} of {name}",
                key="select",
                value=dim,
                remedy=f"{did_you_mean(dim, dims)}it has {', '.join(dims)}",
            )
    for scale in measure.select.get("init_scale", ()):
        if isinstance(scale, str) or not any(
            isclose(scale, known, rel_tol=1e-9) for known in cell.init_scales
        ):
            raise UserError(
                f"is no init scale of {name}",
                key="select.init_scale",
                value=scale,
                remedy=f"use one of {', '.join(map(str, cell.init_scales))}",
            )
    sweep = measure.fit or measure.crossing
    if sweep and not (_along(sweep.x, variable) or _is_number(cell, sweep.x)):
        coordinates = sorted({*dims, *(c for c in CLOCKS if _along(c, variable))} - {"seed"})
        raise UserError(
            f"is neither a coordinate of {measure.metric} of {name} nor the key of a number in its "
            "specification",
            key=f"{type(sweep).__name__.lower()}.x",
            value=sweep.x,
            remedy=f"{did_you_mean(sweep.x, coordinates)}it has {', '.join(coordinates)}",
        )


def _along(x: str, variable: Variable) -> bool:
    """Whether a coordinate lies along a dimension of a variable."""
    return x == "init_scale" or CLOCKS.get(x, x) in variable.dims


def _is_number(cell: Cell, key: str) -> bool:
    """Whether a dotted key holds a number."""
    value: Any = cell
    for part in key.split("."):
        value = dict(value).get(part) if isinstance(value, ConfigModel | Mapping) else None
    return isinstance(value, int | float) and not isinstance(value, bool)
