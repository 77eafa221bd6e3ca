"""Declarations of metrics: cells and files agree with them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import yaml
from networks_in_memory import random_networks
from weight_paths import TWO_MODES, arbitrary_path, linear_cell, observe

from builders import (
    REPOSITORY,
    build_cell,
    cell_with_requirements,
    metrics_of,
    solved_theory,
)
from neuralrace.config.cell import Cell
from neuralrace.config.load import read_plan
from neuralrace.config.requirements import unmet
from neuralrace.extensions.registry import METRICS, Entry, Metric
from neuralrace.results.analysis import to_frame
from neuralrace.results.cells import IDENTIFIER, CellResults
from neuralrace.results.schema import COORDINATES

SHARED = {
    "growth_time": {"alignment", "receptive_fields"},
}
"""Variables of two metrics, which no cell can have both of."""


@pytest.fixture(scope="module")
def configured() -> dict[str, Cell]:
    """A configured cell for every metric."""
    experiments = {}
    config = REPOSITORY / "config"
    for path in (*sorted(config.glob("*/experiments.yaml")), config / "benchmark" / "tasks.yaml"):
        experiments |= yaml.safe_load(path.read_text())["experiments"]
    cells = read_plan({"experiments": experiments}, {}).cells.values()
    return {name: cell for cell in cells for name in cell.metrics}


def test_every_metric_is_configured(configured):
    assert set(configured) == set(METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_missing_observables_and_solutions_are_named(name, configured):
    cell = json.loads(configured[name].model_dump_json()) | {"metrics": [name]}
    build_cell(cell)
    declaration = METRICS[name].declaration
    if declaration.observables:
        bare = cell | {"record": cell["record"] | {"observables": []}}
        with pytest.raises(
            ValueError, match=f"'{name}': needs the observable .*record.observables"
        ):
            build_cell(bare)
    if declaration.solutions:
        with pytest.raises(ValueError, match=f"'{name}': needs .*to solutions"):
            build_cell(cell | {"solutions": []})


def test_every_variable_belongs_to_one_metric():
    metrics: dict[str, set[str]] = {}
    for name, metric in METRICS.items():
        for variable in metric.declaration.variables:
            metrics.setdefault(variable, set()).add(name)
    assert {variable: names for variable, names in metrics.items() if len(names) > 1} == SHARED


def test_metrics_with_a_common_variable_do_not_share_a_cell():
    spec = TWO_MODES | {"metrics": ["alignment", "receptive_fields"]}
    with pytest.raises(ValueError, match=r"'receptive_fields': gives 'growth_.* 'alignment' does"):
        cell_with_requirements(spec["metrics"], spec)


RELU = {"name": "layered", "hidden": [6], "activation": "relu"}
RELU_XOR = TWO_MODES | {"dataset": {"name": "xor", "margin": 0.75}, "network": RELU}
SQUARE = {"dataset": {"name": "contextual", "contexts": 2, "objects": 2}}
GATED = {"name": "gated", "hidden": [3], "gates": {"name": "per_example"}}
DEEP, BIAS, LINEAR = {"hidden": [4, 4]}, {"bias": True}, {"activation": "linear"}
CROSS_ENTROPY = {"loss": {"name": "cross_entropy", "normalisation": "mean"}}


def contextual(**dataset):
    return {"dataset": {"name": "contextual", "contexts": 3, **dataset}}


WHOLE = contextual()


@pytest.mark.parametrize(
    ("metric", "changes", "message"),
    [
        *(
            (metric, changes | {"network": RELU | change}, f"metrics: '{metric}': .*network.{key}")
            for metric, changes in (
                ("decision_boundary", {}),
                ("realisable_patterns", SQUARE),
                ("uniqueness", WHOLE),
            )
            for key, change in (("hidden", DEEP), ("bias", BIAS), ("activation", LINEAR))
        ),
        *(
            (
                metric,
                WHOLE | {"network": RELU | LINEAR},
                f"metrics: '{metric}': .*network.activation",
            )
            for metric in ("context_selectivity", "gate_flips", "gate_identification")
        ),
        ("cell_types", {"dataset": TWO_MODES["dataset"]}, "dataset.name: 'modes'.* use xor"),
        ("cell_types", {"network": RELU | LINEAR}, "activation: 'linear'.* use relu"),
        ("cell_types", {"network": RELU | DEEP}, "give exactly one hidden layer"),
        ("cell_types", {"network": RELU | BIAS}, "leave biases out"),
        ("cell_types", {"network": GATED}, "network.name: 'gated'.* use layered"),
        ("context_selectivity", {}, "dataset.name: 'xor'.* use one with contexts"),
        ("decision_boundary", {"dataset": {"name": "xor"}}, "dataset.margin: is missing"),
        ("decision_boundary", SQUARE, "dataset.name: 'contextual'.* use xor and give its margin"),
        ("fitted_start", SQUARE, "dataset.name: 'contextual'.* use xor"),
        ("layer_linearity", {}, r"network.hidden: \[6\].* give two layers or more"),
        ("layer_linearity", {"network": RELU | DEEP | BIAS}, "network.bias: True"),
        ("realisable_patterns", {}, "dataset.name: 'xor'.* use one with contexts"),
        ("uniqueness", {}, "dataset.name: 'xor'.* use contextual"),
        ("uniqueness", contextual(part="residual"), "dataset.part: 'residual'.* use whole"),
        ("uniqueness", contextual(structures=["ring"]), r"\['ring'\].* use hierarchy alone"),
        (
            "uniqueness",
            contextual(structures=["hierarchy", "ring", "hierarchy"]),
            "use hierarchy alone",
        ),
        ("uniqueness", WHOLE | {"init": {"name": "orthogonal"}}, "'orthogonal'.* use normal"),
        (
            "uniqueness",
            WHOLE | {"training": TWO_MODES["training"] | CROSS_ENTROPY},
            "training.loss.name: 'cross_entropy'.* use squared_error",
        ),
    ],
)
def test_unsuitable_cell_is_refused(metric, changes, message):
    with pytest.raises(ValueError, match=message):
        cell_with_requirements([metric], RELU_XOR, **changes)


# Values ------------------------------------------------------------------------------------------


@pytest.fixture
def replace_metric(monkeypatch):
    """Puts a function with a declaration in place of the metric `stages`."""

    def replace_by(variables, values):
        declaration = Metric(variables=variables)
        entry = replace(METRICS["stages"], module="here", declaration=declaration)
        monkeypatch.setattr(Entry, "load", lambda self: lambda cell: values)
        monkeypatch.setitem(METRICS._entries, "stages", entry)

    return replace_by


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"other": xr.DataArray(1.0)}, "metric 'stages' in here: 'other' is not declared"),
        ({"one": xr.DataArray([1.0], dims="mode")}, r"'one' has dimensions \('mode',\)"),
        ({"one": xr.DataArray(np.ones((1, 1)), dims=("layer", "pair"))}, r"\('pair', 'layer'\)"),
    ],
)
def test_undeclared_variables_and_dimensions_are_refused(replace_metric, values, message):
    replace_metric({"one": ("pair layer", "something")}, values)
    cell = linear_cell(["stages"])
    with pytest.raises(ValueError, match=message):
        metrics_of(cell)


def test_meaning_and_unit_are_the_declared_ones(replace_metric):
    array = xr.DataArray([1.0], dims="mode", attrs={"note": "of the function"})
    replace_metric({"one": ("mode", "something", "tau")}, {"one": array})
    cell = linear_cell(["stages"])
    metrics = metrics_of(cell)
    assert metrics["one"].attrs == {"long_name": "something", "units": "tau"}


def test_flow_times_are_in_units_of_tau():
    times = {
        name: variable.units
        for metric in METRICS.values()
        for name, variable in metric.declaration.outputs.items()
        if name.endswith("_time") and "_over_" not in name
    }
    assert len(times) > 8
    assert set(times.values()) == {"tau"}


# Files and tables --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def all_metrics():
    plain = linear_cell([])
    fitting = {n for n, metric in METRICS.items() if not unmet(plain, metric.declaration.requires)}
    other_networks = {"pathway_share", "receptive_field_fit", "receptive_fields", "zero_shot"}
    names = sorted(fitting - other_networks)
    cell = linear_cell(names, solutions=["aligned_modes", "flow"])
    theory = solved_theory(cell)
    trajectory = observe(cell, arbitrary_path(cell))
    for name in ("rate_gap", "relative_rate_gap", "relative_norm_rate_gap"):
        trajectory[name] = trajectory["imbalance_norm"]
    return metrics_of(cell, trajectory, theory)


def test_every_variable_and_coordinate_is_described(all_metrics):
    for name, array in all_metrics.data_vars.items():
        assert set(array.attrs) == {"long_name", "units"}, name
        assert array.attrs["long_name"], name
        assert array.dims[:2] == ("init_scale", "seed") or "seed" not in array.dims, name
    assert set(all_metrics.dims) <= set(all_metrics.coords)
    for name, coordinate in all_metrics.coords.items():
        assert coordinate.attrs["long_name"] == COORDINATES[name]
        units = {"time": "epochs", "flow_time": "tau"}
        assert coordinate.attrs["units"] == units.get(name, "1")
    assert all_metrics.attrs["kind"] == "metrics"
    assert all_metrics.attrs["cell"] == "main"


def table_of(*datasets):
    """The table of metrics of several cells."""
    names = ("/".join(each.attrs[key] for key in IDENTIFIER) for each in datasets)
    cells = zip(names, datasets, strict=True)
    return to_frame([CellResults(name, Path(), metrics=each) for name, each in cells])


def test_table_has_a_row_for_every_number_and_no_curves(all_metrics):
    other = all_metrics.assign_attrs(cell="other")
    table = table_of(all_metrics, other)
    numbers = {n: a for n, a in all_metrics.data_vars.items() if "time" not in a.dims}
    curves = set(all_metrics.data_vars) - set(numbers)
    assert {"strength_bound", "norm_product"} <= curves
    assert set(table["metric"]) == set(numbers)
    assert len(table) == 2 * sum(array.size for array in numbers.values())
    assert list(table.columns[:4]) == ["paper", "experiment", "cell", "metric"]
    assert list(table.columns[-2:]) == ["value", "units"]
    where = table["metric"].eq("final_cosine") & table["cell"].eq("other")
    row = table[where & table["init_scale"].eq(0.5) & table["seed"].eq(1) & table["mode"].eq(2)]
    expected = all_metrics["final_cosine"].sel(init_scale=0.5, seed=1, mode=2)
    assert row["value"].tolist() == [float(expected)]
    assert table.loc[table["metric"] == "diverged_at", "units"].unique().tolist() == ["steps"]


def test_table_has_values_without_seeds():
    cell = cell_with_requirements(["plateaus", "realisable_patterns"], RELU_XOR, **SQUARE)
    metrics = metrics_of(cell, **random_networks(cell, (6, 4), (9, 6)))
    table = table_of(metrics)
    assert {"patterns", "level_time_variation"} <= set(table["metric"])
    assert set(table["metric"]) == set(map(str, metrics.data_vars))
    assert len(table) == sum(array.size for array in metrics.data_vars.values())


def test_table_has_no_curves_over_snapshots():
    cell = cell_with_requirements(["decision_boundary"], RELU_XOR)
    metrics = metrics_of(cell, **random_networks(cell, (6, 3), (1, 6)))
    assert "xor_share_curve" in metrics
    assert not any(name.endswith("_curve") for name in table_of(metrics)["metric"])
