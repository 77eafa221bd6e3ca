"""Trajectory files describe their variables, units and provenance."""

import json

import numpy as np
import pytest
import xarray as xr

from neuralrace.config.cell import Ensemble
from neuralrace.config.variables import RUN_AXES
from neuralrace.extensions.registry import METRICS
from neuralrace.results.axes import axes
from neuralrace.results.files import write_result
from neuralrace.results.schema import TRAJECTORY, build, theory_variables, variable


@pytest.fixture(scope="module")
def opened(dataset, tmp_path_factory):
    """The file as opened by xarray alone."""
    path = tmp_path_factory.mktemp("results") / "trajectory.nc"
    write_result(dataset, path)
    with xr.open_dataset(path) as plain:
        return plain.load()


def test_every_recorded_variable_is_described(opened, trajectory):
    assert set(opened.data_vars) == {*trajectory.variables, "diverged_at"}
    for name in opened.data_vars:
        declared = variable("trajectory", name)
        assert opened[name].dims == (*RUN_AXES, *declared.dims)
        assert opened[name].attrs["long_name"] == declared.long_name
        assert opened[name].attrs["units"] == declared.units
    for name in opened.coords:
        assert set(opened[name].attrs) >= {"long_name", "units"}
        assert opened[name].attrs["long_name"]
    for name, values in trajectory.variables.items():
        np.testing.assert_array_equal(opened[name], values)


def test_time_axes_are_in_epochs_and_flow_time(opened, ensemble):
    np.testing.assert_array_equal(opened.init_scale, [0.6, 0.3])
    np.testing.assert_array_equal(opened.seed, [0, 1, 2])
    np.testing.assert_array_equal(opened.time, np.arange(0, 21, 2))
    np.testing.assert_array_equal(opened.snapshot, np.arange(0, 21, 4))
    assert opened.time.attrs["units"] == opened.snapshot.attrs["units"] == "epochs"
    # momentum 1/2 doubles a step of 0.05
    np.testing.assert_allclose(opened.flow_time, 0.1 * opened.time)
    np.testing.assert_allclose(opened.snapshot_flow_time, 0.1 * opened.snapshot)
    assert opened.flow_time.dims == ("time",)
    assert opened.flow_time.attrs["units"] == opened.snapshot_flow_time.attrs["units"] == "tau"
    np.testing.assert_array_equal(opened.layer, [1, 2])
    np.testing.assert_array_equal(opened.mode, [1, 2, 3])
    batches = {"batch": {"name": "mini", "size": 2}}
    training = ensemble.training.model_validate_json(
        json.dumps(ensemble.training.model_dump(mode="json") | batches)
    )
    mini = axes(ensemble.model_copy(update={"training": training}), samples=4)
    assert mini["time"][2] == mini["snapshot"][2] == "steps"


def test_flow_times_of_all_files_are_in_tau():
    metrics = (entry.declaration.outputs for entry in METRICS.values())
    tables = [TRAJECTORY, theory_variables(), *metrics]
    declared = {name: each for table in tables for name, each in table.items()}
    times = ("flow time", "time at which", "time in which")
    in_tau = {name for name, each in declared.items() if each.units == "tau"}
    assert in_tau == {name for name, each in declared.items() if each.long_name.startswith(times)}
    assert "half_time" in in_tau


def test_attributes_have_specification_and_provenance(opened, ensemble):
    assert Ensemble.model_validate_json(opened.attrs["spec"]) == ensemble
    assert opened.attrs["spec_sha256"] == ensemble.sha256()
    assert (opened.attrs["paper"], opened.attrs["experiment"]) == ("paper", "experiment")
    assert opened.attrs["precision"].startswith("float64")
    for package in ("python ", "jax ", "numpy ", "neuralrace "):
        assert package in opened.attrs["versions"]
    assert all(isinstance(value, str) for value in opened.attrs.values())


def test_coordinates_label_the_axes(opened, trajectory):
    chosen = opened["layer_norm"].sel(init_scale=0.3, seed=2, layer=2)
    np.testing.assert_array_equal(chosen, trajectory.variables["layer_norm"][1, 2, :, 1])


def test_unknown_variables_are_refused():
    assert variable("trajectory", "weight_0") is None
    assert variable("theory", "weight_1") is None
    assert variable("trajectory", "weight_12").dims == ("snapshot", "unit_12", "unit_11")
    with pytest.raises(KeyError, match="colour is no variable of a trajectory file"):
        build("trajectory", {"colour": np.zeros((1, 1))}, {}, {})
