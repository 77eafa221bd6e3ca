"""Samples from files of one's own."""

import hashlib
import json
import os
import re
import struct
import tracemalloc
import zipfile

import netCDF4
import numpy as np
import pytest
from mutations import fuzz

from neuralrace.config.cell import Cell
from neuralrace.config.load import read_plan
from neuralrace.config.requirements import contexts
from neuralrace.datasets.file import File
from neuralrace.errors import UserError

X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
Y = np.array([[3.0], [1.0], [-1.0]])
CONTEXT = np.array([0, 1, 0])
CELL = {
    "network": {"name": "layered", "hidden": [3]},
    "init": {"name": "normal"},
    "init_scales": [0.1],
    "seeds": 1,
    "training": {"learning_rate": 0.1, "steps": 10},
    "record": {"every": 10},
}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    (tmp_path / "a folder.npz").mkdir()
    monkeypatch.chdir(tmp_path)


def npz(path="my.npz", **arrays):
    np.savez(path, **({"x": X, "y": Y} | arrays))
    return path


def csv(text, path="my.csv"):
    with open(path, "w") as file:
        file.write(text)
    return path


def nc(path="my.nc", y=Y, **arrays):
    with netCDF4.Dataset(path, "w") as file:
        for name, array in ({"x": X, "y": y} | arrays).items():
            dims = [f"{name}_{axis}" for axis in range(np.ndim(array))]
            for dim, size in zip(dims, np.shape(array), strict=True):
                file.createDimension(dim, size)
            file.createVariable(name, array.dtype, dims)[...] = array
    return path


def empty(path):
    open(path, "w").close()
    return path


def binary(path):
    with open(path, "wb") as file:
        file.write(b"\xff\xfe\x00")
    return path


def configured(path, **keys):
    return File.model_validate_json(json.dumps({"name": "file", "path": path} | keys))


def plan(dataset):
    config = {"experiments": {"mine": {"first": CELL | {"dataset": dataset}}}}
    return read_plan(config, {"mine.yaml": config})


@pytest.mark.parametrize(
    "write",
    [
        lambda: npz(context=CONTEXT),
        lambda: nc(context=CONTEXT),
        lambda: csv("x1,x2,y,context\n1,0,3,0\n0,2,1,1\n\n1,1,-1,0\n"),
        lambda: csv("\ufeffcontext,y_first, x a,x b\n0,3,1,0\n1,1,0,2\n0,-1,1,1\n"),
    ],
)
def test_formats_give_the_same_arrays(write):
    dataset = configured(write())
    data = dataset.load()
    np.testing.assert_array_equal(data.x, X)
    np.testing.assert_array_equal(data.y, Y)
    np.testing.assert_array_equal(data.contexts, CONTEXT)
    assert data.x.dtype == data.y.dtype == np.float64
    assert dataset.sizes == (3, 2, 1)
    cell = Cell.model_validate_json(json.dumps(CELL | {"dataset": json.loads(dataset.canonical())}))
    assert contexts(cell) is None


def test_without_contexts_there_are_none():
    cell = CELL | {"dataset": {"name": "file", "path": npz()}}
    assert contexts(Cell.model_validate_json(json.dumps(cell)))


def test_another_content_is_another_specification():
    (one,) = plan({"name": "file", "path": npz()}).cells.values()
    (again,) = plan({"name": "file", "path": npz()}).cells.values()
    (other,) = plan({"name": "file", "path": npz(y=2 * Y)}).cells.values()
    assert one.sha256() == again.sha256() != other.sha256()
    with open("my.npz", "rb") as file:
        assert other.dataset.checksum == hashlib.file_digest(file, "sha256").hexdigest()


def test_a_specification_is_read_without_the_file():
    written = configured(npz()).canonical()
    assert File.model_validate_json(written.replace("my.npz", "gone.npz")).checksum in written


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda: "gone.npz", r"cannot be read \(No such file"),
        (lambda: "a folder.npz", r"cannot be read \(Is a directory\); put the file there, or mend"),
        (lambda: "a\0.npz", r"cannot be read \(embedded null byte\); put the file there, or mend"),
        (lambda: empty("my.npz"), "is no archive of NumPy"),
        (lambda: empty("my.nc"), "cannot be read as NetCDF"),
        (lambda: binary("my.csv"), "is no table .*name columns in its first line"),
        (lambda: npz(x=np.array([[None], [1], [2]])), "x: holds objects, .*array of numbers"),
        (lambda: npz(x=X[0]), r"x: has the shape \(2,\); give it \(sample, input\)"),
        (lambda: npz(y=Y[:2]), "y: 2 rows, and x has 3; give one of each"),
        (lambda: npz(y=Y[:, :0]), r"y: has the shape \(3, 0\)"),
        (lambda: npz(x=np.where(X == 2, np.inf, X)), "x: row 1 is not finite; mend it"),
        (
            lambda: npz(y=np.array([[1], [2, 3], [4]], dtype=object)),
            "y: holds objects, .*rows equally",
        ),
        (lambda: npz(x=X * 1j), "x: holds complex128, no real numbers"),
        (lambda: npz(x=X.astype(str)), "x: holds <U32, no real numbers"),
        (lambda: npz(context=CONTEXT[:2]), r"context: int64 of shape \(2,\); give one whole"),
        (lambda: npz(context=CONTEXT + 0.5), "context: float64 .* whole number"),
        (lambda: npz(context=CONTEXT * np.nan), "context: float64 .* whole number"),
        (lambda: npz(context=CONTEXT * 2), "context: has the numbers 0, 2; number .* without gaps"),
        (lambda: csv("x,y\n1,2\n", "my.npz"), "is no archive of NumPy"),
        (lambda: csv("x,y\n1,2\n", "my.nc"), "cannot be read as NetCDF"),
        (lambda: nc(y=np.ma.masked_equal(Y, 1.0)), "y: has missing values; mend them"),
        (lambda: csv(""), "is no table"),
        (lambda: csv("x,z\n1,2\n"), "'z': is no column of x, y or context; rename it"),
        (lambda: csv("x,x2\n1,2\n"), "y: is missing; give the arrays x and y"),
        (lambda: csv("x,y\n1,2\n3\n"), "row 1 has 1 entries, and 2 columns are named"),
        (lambda: csv("x,y\n1,two\n"), "row 0: .*two.*; give numbers"),
        (lambda: csv("x,y\n1,nan\n"), "y: row 0 is not finite"),
        (lambda: csv("x,y\n"), r"x: has the shape \(0, 1\)"),
        (lambda: csv("x,y,context,context\n1,2,0,0\n"), r"context: float64 of shape \(1, 2\)"),
    ],
)
def test_what_is_no_dataset_is_refused_while_it_is_planned(write, said):
    path = write()
    place = rf"^mine.yaml: experiments.mine.first.*{re.escape(path)}"
    with pytest.raises(UserError, match=rf"{place}.*{said}"):
        plan({"name": "file", "path": path})


def test_an_archive_without_targets_is_refused():
    np.savez("my.npz", x=X)
    with pytest.raises(UserError, match=r"my.npz: y: is missing; give the arrays x and y"):
        plan({"name": "file", "path": "my.npz"})


def test_another_content_than_was_asked_for_is_refused():
    with pytest.raises(UserError, match=r"my.npz: has the checksum [0-9a-f]{64}, not 0{64}; put"):
        plan({"name": "file", "path": npz(), "checksum": "0" * 64})


@pytest.mark.parametrize("path", ["my.pkl", "", "a folder", ["my.npz"], 3, None])
def test_other_formats_are_refused(path):
    csv("", "my.pkl")
    said = rf"^mine.yaml: .*dataset.path: {re.escape(repr(path))}: .*(pattern|valid string)"
    with pytest.raises(UserError, match=said):
        plan({"name": "file", "path": path})


def test_an_archive_without_inputs_is_refused():
    np.savez("my.npz", y=Y)
    with pytest.raises(UserError, match=r"my.npz: x: is missing; give the arrays x and y"):
        plan({"name": "file", "path": "my.npz"})


# Hostile files ----------------------------------------------------------------------------------

HEADER = "{{'descr': '{}', 'fortran_order': False, 'shape': {}}}"


def announced(shape, descr="<f8", content=b"\0" * 48, path="my.npz"):
    """An archive whose array x has another header than content."""
    npz(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        head = HEADER.format(descr, shape).encode().ljust(117) + b"\n"
        archive.writestr(
            "x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + content
        )
    return path


def pipe(path):
    os.mkfifo(path)
    return path


def leading_to(target, path="my.csv"):
    os.symlink(target, path)
    return path


def sparse(path="my.csv"):
    with open(path, "wb") as file:
        file.truncate(40 * 10**9)
    return path


def claiming(path="my.nc"):
    """A NetCDF file whose variable announces 29 TiB and holds nothing."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("sample", 2 * 10**6)
        file.createDimension("input", 2 * 10**6)
        file.createVariable("x", "f8", ("sample", "input"), chunksizes=(1000, 1000))
    return path


def attributed(path="my.nc"):
    nc(path)
    with netCDF4.Dataset(path, "a") as file:
        file["x"].scale_factor = "ten"
    return path


def texts(path="my.nc"):
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("sample", 2)
        file.createVariable("x", str, ("sample",))[:] = np.array(["a", "b"], dtype=object)
    return path


LONG = np.longdouble("1e400")


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda: pipe("my.npz"), r"cannot be read \(it is no regular file\); put the file there"),
        (lambda: leading_to("/dev/zero"), r"cannot be read \(it is no regular file\)"),
        (lambda: leading_to("my.csv"), r"cannot be read \(Too many levels of symbolic links\)"),
        (sparse, r"cannot be read \(it has 40000 MB, and at most 1600 MB are read\)"),
        (lambda: announced((10**15, 1)), r"x: has the shape \(1000000000000000, 1\), and at most"),
        (lambda: announced((-3, -2)), r"x: cannot be read \(of shape \(-3, -2\) in"),
        (lambda: announced((10**7, 1)), r"x: cannot be read \(of shape \(10000000, 1\) in 176 b"),
        (lambda: announced((3, 2), content=bytes(10**8)), r"x: cannot be read \(of shape"),
        (lambda: announced((3, 2), "|O"), "x: holds objects, which are not read"),
        (lambda: announced((3, 2), "<f9"), "x: cannot be read"),
        (lambda: announced("(" * 1000), "x: cannot be read"),
        (lambda: npz(x=np.full((3, 2), LONG)), "x: row 0 is not finite; mend it"),
        (lambda: npz(x=np.where(X == 2, 1e200, X)), "x: row 1 holds more than 1e\\+100; use"),
        (lambda: npz(x=np.where(X == 2, np.nan, X)), "x: row 1 is not finite"),
        (lambda: npz(context=np.array([0, 10**15, 1])), "has the numbers 0, 1, 1000000000000000;"),
        (claiming, r"x: has the shape \(2000000, 2000000\), and at most 2e\+08 numbers are read"),
        (attributed, "cannot be read as NetCDF .*scale_factor"),
        (texts, "x: holds (<U0|object)"),
        (lambda: csv("x,y\n" + "1" * 200_000 + ",2\n"), "is no table .*field limit"),
        (lambda: csv('x,y\n"1,2\n' * 50_000), "is no table|row 0"),
        (lambda: csv("x" * 10**6 + ",z\n1,2\n"), "is no table .*field limit"),
        (lambda: csv("z" * 10**5 + ",x\n1,2\n"), r"'z{40} \.\.\. z{40}': is no column"),
        (lambda: csv("x,y\n1,2\n\0,3\n"), "is no table|row 1"),
    ],
)
def test_hostile_files_are_refused_before_memory_is_taken(write, said):
    path = write()
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=rf"{re.escape(path)}.*{said}") as caught:
            plan({"name": "file", "path": path})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5e7
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(("suffix", "examples"), [(".npz", 300), (".csv", 300), (".nc", 8)])
def test_damaged_files_are_refused_in_words_or_give_numbers(suffix, examples):
    fuzz(suffix, examples)
