"""What metrics declare is held to by plans and by files."""

import json
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
import yaml
from cells import cell_of, complete
from test_metrics import SPEC, flow, make_cell, measured, observe

from neuralrace.config.cell import Cell
from neuralrace.config.load import read_plan
from neuralrace.extensions.registry import METRICS, Entry, Metric

SHARED = {
    "growth_time": {"alignment", "receptive_fields"},
}
"""Variables of two metrics, which no cell can have both of."""


@pytest.fixture(scope="session")
def configured(request) -> dict[str, Cell]:
    """A configured cell of every metric."""
    experiments = {}
    for path in sorted((request.config.rootpath / "config").glob("*/experiments.yaml")):
        experiments |= yaml.safe_load(path.read_text())["experiments"]
    cells = read_plan({"experiments": experiments}, {}).cells.values()
    return {name: cell for cell in cells for name in cell.metrics}


def test_every_metric_is_configured(configured):
    assert set(configured) == set(METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_a_cell_without_what_a_metric_needs_is_refused(name, configured):
    cell = json.loads(configured[name].model_dump_json()) | {"metrics": [name]}
    cell_of(cell)
    declared = METRICS[name].declaration
    if declared.observables:
        bare = cell | {"record": cell["record"] | {"observables": []}}
        with pytest.raises(
            ValueError, match=f"'{name}': needs the observable .*record.observables"
        ):
            cell_of(bare)
    if declared.solutions:
        with pytest.raises(ValueError, match=f"'{name}': needs .*to solutions"):
            cell_of(cell | {"solutions": []})


def test_a_variable_is_of_one_metric():
    giving: dict[str, set[str]] = {}
    for name, metric in METRICS.items():
        for variable in metric.declaration.variables:
            giving.setdefault(variable, set()).add(name)
    assert {variable: names for variable, names in giving.items() if len(names) > 1} == SHARED


def test_metrics_that_give_one_variable_do_not_share_a_cell():
    spec = SPEC | {"metrics": ["alignment", "receptive_fields"]}
    with pytest.raises(ValueError, match=r"'receptive_fields': gives 'growth_.* 'alignment' does"):
        complete(spec)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"other": xr.DataArray(1.0)}, "metric 'stages' in here: 'other' is not declared"),
        ({"one": xr.DataArray([1.0], dims="mode")}, r"'one' has dimensions \('mode',\)"),
        ({"one": xr.DataArray(np.ones((1, 1)), dims=("layer", "pair"))}, r"\('pair', 'layer'\)"),
    ],
)
def test_what_is_not_declared_is_not_written(monkeypatch, given, message):
    cell = make_cell("stages")
    trajectory = observe(cell, flow(cell))
    declared = Metric(variables={"one": ("pair layer", "something")})
    entry = replace(METRICS["stages"], module="here", declaration=declared)
    monkeypatch.setattr(Entry, "load", lambda self: lambda cell: given)
    monkeypatch.setitem(METRICS._entries, "stages", entry)
    with pytest.raises(ValueError, match=message):
        measured(cell, trajectory)


def test_meaning_and_unit_are_those_declared(monkeypatch):
    cell = make_cell("stages")
    array = xr.DataArray([1.0], dims="mode", attrs={"note": "of the body"})
    declared = Metric(variables={"one": ("mode", "something", "tau")})
    entry = replace(METRICS["stages"], declaration=declared)
    monkeypatch.setattr(Entry, "load", lambda self: lambda cell: {"one": array})
    monkeypatch.setitem(METRICS._entries, "stages", entry)
    found = measured(cell, observe(cell, flow(cell)))
    assert found["one"].attrs == {"long_name": "something", "units": "tau"}
