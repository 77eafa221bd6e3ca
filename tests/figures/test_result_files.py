"""Result files of all kinds of cells: types, conventions, and opening them repeatedly."""

import json

import cf_xarray  # noqa: F401  adds the accessor
import netCDF4
import pytest
import xarray as xr

from warm_python import PYTHON

KINDS = ("trajectory", "theory", "metrics")
UNITS = {"1", "epochs", "steps", "tau", "1/tau"}
"""UDUNITS knows the first; the others are counts and the time of theory."""
OPEN = """
import gc
import sys
import xarray as xr

for path in sys.argv[1:]:
    first = xr.open_dataset(path)
    for _ in range(2):
        three = [xr.open_dataset(path) for _ in range(3)]
        three[1].load()
        three[0].close()
        del three
        gc.collect()
    first.load()
"""


@pytest.fixture(scope="module")
def paths(results_root):
    """A file of each kind, for each kind of network, dataset and set of solutions."""
    paths = {}
    for path in sorted(results_root.glob("*/*/*/*.nc")):
        with netCDF4.Dataset(path) as stored:
            spec = json.loads(stored.spec)
        names = [spec[key]["name"] for key in ("network", "dataset")]
        kind = (path.stem, *names, *spec.get("solutions", ()))
        paths.setdefault(kind, path)
    assert {kind[0] for kind in paths} == set(KINDS)
    assert len(paths) > 40
    return paths


def test_texts_are_ascii_of_fixed_length(paths):
    for path in paths.values():
        with netCDF4.Dataset(path) as stored:
            texts = [
                v.getncattr(n) for v in (stored, *stored.variables.values()) for n in v.ncattrs()
            ]
            assert [t for t in texts if isinstance(t, list)] == []
            assert all(t.isascii() for t in texts if isinstance(t, str))
            assert [n for n, v in stored.variables.items() if v.dtype is str] == []


def test_open_files_can_be_opened_again(paths):
    of_a_network = {kind[:2]: path for kind, path in paths.items()}
    assert len(of_a_network) == 12  # three files of four kinds of network
    assert PYTHON.run(["-c", OPEN, *map(str, of_a_network.values())]).returncode == 0


def test_files_follow_the_cf_conventions(paths):
    for path in paths.values():
        with xr.open_dataset(path) as dataset:
            assert dataset.attrs["Conventions"] == "CF-1.11"
            # Results have no place and no date, and no variable must look like one.
            assert dataset.cf.axes == dataset.cf.coordinates == {}
            assert dataset.cf.standard_names == dataset.cf.bounds == dataset.cf.cell_measures == {}
            assert dataset.cf.grid_mapping_names == dataset.cf.formula_terms == {}
            for name, variable in dataset.variables.items():
                assert variable.attrs["long_name"], name
                assert variable.attrs["units"] in UNITS, name
            for name in dataset.coords:
                assert "_FillValue" not in dataset[name].encoding, name
                assert dataset[name].notnull().all(), name
            for name in dataset.data_vars:
                clocks = {"time": "flow_time", "snapshot": "snapshot_flow_time"}
                required = {clocks[dim] for dim in dataset[name].dims if dim in clocks}
                coordinates = dataset[name].encoding.get("coordinates", "").split()
                assert required & set(dataset.variables) <= {*coordinates, *dataset[name].coords}
