"""Cells with what their metrics declare that they need."""

import json
from pathlib import Path
from typing import Any

import xarray as xr

from neuralrace.config.cell import Cell
from neuralrace.config.requirements import unmet
from neuralrace.extensions.registry import METRICS, OBSERVABLES, SOLUTIONS
from neuralrace.results.analysis import to_frame
from neuralrace.results.cells import IDENTIFIER, CellResults


def cell_of(spec: dict[str, Any]) -> Cell:
    """The cell as it is written."""
    return Cell.model_validate_json(json.dumps(spec))


def made(cell: Cell, trajectory: xr.Dataset, theory: xr.Dataset | None = None) -> CellResults:
    """The results of a cell, in memory."""
    return CellResults("paper/experiment/main", Path(), cell, trajectory, theory)


def complete(spec: dict[str, Any]) -> Cell:
    """The cell, with observables and solutions of its metrics beside those that it names.

    Of several that will do, the first that is for such a run is taken where none is named.
    """
    ensemble = cell_of({**spec, "metrics": []})
    record = spec["record"]
    observables, solutions = list(record.get("observables", ())), list(spec.get("solutions", ()))
    for name in spec["metrics"]:
        declared = METRICS[name].declaration
        for wanted, given, registry in (
            (declared.observables, observables, OBSERVABLES),
            (declared.solutions, solutions, SOLUTIONS),
        ):
            for each in wanted.split():
                names = each.split("|")
                if not each.startswith("*") and not set(names) & set(given):
                    fit = (
                        n for n in names if not unmet(ensemble, registry[n].declaration.requires)
                    )
                    given.append(next(fit, names[0]))
    record = record | {"observables": observables}
    return cell_of(spec | {"record": record, "solutions": solutions})


def tabulated(*datasets):
    """The table of metrics of several cells."""
    return to_frame(
        [
            CellResults("/".join(each.attrs[key] for key in IDENTIFIER), Path(), metrics=each)
            for each in datasets
        ]
    )
