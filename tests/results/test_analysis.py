"""Analysis across cells: trees, sweeps and tables, and examples of all public names."""

import doctest
import inspect
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import neuralrace
from neuralrace.errors import UserError
from neuralrace.results import analysis
from neuralrace.results.cells import CellResults, Results
from neuralrace.results.files import write_result
from result_files import DESCRIBED, file_attributes

PUBLIC = {name: getattr(neuralrace, name) for name in neuralrace.__all__ if name != "__version__"}
PUBLIC |= {each.__name__: each for each in (CellResults, Results)}


def write_cell(root, name, spec, scales=(1.0,), solution=(), seeds=(0, 1)):
    """Writes a trajectory and metrics.

    Half times are ten over the learning rate, plus the mode. Discretisation errors are the learning
    rate, plus the init scale and the seed, and so differ between runs.
    """
    runs = {"init_scale": list(scales), "seed": list(seeds)}
    shape = (len(scales), len(seeds))
    attrs = file_attributes(name, "trajectory", spec)
    trajectory = xr.Dataset(attrs=attrs, coords=runs | {"time": [0, 5]})
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
    own = rate + np.add.outer(scales, seeds)
    metrics["discretisation_error"] = (("init_scale", "seed"), own, DESCRIBED)
    metrics["single"] = ((), 3.5, DESCRIBED)
    if solution:
        metrics["error"] = ("solution", np.arange(len(solution)) / 10, DESCRIBED)
        metrics = metrics.assign_coords(solution=list(solution))
    write_result(trajectory, root / name / "trajectory.nc")
    write_result(metrics, root / name / "metrics.nc")


def spec(rate=0.01, hidden=(16,), **more):
    network = {"hidden": list(hidden), "activation": more.pop("activation", "linear")}
    return {"network": network, "training": {"learning_rate": rate, "steps": 10}} | more


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Two sweeps and a single cell, with a claim about one sweep."""
    root = tmp_path_factory.mktemp("written")
    for rate in (0.02, 0.005, 0.01):
        write_cell(root, f"deep_linear/step_size/learning_rate-{rate}", spec(rate, seeds=2))
    for hidden, solution in (((2,), ()), ((16,), ("flow", "exact"))):
        write_cell(
            root, f"deep_linear/exact/hidden-{hidden[0]}", spec(0.01, hidden), (1.0,), solution
        )
    write_cell(root, "layer_dynamics/relu/main", spec(activation="relu"))
    claim = {
        "id": "slower", "paper": "deep_linear", "kind": "slope", "statement": "s", "locator": "l",
        "quote": "q", "status": "reproduced", "source_setup": {"locator": "l", "printed": {}},
        "title": "t", "authors": "a", "sentence": 1, "interval": [0.9, 1.1],
        "metrics": {"half_time": ["deep_linear/step_size/learning_rate-0.02"]},
    }  # fmt: skip
    (root / "claims.json").write_text(json.dumps([claim]))
    return root


@pytest.fixture
def folder(written, tmp_path, monkeypatch):
    """A copy of these results, in the current folder."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(written, "results"))


# Examples --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_shows_an_example_that_runs(folder, name):
    text = inspect.getdoc(PUBLIC[name]) or ""
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert "\nExample:\n    >>> import " in text
    assert any(each.want for each in example.examples), "it has no output"
    assert doctest.DocTestRunner().run(example).failed == 0


# Tree ------------------------------------------------------------------------------------------


def test_tree_has_a_node_for_every_file(folder):
    tree = neuralrace.open_tree(folder)
    assert set(tree.children) == {"deep_linear", "layer_dynamics"}
    node = tree["deep_linear/exact/hidden-16"]
    assert set(node.children) == {"trajectory", "metrics"}
    assert node.attrs["network.hidden"] == [16]
    assert node["metrics"]["solution"].values.tolist() == ["flow", "exact"]
    assert not node["trajectory"]["loss"].variable._in_memory


def test_tree_is_selected_by_identifier_and_by_key(folder):
    names = {f"/{name}" for name in neuralrace.open_results(folder)}
    cases = {(): names, ("paper", "layer_dynamics"): {"/layer_dynamics/relu/main"}}
    rate = {name for name in names if not re.search("0.0[02]", name)}
    cases["training__learning_rate", 0.01] = rate
    for select, expected in cases.items():
        tree = neuralrace.open_tree(folder, **dict([select] if select else []))
        assert {name for name in tree.groups if name.count("/") == 3} == expected
    with pytest.raises(
        UserError, match=r"training\.speed: is no column; did you mean .*training\.steps"
    ):
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


def test_trajectories_keep_the_flow_time_of_each_cell(folder):
    sweep = neuralrace.combine(neuralrace.open_results(folder).cells("step_size"), "trajectory")
    assert sweep["flow_time"].sel({"training.learning_rate": 0.02, "time": 5}) == 0.1


def test_layers_of_different_widths_are_joined_by_unit_number(folder):
    sweep = neuralrace.combine(neuralrace.open_results(folder).cells("exact"), "trajectory")
    assert sweep["network.hidden"].values.tolist() == ["16", "2"]
    widths = sweep["weight"].notnull().sum("unit_1").isel(seed=0, init_scale=0)
    assert widths.values.tolist() == [16, 2]


def test_missing_combinations_and_variables_are_undefined(tmp_path):
    for rate, hidden, scale in ((0.1, (8, 4), 1.0), (0.2, (8, 4), 0.5), (0.2, (), 1.0)):
        solution = ["flow"] if hidden else []
        written = spec(rate, hidden, record={"every": int(10 * rate)}, init_scales=[scale])
        write_cell(tmp_path, f"p/e/{rate}-{len(hidden)}", written, (scale,), solution)
    sweep = neuralrace.combine(neuralrace.open_results(tmp_path))
    assert sweep["half_time"].dims == (
        "network.hidden", "training.learning_rate", "init_scale", "seed", "mode",
    )  # fmt: skip
    assert sweep["network.hidden"].values.tolist() == ["8x4", "none"]
    assert sweep["init_scale"].values.tolist() == [0.5, 1.0]
    assert sweep["record.every"].dims == ("network.hidden", "training.learning_rate")
    finite = np.isfinite(sweep["half_time"]).all(("seed", "mode"))
    assert finite.values.tolist() == [
        [[False, True], [True, False]],
        [[False, False], [False, True]],
    ]
    assert np.isnan(sweep["error"].sel({"network.hidden": "none"})).all()


def test_sparse_sweep_has_one_dimension_of_cells(tmp_path):
    """A grid of four rates and four widths would be NaN in eleven of sixteen places."""
    rates, hidden = (0.1, 0.2, 0.4), ((8, 4), (), (2,))
    activations = ("linear", "relu", "relu")
    for rate, widths, activation in zip(rates, hidden, activations, strict=True):
        written = spec(rate, widths, activation=activation)
        write_cell(tmp_path, f"p/e/{rate}-{len(widths)}", written)
    write_cell(tmp_path, "p/e/more", spec(0.1, (), activation="tanh"))
    write_cell(tmp_path, "p/e/most", spec(0.8, (3,), activation="linear"))
    sweep = neuralrace.combine(neuralrace.open_results(tmp_path))
    assert sweep["half_time"].dims == ("cell", "init_scale", "seed", "mode")
    assert sweep["cell"].values.tolist() == ["0.1-2", "0.2-0", "0.4-1", "more", "most"]
    assert sweep["training.learning_rate"].values.tolist() == [0.1, 0.2, 0.4, 0.1, 0.8]
    assert sweep["network.hidden"].values.tolist() == ["8x4", "none", "2", "none", "3"]
    assert sweep["network.activation"].dims == ("cell",)
    np.testing.assert_array_equal(
        sweep["half_time"].sel(mode=1, seed=0, init_scale=1),
        10 / sweep["training.learning_rate"] + 1,
    )


def test_several_experiments_are_a_tree_of_their_datasets(folder):
    write_cell(folder, "layer_dynamics/sizes/a", spec(hidden=(3,)))
    write_cell(folder, "layer_dynamics/sizes/b", spec(hidden=(4,)))
    (folder / "layer_dynamics/sizes/b/metrics.nc").unlink()
    results = neuralrace.open_results(folder)
    tree = neuralrace.combine(results)
    experiments = ["deep_linear/exact", "deep_linear/step_size", "layer_dynamics/relu"]
    for name in experiments:
        expected = neuralrace.combine(results[name])
        xr.testing.assert_identical(tree[name].to_dataset().load(), expected)
    assert neuralrace.combine(folder).identical(tree)
    assert tree["layer_dynamics/sizes"].attrs["cell"] == "a", "the other one has no metrics"
    runs = neuralrace.combine(results, "trajectory")
    assert not runs["layer_dynamics/relu"]["loss"].variable._in_memory
    with pytest.raises(UserError, match=r"kind: 'theory': the cell deep_linear/exact/.* has none"):
        neuralrace.combine(results, "theory")
    with pytest.raises(UserError, match=r"the cell layer_dynamics/sizes/b has none"):
        neuralrace.combine(results["layer_dynamics/sizes"])


@pytest.mark.parametrize("name", ["deep_linear", "deep_linear/step_size"])
def test_too_large_combinations_are_refused_before_they_are_joined(folder, monkeypatch, name):
    monkeypatch.setattr(analysis, "LARGEST_TREE", 100)
    monkeypatch.setattr(analysis, "total_memory", lambda: 200)
    monkeypatch.setattr(xr, "concat", None)
    size = r"takes \S+ GB of memory or more, and \S+ GB are left; select fewer cells"
    with pytest.raises(UserError, match=rf"cells: deep_linear/\w+ {size}"):
        neuralrace.combine(neuralrace.open_results(folder)[name])


def test_single_cell_is_its_file(folder):
    results = neuralrace.open_results(folder)
    one = results.cell("relu")
    assert neuralrace.combine([one]) is one.metrics
    xr.testing.assert_identical(neuralrace.combine([one, one]), neuralrace.combine([one]))


def pieces(root, *runs):
    """Cells that differ in their runs only, as scales and seeds of each."""
    for number, (scales, seeds, more) in enumerate(runs):
        written = spec(**{"init_scales": list(scales), "seeds": len(seeds)} | more)
        write_cell(root, f"p/e/{number}", written, scales, seeds=seeds)
    return list(neuralrace.open_results(root).values())


def test_init_scales_of_several_cells_are_joined(tmp_path):
    cells = pieces(tmp_path, ((0.5,), (0, 1), {}), ((0.1, 0.2), (0, 1), {}))
    sweep = neuralrace.combine(cells)
    assert sweep["half_time"].dims == ("init_scale", "seed", "mode")
    assert sweep["init_scale"].values.tolist() == [0.1, 0.2, 0.5]
    assert sweep["half_time"].notnull().all()
    assert sweep["single"].dims == (), "the same in all"
    for each in cells:
        part = sweep["discretisation_error"].sel(init_scale=each.metrics["init_scale"])
        xr.testing.assert_equal(part, each.metrics["discretisation_error"])


def test_seeds_of_several_cells_are_joined(tmp_path):
    later = {"first_seed": 2}
    cells = pieces(
        tmp_path, ((0.5,), (0, 1), {}), ((0.5,), (2, 3, 4), later), ((0.1,), (0, 1), {})
    )  # fmt: skip
    sweep = neuralrace.combine(cells)
    assert sweep["seed"].values.tolist() == [0, 1, 2, 3, 4]
    assert sweep["half_time"].sel(init_scale=0.5).notnull().all()
    finite = sweep["half_time"].sel(init_scale=0.1, mode=1).notnull()
    assert finite.values.tolist() == [True] * 2 + [False] * 3


def test_shared_runs_must_be_equal(tmp_path):
    runs = ((0.1, 0.2), (0, 1), {}), ((0.2, 0.5), (1, 2), {"first_seed": 1})
    cells = pieces(tmp_path, *runs)
    sweep = neuralrace.combine(cells)["discretisation_error"]
    finite = sweep.notnull().values.tolist()
    assert finite == [[True, True, False], [True, True, True], [False, True, True]]
    cells[1].metrics["half_time"][:] += 1  # in memory
    with pytest.raises(
        UserError,
        match=r"number 1 \(p/e/0\) and number 2 \(p/e/1\) agree in all that is swept and both have "
        r"the run of init_scale 0\.2, seed 1, but differ there in half_time; leave one out",
    ):
        neuralrace.combine(cells)


def test_key_that_depends_on_the_init_scale_is_a_coordinate_along_it(tmp_path):
    """As the steps that are chosen for each scale. A swept width stays a dimension."""
    cells = pieces(
        tmp_path,
        *(
            ((scale,), (0, 1), {"hidden": [width], "rate": scale / 10})
            for width in (4, 8)
            for scale in (0.5, 0.1)
        ),
    )
    sweep = neuralrace.combine(cells)
    assert sweep["half_time"].dims == ("network.hidden", "init_scale", "seed", "mode")
    assert sweep["half_time"].notnull().all()
    assert sweep["training.learning_rate"].dims == ("init_scale",)
    assert sweep["training.learning_rate"].values.tolist() == [0.01, 0.05]


# Simulations -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trees():
    x, y = np.eye(3), np.diag([3.0, 2, 1])
    options = {"hidden": [4], "seeds": 2, "records": 10, "theory": None, "progress": False}
    return [neuralrace.simulate(x, y, init_scales=[scale], **options) for scale in (0.1, 0.5)]


@pytest.mark.parametrize("kind", ["trajectory", "metrics"])
def test_trees_of_simulations_are_combined(trees, kind):
    sweep = neuralrace.combine(trees, kind)
    assert sweep["init_scale"].values.tolist() == [0.1, 0.5]
    assert sweep["training.steps"].dims == ("init_scale",)
    steps = [json.loads(tree.attrs["spec"])["training"]["steps"] for tree in trees]
    assert sweep["training.steps"].values.tolist() == steps
    assert steps[0] != steps[1]
    one = neuralrace.combine(trees[0], kind)
    assert set(one.variables) == set(trees[0][kind].to_dataset().variables)
    for name in one.data_vars:
        part = sweep[name].sel(init_scale=[0.1])
        part = part.sel({axis: one[axis] for axis in one[name].dims if axis in one.coords})
        np.testing.assert_array_equal(part, one[name])


def test_shared_runs_of_simulations_are_equal_except_for_rounding():
    options = {"hidden": [4], "seeds": 2, "learning_rate": 0.05, "steps": 200, "progress": False}
    x, y = np.eye(3), np.diag([3.0, 2, 1])
    scales = ([0.01, 0.1], [0.1, 1.0])
    trees = [neuralrace.simulate(x, y, init_scales=each, **options) for each in scales]
    theory = neuralrace.combine(trees, "theory")
    assert theory["init_scale"].values.tolist() == [0.01, 0.1, 1.0]
    own = [tree["theory"]["loss"].sel(init_scale=0.1) for tree in trees]
    assert 0 < float(abs(own[0] - own[1]).max()) < 1e-6  # all runs are one differential equation
    np.testing.assert_array_equal(theory["loss"].sel(init_scale=0.1), own[0])


def test_table_of_trees_distinguishes_them_by_swept_keys(trees):
    table = neuralrace.to_frame(trees, "network.hidden")
    assert set(table["init_scale"]) == {0.1, 0.5}
    assert table["training.steps"].nunique() == 2
    assert set(table["network.hidden"]) == {"4"}
    alone = neuralrace.to_frame(trees[0])
    assert len(table) == 2 * len(alone)


def test_simulations_of_different_data_are_distinguished_by_a_checksum(trees):
    other = neuralrace.simulate(
        np.eye(3), np.ones((3, 3)), hidden=[4], init_scales=[0.1], seeds=2, records=10,
        theory=None, progress=False, learning_rate=0.1, steps=20,
    )  # fmt: skip
    sweep = neuralrace.combine([trees[0], other])
    (label, _) = sweep["dataset.y"].values
    assert len(label) < 40


def test_results_and_trees_are_combined_in_a_table(folder, trees):
    results = neuralrace.open_results(folder)
    table = neuralrace.to_frame([results, results.cell("relu"), *trees])
    assert {"deep_linear", "layer_dynamics", "python"} == set(table["paper"])
    whole = neuralrace.to_frame(neuralrace.open_tree(folder))
    assert whole.equals(neuralrace.to_frame(folder))


# Table -----------------------------------------------------------------------------------------


def test_table_has_a_row_for_every_number(folder):
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


def test_chosen_keys_are_columns_of_every_cell(folder):
    table = neuralrace.to_frame(folder, ["training.learning_rate", "network.activation"])
    assert table[["training.learning_rate", "network.activation"]].notna().all(axis=None)
    with pytest.raises(UserError, match="is no key") as error:
        neuralrace.to_frame(folder, ["network.actvation"])
    assert error.value.value == "'network.actvation'"
    assert "did you mean network.activation" in error.value.remedy


def test_claims_are_joined_with_their_metrics(folder):
    joined = neuralrace.claims_table(folder).merge(
        neuralrace.to_frame(folder), on=["paper", "experiment", "cell", "metric"]
    )
    assert joined["value"].tolist() == [501.0, 502.0] * 2
