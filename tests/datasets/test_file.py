"""Samples from the user's own file."""

import hashlib
import json
import os
import struct
import tracemalloc
import zipfile
from pathlib import Path

import netCDF4
import numpy as np
import pytest
from mutations import CONTEXT, X, Y, fuzz, write_nc
from pydantic import ValidationError

from builders import LINEAR, build_cell
from neuralrace.cli.main import main
from neuralrace.config.load import read_plan
from neuralrace.config.requirements import contexts
from neuralrace.datasets.file import File
from neuralrace.errors import UserError


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    (tmp_path / "a folder.npz").mkdir()
    monkeypatch.chdir(tmp_path)


def npz(path="my.npz", **arrays):
    np.savez(path, **({"x": X, "y": Y} | arrays))
    return path


def written(content, path):
    with open(path, "wb") as file:
        file.write(content)
    return path


def csv(text, path="my.csv"):
    return written(text.encode(), path)


def nc(path="my.nc", **arrays):
    return write_nc(path, {"x": X, "y": Y} | arrays)


def configured(path, **keys):
    return File.model_validate_json(json.dumps({"name": "file", "path": path} | keys))


def plan(path):
    dataset = {"name": "file", "path": path}
    config = {"experiments": {"mine": {"first": {**LINEAR, "dataset": dataset}}}}
    return read_plan(config, {"mine.yaml": config})


def refusal(path, **keys):
    """The error that refuses a file, when it is configured or when it is loaded."""
    try:
        configured(path, **keys).load()
    except ValidationError as error:
        return error.errors()[0]["ctx"]["error"]
    except UserError as error:
        return error
    pytest.fail("the file is accepted")


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
    assert contexts(build_cell(dataset=json.loads(dataset.canonical()))) is None


def test_file_without_contexts_does_not_meet_the_requirement_of_contexts():
    assert contexts(build_cell(dataset={"name": "file", "path": npz()}))


def test_another_content_is_another_specification():
    (one,) = plan(npz()).cells.values()
    (again,) = plan(npz()).cells.values()
    (other,) = plan(npz(y=2 * Y)).cells.values()
    assert one.sha256() == again.sha256() != other.sha256()
    with open("my.npz", "rb") as file:
        assert other.dataset.checksum == hashlib.file_digest(file, "sha256").hexdigest()


def test_specification_with_a_checksum_is_read_without_the_file():
    text = configured(npz()).canonical()
    assert File.model_validate_json(text.replace("my.npz", "gone.npz")).checksum in text


@pytest.mark.parametrize(
    ("write", "key", "problem", "remedy"),
    [
        (lambda: "gone.npz", "", "cannot be read (No such file", "correct `path`"),
        (lambda: "a folder.npz", "", "cannot be read (Is a directory)", "put the file there"),
        (lambda: "a\0.npz", "", "cannot be read (embedded null byte)", "correct `path`"),
        (lambda: written(b"", "my.npz"), "", "is no NumPy archive", "numpy.savez"),
        (lambda: written(b"", "my.nc"), "", "cannot be read as NetCDF", "write it again"),
        (lambda: written(b"\xff\xfe\0", "my.csv"), "", "is no table", "in the first line"),
        (lambda: npz(x=np.array([[None], [1]])), "x", "holds Python objects", "array of numbers"),
        (lambda: npz(x=X[0]), "x", "has the shape (2,)", "(sample, input)"),
        (lambda: npz(y=Y[:2]), "y", "2 rows, and x has 3", "one row of"),
        (lambda: npz(y=Y[:, :0]), "y", "has the shape (3, 0)", "without empty axes"),
        (lambda: npz(x=np.where(X == 2, np.inf, X)), "x", "row 1 is not finite", "correct it"),
        (
            lambda: npz(y=np.array([[1], [2, 3], [4]], dtype=object)),
            *("y", "holds Python objects", "rows of equal length"),
        ),
        (lambda: npz(x=X * 1j), "x", "holds complex128", "float64"),
        (lambda: npz(x=X.astype(str)), "x", "holds <U32", "float64"),
        (lambda: npz(context=CONTEXT[:2]), "context", "int64 and shape (2,)", "(3,)"),
        (lambda: npz(context=CONTEXT + 0.5), "context", "float64", "whole number"),
        (lambda: npz(context=CONTEXT * np.nan), "context", "float64", "whole number"),
        (lambda: npz(context=CONTEXT * 2), "context", "the numbers 0, 2", "without gaps"),
        (lambda: csv("x,y\n1,2\n", "my.npz"), "", "is no NumPy archive", "numpy.savez"),
        (lambda: csv("x,y\n1,2\n", "my.nc"), "", "cannot be read as NetCDF", "write it again"),
        (lambda: nc(y=np.ma.masked_equal(Y, 1.0)), "y", "has missing values", "fill them in"),
        (lambda: csv(""), "", "is no table", "in the first line"),
        (lambda: csv("x,z\n1,2\n"), "", "is no column of x, y or context", "x: [x], y: [z]}; th"),
        (lambda: csv("x,x2\n1,2\n"), "y", "is missing; the file has x, x2", "by the keys x and y"),
        (lambda: csv("x,y\n1,2\n3\n"), "", "row 1 has 1 entries", "each column"),
        (lambda: csv("x,y\n1,two\n"), "", "row 0, column 'y' is 'two', which is no number", "use"),
        (lambda: csv("x,y\n1,\n"), "", "row 0, column 'y' is empty", "leave the row out"),
        (lambda: csv("x,y\n1,setosa\n"), "", "column 'y' is 'setosa'", "a column for each"),
        (lambda: csv("1,2\n3,4\n"), "", "has numbers in its first line", "such as x1,x2,y"),
        (lambda: csv("year,y\n1,2\n"), "", "is no column of x, y or context", "has year, y"),
        (lambda: csv("xmin,x,y\n1,2,3\n"), "", "is no column of x, y", "x: [xmin], y: [xmin]}"),
        (lambda: csv("x,id,y\n1,2,3\n"), "", "is no column of x, y", "the file has x, id, y"),
        (lambda: csv("x;y\n1.000,5;2\n"), "", "column 'x' is '1.000,5'", "use numbers"),
        (lambda: npz(y=np.array([0, 1, 2])), "y", "has the shape (3,)", "a column for each with"),
        (lambda: csv("x,y\n1,nan\n"), "y", "row 0 is not finite", "leave the sample out"),
        (lambda: csv("x,y\n"), "x", "has the shape (0, 1)", "without empty axes"),
        (lambda: csv("x,y,context,context\n1,2,0,0\n"), "context", "shape (1, 2)", "whole number"),
    ],
)
def test_faulty_file_is_refused_with_file_key_and_remedy(write, key, problem, remedy):
    path = write()
    error = refusal(path)
    assert (error.file, error.key) == (path, key)
    assert problem in error.problem
    assert remedy in error.remedy


@pytest.mark.parametrize("write", [lambda: "gone.npz", lambda: npz(x=X[0])])
def test_planning_refuses_a_faulty_file_and_names_the_experiment(write):
    path = write()
    with pytest.raises(UserError, match=f"^mine.yaml: experiments.mine.first.*{path}"):
        plan(path)


@pytest.mark.parametrize("name", ["x", "y"])
def test_archive_without_inputs_or_targets_is_refused(name):
    np.savez("my.npz", **{each: array for each, array in {"x": X, "y": Y}.items() if each != name})
    error = refusal("my.npz")
    other = {"x": "y", "y": "x"}[name]
    assert (error.key, error.problem) == (name, f"is missing; the file has {other}")


def test_content_with_another_checksum_is_refused():
    error = refusal(npz(), checksum="0" * 64)
    assert error.problem.endswith(f"not {'0' * 64}")
    assert "put the former file back" in error.remedy


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("my.pkl", "pickles can run code: write the arrays with numpy.savez"),
        ("x.npy", "holds a single array: write both into one file, numpy.savez('my.npz'"),
        ("MY.XLSX", "save the sheet as CSV"),
        ("", ""),
        ("a folder", ""),
    ],
)
def test_path_of_another_format_is_refused(path, remedy):
    csv("", "my.pkl")
    error = refusal(path)
    assert (error.key, error.value) == ("path", repr(path))
    assert error.problem == "expected a path that ends in .npz or .nc or .csv or .tsv"
    assert remedy in error.remedy


@pytest.mark.parametrize("path", [["my.npz"], 3, None])
def test_path_that_is_no_text_is_refused(path):
    with pytest.raises(ValidationError) as error:
        configured(path)
    (mistake,) = error.value.errors()
    assert (mistake["loc"], mistake["type"]) == (("path",), "string_type")


TABLE = "id;height;year;xmin;kind\n1;1,0;3;0;a\n2;0;1;2,0;b\n3;1;-1;1;a\n"
CHOSEN = {"x": ["height", "xmin"], "y": "year"}


@pytest.mark.parametrize(
    ("write", "keys"),
    [
        (lambda: csv(TABLE), CHOSEN),
        (lambda: csv(TABLE.replace(",", ".").replace(";", ",")), CHOSEN),
        (lambda: csv(TABLE.replace(",", ".").replace(";", "\t"), "MY.TSV"), CHOSEN),
        (lambda: csv(",x1,x2,y\na,1,0,3\nb,0,2,1\nc,1,1,-1\n"), {}),
        (lambda: csv("X1,X_2,Y\n1,0,3\n0,2,1\n1,1,-1\n", "MY.CSV"), {}),
        (lambda: csv("x,x1,x2,y\n9,1,0,3\n9,0,2,1\n9,1,1,-1\n"), {"x": ["x1", "x2"]}),
        (lambda: os.replace(npz(), "MY.NPZ") or "MY.NPZ", {}),
        (lambda: npz(x=0 * X, x_train=X, y_train=Y), {"x": "x_train", "y": ["y_train"]}),
        (lambda: npz(x=0 * X, a=X[:, 0], b=X[:, 1:]), {"x": ["a", "b"]}),
        (lambda: npz(y=Y[:, 0]), {}),
        (lambda: nc(x=0 * X, inputs=X), {"x": "inputs"}),
    ],
)
def test_arrays_and_columns_are_chosen_by_name(write, keys):
    dataset = configured(write(), **keys)
    for again in (dataset, File.model_validate_json(dataset.canonical())):
        data = again.load()
        np.testing.assert_array_equal(data.x, X)
        np.testing.assert_array_equal(data.y, Y)


@pytest.mark.parametrize(
    ("write", "keys", "read"),
    [
        (lambda: csv(TABLE), CHOSEN, "x: height, xmin; y: year; not read: id, kind"),
        (lambda: csv(",x1,y,x2\n0,1,2,3\n"), {}, "x: x1, x2; y: y"),
        (lambda: npz(context=CONTEXT, z=X), {}, "x: x; y: y; context: context; not read: z"),
    ],
)
def test_what_was_read_is_shown(write, keys, read, capsys):
    path = write()
    config = {"experiments": {"mine": {"first": {**LINEAR, "dataset": {"name": "file"}}}}}
    config["experiments"]["mine"]["first"]["dataset"] |= {"path": path, **keys}
    Path("mine.yaml").write_text(json.dumps(config))
    assert main(["show", "mine", "--configfile", "mine.yaml"]) == 0
    assert f"{path}, {read}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("write", "keys", "message"),
    [
        (npz, {"x": "x_train"}, "my.npz: x_train: is missing; the file has x, y; name the arrays"),
        (nc, {"y": "z"}, "my.nc: z: is missing; the file has x, y; name the arrays"),
        (
            lambda: csv(TABLE),
            {"x": "weight", "y": "year"},
            "the file has id, height, year, xmin, k",
        ),
        (
            lambda: csv(TABLE),
            {"x": "kind", "y": "year"},
            "row 0, column 'kind' is 'a', which is no",
        ),
        (npz, {"context": "task"}, "my.npz: task: is missing; the file has x, y; name"),
        (lambda: npz(a=X[:2]), {"x": ["x", "a"]}, "input: differ in rows: x 3, a 2; use arrays"),
    ],
)
def test_chosen_arrays_that_do_not_exist_are_refused(write, keys, message):
    assert message in str(refusal(write(), **keys))


# Hostile files ----------------------------------------------------------------------------------

HEADER = "{{'descr': '{}', 'fortran_order': False, 'shape': {}}}"


def announced(shape, descr="<f8", content=b"\0" * 48, path="my.npz"):
    """An archive in which the header of x announces another array than its content."""
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


def link(target, path="my.csv"):
    os.symlink(target, path)
    return path


def sparse(path="my.csv"):
    with open(path, "wb") as file:
        file.truncate(40 * 10**9)
    return path


def oversized(path="my.nc"):
    """A NetCDF file whose variable announces 29 TiB and contains nothing."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("sample", 2 * 10**6)
        file.createDimension("input", 2 * 10**6)
        file.createVariable("x", "f8", ("sample", "input"), chunksizes=(1000, 1000))
    return path


def with_a_scale_factor_of_text(path="my.nc"):
    nc(path)
    with netCDF4.Dataset(path, "a") as file:
        file["x"].scale_factor = "ten"
    return path


def with_text_entries(path="my.nc"):
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("sample", 2)
        file.createVariable("x", str, ("sample",))[:] = np.array(["a", "b"], dtype=object)
    return path


LONG = np.longdouble("1e400")


@pytest.mark.parametrize(
    ("write", "problem"),
    [
        (lambda: pipe("my.npz"), "cannot be read (it is no regular file)"),
        (lambda: link("/dev/zero"), "cannot be read (it is no regular file)"),
        (lambda: link("my.csv"), "cannot be read (Too many levels of symbolic links)"),
        (sparse, "cannot be read (it has 40000 MB, and at most 1600 MB are read)"),
        (lambda: announced((10**15, 1)), "x: has the shape (1000000000000000, 1), and at most"),
        (lambda: announced((-3, -2)), "x: cannot be read (of shape (-3, -2) in"),
        (lambda: announced((10**7, 1)), "x: cannot be read (of shape (10000000, 1) in 176 b"),
        (lambda: announced((3, 2), content=bytes(10**8)), "x: cannot be read (of shape"),
        (lambda: announced((3, 2), "|O"), "x: holds Python objects, which are not read"),
        (lambda: announced((3, 2), "<f9"), "x: cannot be read"),
        (lambda: announced("(" * 1000), "x: cannot be read"),
        (lambda: npz(x=np.full((3, 2), LONG)), "x: row 0 is not finite; correct it"),
        (lambda: npz(x=np.where(X == 2, 1e200, X)), "x: row 1 has a value above 1e+100; use"),
        (lambda: npz(x=np.where(X == 2, np.nan, X)), "x: row 1 is not finite"),
        (lambda: npz(context=np.array([0, 10**15, 1])), "has the numbers 0, 1, 1000000000000000;"),
        (oversized, "x: has the shape (2000000, 2000000), and at most 2e+08 numbers are read"),
        (with_a_scale_factor_of_text, "scale_factor"),
        (with_text_entries, "x: holds"),
        (lambda: csv("x,y\n" + "1" * 200_000 + ",2\n"), "field limit"),
        (lambda: csv('x,y\n"1,2\n' * 50_000), "row 0"),
        (lambda: csv("x" * 10**6 + ",z\n1,2\n"), "field limit"),
        (lambda: csv("z" * 10**5 + ",x\n1,2\n"), "zzz': is no column"),
        (lambda: csv("x,y\n1,2\n\0,3\n"), "row 1"),
    ],
)
def test_hostile_file_is_refused_before_memory_is_allocated(write, problem):
    path = write()
    tracemalloc.start()
    try:
        error = refusal(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5e7
    assert problem in str(error)
    assert error.file == path
    assert len(str(error)) < 1000


@pytest.mark.parametrize(("suffix", "examples"), [(".npz", 300), (".csv", 300), (".nc", 8)])
def test_damaged_file_is_refused_with_a_message_or_gives_finite_numbers(suffix, examples):
    fuzz(suffix, examples)


def test_home_folder_may_be_abbreviated(tmp_path, monkeypatch):
    """The specification keeps the path as written: it is the same for every user."""
    monkeypatch.setenv("HOME", str(tmp_path))
    npz()
    dataset = File(name="file", path="~/my.npz")
    np.testing.assert_array_equal(dataset.load().x, X)
    assert dataset.path == "~/my.npz"
