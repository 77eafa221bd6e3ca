"""Arrays given in Python: specifications with checksums, and trees that stay complete."""

import gc
import json
import tracemalloc

import numpy as np
import pytest
import xarray as xr

from neuralrace import combine, simulate, specify, to_frame
from neuralrace.config.load import read_plan
from neuralrace.datasets import file, given
from neuralrace.errors import UserError
from neuralrace.figures.plot import plot
from neuralrace.networks.tasks import samples
from neuralrace.results.cells import cells_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2000, 5))
Y = X[:, :2] @ [[2.0, 0.5], [0.0, 1.0]]
FEW = {"init_scales": [0.1], "seeds": 2, "steps": 20, "records": 10, "progress": False}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A simulation and a sweep as files; their arrays are no longer in memory."""
    folder = tmp_path_factory.mktemp("trees")
    simulate(X, Y, hidden=[4], metrics=["half_times"], **FEW).to_netcdf(folder / "one.nc")
    swept = simulate(X, Y, sweep={"hidden": [[4], [5]]}, theory=None, **FEW)
    assert [*swept.children] == ["hidden-4", "hidden-5", "data"], "they share their arrays"
    swept.to_netcdf(folder / "sweep.nc")
    swept["hidden-4"].copy().to_netcdf(folder / "part.nc")
    del swept
    forget()
    return folder


def forget():
    file._data.cache_clear()
    gc.collect()
    assert not len(given._GIVEN), "nothing else holds the arrays"


def test_specification_has_shapes_and_checksum_of_large_arrays():
    cell = specify(X, Y, hidden=[4], **{k: v for k, v in FEW.items() if k != "progress"})
    assert cell.dataset.path == "<given in Python: x (2000, 5), y (2000, 2)>"
    assert len(cell.canonical()) < 2000
    np.testing.assert_array_equal(cell.dataset.load().x, X)
    other = specify(X, Y + 1e-9, hidden=[4], learning_rate=0.1, init_scales=[1], steps=4)
    assert other.dataset.checksum != cell.dataset.checksum


def test_numbers_are_those_of_the_same_arrays_in_the_specification(monkeypatch):
    large = simulate(X, Y, hidden=[4], theory=None, **FEW)
    monkeypatch.setattr("neuralrace.api.specification.MOST_WRITTEN", X.size + Y.size)
    table = simulate(X, Y, hidden=[4], theory=None, **FEW)
    assert "data" in large.children
    assert "data" not in table.children
    xr.testing.assert_identical(large["trajectory"].to_dataset(), table["trajectory"].to_dataset())


def test_saved_trees_are_complete_without_the_original_arrays(saved):
    with xr.open_datatree(saved / "one.nc") as tree:
        np.testing.assert_array_equal(tree["data"]["x"].values, X)
        (cell,) = cells_of(tree)
        np.testing.assert_array_equal(cell.data.y, Y)
        assert plot(tree).axes
        assert len(to_frame(tree))
    with xr.open_datatree(saved / "sweep.nc") as tree:
        assert plot(tree.children["hidden-5"]).axes
        assert combine(tree, "trajectory").sizes["network.hidden"] == 2
    del tree, cell
    forget()


def test_arrays_that_were_changed_or_are_missing_are_named(saved):
    with xr.open_datatree(saved / "one.nc") as tree:
        tree.load()
    tree.children["data"].to_dataset()["x"].values[3, 1] += 1e-6
    with pytest.raises(UserError, match="data: are not the arrays of the specification"):
        _ = cells_of(tree)[0].data
    with (
        xr.open_datatree(saved / "part.nc") as tree,
        pytest.raises(UserError, match=r"lacks its arrays.*; save and open that tree as a whole"),
    ):
        cells_of(tree)


def test_specification_with_given_arrays_is_refused_in_a_configuration():
    specification = json.loads(
        specify(X, Y, hidden=[4], learning_rate=0.1, init_scales=[1.0], steps=4).canonical()
    )
    forget()
    message = r"dataset.path: '<given in Python: .*numpy.savez\('my.npz', x=x, y=y\).*path: my.npz"
    with pytest.raises(UserError, match=message):
        read_plan({"experiments": {"mine": {"first": specification}}}, {})


def test_messages_name_arguments_and_not_the_dataset():
    with pytest.raises(UserError, match=r"^gates: has shape \(1, 3\), and there are 2000 samples"):
        simulate(X, Y, hidden=[4], gates=[[1.0, 1.0, 0.0]], **FEW)
    with pytest.raises(UserError, match=r"^theory: 'exact': .*: x: its inputs are not white"):
        simulate(X, Y, hidden=[4], theory=["exact"], **FEW)


def test_large_arrays_are_copied_once():
    x, y = RNG.normal(size=(20_000, 40)), RNG.normal(size=(20_000, 1))
    tracemalloc.start()
    cell = specify(x, y, hidden=[4], steps=4)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert cell.dataset.sizes == (20_000, 40, 1)
    assert peak < 1.5 * (x.nbytes + y.nbytes)
    assert not np.shares_memory(cell.dataset.load().x, x), "the caller may change the original"


def test_factor_of_second_moments_is_the_same_in_parts(monkeypatch):
    whole = np.hstack(samples.second_moments(X, Y))
    monkeypatch.setattr(samples, "AT_ONCE", 700)
    parts = np.hstack(samples.second_moments(X, Y))
    assert parts.shape == whole.shape
    np.testing.assert_allclose(parts.T @ parts, whole.T @ whole, rtol=1e-12, atol=1e-12)
    assert not np.array_equal(parts, whole), "factorised in parts"
