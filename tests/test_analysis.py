"""Cells as one tree, one dataset and one table."""

import doctest
import inspect
import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import neuralrace
from neuralrace.errors import UserError
from neuralrace.records.files import write
from neuralrace.records.results import CellResults, Results
from neuralrace.records.schema import SCHEMA_VERSION
from neuralrace.seal import fingerprint

DESCRIBED = {"long_name": "made up", "units": "1"}
PUBLIC = {name: getattr(neuralrace, name) for name in neuralrace.__all__ if name != "__version__"}
PUBLIC |= {each.__name__: each for each in (CellResults, Results)}


def cell(root, name, spec, scales=(1.0,), solution=()):
    """A trajectory and metrics, whose half times are ten over the learning rate, plus the mode."""
    paper, experiment, label = name.split("/")
    attrs = dict.fromkeys(("code_sha256", "versions"), "x")
    attrs |= {"paper": paper, "experiment": experiment, "cell": label}
    attrs |= {"spec": json.dumps(spec), "schema": SCHEMA_VERSION}
    attrs["spec_sha256"] = fingerprint(attrs["spec"])
    runs = {"init_scale": list(scales), "seed": [0, 1]}
    shape = (len(scales), 2)
    trajectory = xr.Dataset(attrs=attrs | {"kind": "trajectory"}, coords=runs | {"time": [0, 5]})
    rate = spec["training"]["learning_rate"]
    trajectory = trajectory.assign_coords(flow_time=("time", [0.0, 5 * rate]))
    units = (*shape, spec["network"]["hidden"][0] if spec["network"]["hidden"] else 1)
    trajectory["weight"] = (("init_scale", "seed", "unit_1"), np.ones(units), DESCRIBED)
    loss = np.broadcast_to([1.0, 0.0], (*shape, 2))
    trajectory["loss"] = (("init_scale", "seed", "time"), loss, DESCRIBED)
    metrics = xr.Dataset(attrs=attrs | {"kind": "metrics"}, coords=runs | {"mode": [1, 2]})
    half = np.broadcast_to(10 / rate + metrics["mode"].values, (*shape, 2))
    metrics["half_time"] = (("init_scale", "seed", "mode"), half, DESCRIBED)
    metrics["diverged_at"] = (("init_scale", "seed"), np.full(shape, -1), DESCRIBED)
    metrics["discretisation_error"] = (("init_scale", "seed"), np.full(shape, rate), DESCRIBED)
    metrics["single"] = ((), 3.5, DESCRIBED)
    if solution:
        metrics["error"] = ("solution", np.arange(len(solution)) / 10, DESCRIBED)
        metrics = metrics.assign_coords(solution=list(solution))
    write(trajectory, root / name / "trajectory.nc")
    write(metrics, root / name / "metrics.nc")


def spec(rate=0.01, hidden=(16,), **more):
    network = {"hidden": list(hidden), "activation": more.pop("activation", "linear")}
    return {"network": network, "training": {"learning_rate": rate, "steps": 10}} | more


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two sweeps and a cell by itself, with a claim of one sweep."""
    monkeypatch.chdir(tmp_path)
    root = Path("results")
    for rate in (0.02, 0.005, 0.01):
        cell(root, f"deep_linear/step_size/learning_rate-{rate}", spec(rate, seeds=2))
    for hidden, solution in (((2,), ()), ((16,), ("flow", "exact"))):
        cell(root, f"deep_linear/exact/hidden-{hidden[0]}", spec(0.01, hidden), (1.0,), solution)
    cell(root, "layer_dynamics/relu/main", spec(activation="relu"))
    claim = {
        "id": "slower", "paper": "deep_linear", "kind": "slope", "statement": "s", "locator": "l",
        "quote": "q", "status": "reproduced", "source_setup": {"locator": "l", "printed": {}},
        "interval": [0.9, 1.1],
        "metrics": {"half_time": ["deep_linear/step_size/learning_rate-0.02"]},
    }  # fmt: skip
    (root / "claims.json").write_text(json.dumps([claim]))
    return root


# Examples --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_shows_an_example_that_runs(folder, name):
    text = inspect.getdoc(PUBLIC[name]) or ""
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert "\nExample:\n    >>> import " in text
    assert any(each.want for each in example.examples), "nothing comes out of it"
    assert doctest.DocTestRunner().run(example).failed == 0


def test_the_front_door_shows_what_there_is():
    assert set(neuralrace.__all__) <= set(dir(neuralrace))
    assert re.match(r"\d+\.\d+", neuralrace.__version__)
    with pytest.raises(AttributeError, match="no attribute 'to_frames'"):
        _ = neuralrace.to_frames


# Tree ------------------------------------------------------------------------------------------


def test_a_tree_has_a_node_for_every_file(folder):
    tree = neuralrace.open_tree(folder)
    assert set(tree.children) == {"deep_linear", "layer_dynamics"}
    node = tree["deep_linear/exact/hidden-16"]
    assert set(node.children) == {"trajectory", "metrics"}
    assert node.attrs["network.hidden"] == [16]
    assert node["metrics"]["solution"].values.tolist() == ["flow", "exact"]
    assert not node["trajectory"]["loss"].variable._in_memory


def test_a_tree_is_selected_by_place_and_by_key(folder):
    names = {f"/{name}" for name in neuralrace.open_results(folder)}
    at = {(): names, ("paper", "layer_dynamics"): {"/layer_dynamics/relu/main"}}
    at["training__learning_rate", 0.01] = {name for name in names if not re.search("0.0[02]", name)}
    at["paper", "nobody"] = set()
    for select, found in at.items():
        tree = neuralrace.open_tree(folder, **dict([select] if select else []))
        assert {name for name in tree.groups if name.count("/") == 3} == found
    with pytest.raises(UserError, match=r"'training\.speed' is no key"):
        neuralrace.open_tree(folder, training__speed=1)
    other = folder / "layer_dynamics/relu/main/metrics.nc"
    other.write_bytes(b"nothing")
    neuralrace.open_tree(folder, paper="deep_linear")
    with pytest.raises(UserError, match=r"metrics\.nc: cannot be read .*damaged"):
        neuralrace.open_tree(folder)


# Sweeps ----------------------------------------------------------------------------------------


def test_swept_numbers_become_a_sorted_axis(folder):
    sweep = neuralrace.combine(neuralrace.open_results(folder).cells("step_size"))
    rates = sweep["training.learning_rate"]
    assert rates.values.tolist() == [0.005, 0.01, 0.02]
    for rate in rates.values:
        one = sweep["half_time"].sel({"training.learning_rate": rate, "mode": 2})
        np.testing.assert_array_equal(one, np.full((1, 2), 10 / rate + 2))
    assert sweep["half_time"].attrs == DESCRIBED
    assert sweep.attrs["experiment"] == "step_size"
    assert "spec" not in sweep.attrs


def test_curves_keep_the_clock_of_each_cell(folder):
    sweep = neuralrace.combine(neuralrace.open_results(folder).cells("step_size"), "trajectory")
    assert sweep["flow_time"].sel({"training.learning_rate": 0.02, "time": 5}) == 0.1


def test_layers_of_other_widths_are_joined_by_number(folder):
    sweep = neuralrace.combine(neuralrace.open_results(folder).cells("exact"), "trajectory")
    assert sweep["network.hidden"].values.tolist() == ["16", "2"]
    assert sweep["weight"].notnull().sum("unit_1").isel(seed=0, init_scale=0).values.tolist() == [
        16,
        2,
    ]


def test_missing_combinations_and_variables_are_undefined(tmp_path):
    for rate, hidden, scale in ((0.1, (8, 4), 1.0), (0.2, (8, 4), 0.5), (0.2, (), 1.0)):
        solution = ["flow"] if hidden else []
        written = spec(rate, hidden, record={"every": int(10 * rate)}, init_scales=[scale])
        cell(tmp_path, f"p/e/{rate}-{len(hidden)}", written, (scale,), solution)
    sweep = neuralrace.combine(neuralrace.open_results(tmp_path))
    assert sweep["half_time"].dims == (
        "network.hidden", "training.learning_rate", "init_scale", "seed", "mode",
    )  # fmt: skip
    assert sweep["network.hidden"].values.tolist() == ["8x4", "none"]
    assert sweep["init_scale"].values.tolist() == [0.5, 1.0]
    assert sweep["record.every"].dims == ("network.hidden", "training.learning_rate")
    there = np.isfinite(sweep["half_time"]).all(("seed", "mode"))
    assert there.values.tolist() == [
        [[False, True], [True, False]],
        [[False, False], [False, True]],
    ]
    assert np.isnan(sweep["error"].sel({"network.hidden": "none"})).all()


def test_cells_that_cannot_be_told_apart_are_refused(folder):
    results = neuralrace.open_results(folder)
    one = results.cell("relu")
    assert neuralrace.combine([one]) is one.metrics
    with pytest.raises(UserError, match="there are no cells"):
        neuralrace.combine([])
    with pytest.raises(UserError, match="cannot be told apart: layer_dynamics/relu/main, "):
        neuralrace.combine([one, one])


# Table -----------------------------------------------------------------------------------------


def test_a_row_for_every_number(folder):
    results = neuralrace.open_results(folder)
    table = neuralrace.to_frame(results)
    assert list(table.columns) == [
        "paper", "experiment", "cell", "network.hidden", "training.learning_rate", "metric",
        "init_scale", "seed", "mode", "solution", "value", "units",
    ]  # fmt: skip
    assert len(table) == sum(a.size for each in results.values() for a in each.metrics.values())
    for (name, metric), rows in table.groupby(["cell", "metric"]):
        array = next(c for n, c in results.items() if n.endswith(name)).metrics[metric]
        assert rows["value"].tolist() == array.values.ravel().tolist()
    assert table.loc[table["metric"] == "single", ["seed", "mode"]].isna().all(axis=None)
    error = table[table["metric"] == "error"]
    assert error[["solution", "value"]].values.tolist() == [["flow", 0.0], ["exact", 0.1]]
    half = table[(table["metric"] == "half_time") & (table["seed"] == 1) & (table["mode"] == 2)]
    swept = half.dropna(subset="training.learning_rate")
    assert set(swept["experiment"]) == {"step_size"}
    np.testing.assert_array_equal(swept["value"], 10 / swept["training.learning_rate"] + 2)
    assert set(half["network.hidden"].dropna()) == {"2", "16"}


def test_chosen_keys_are_columns_for_every_cell(folder):
    table = neuralrace.to_frame(folder, ["training.learning_rate", "network.activation"])
    assert table[["training.learning_rate", "network.activation"]].notna().all(axis=None)
    with pytest.raises(UserError, match=r"'network\.actvation' is no key .*network\.activation"):
        neuralrace.to_frame(folder, ["network.actvation"])


def test_claims_join_the_numbers_they_rest_on(folder):
    joined = neuralrace.claims_table(folder).merge(
        neuralrace.to_frame(folder), on=["paper", "experiment", "cell", "metric"]
    )
    assert joined["value"].tolist() == [501.0, 502.0] * 2
