"""Result files: round trips, encoding, damage, forgery, and faults while writing."""

import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import time

import netCDF4
import numpy as np
import pytest
import xarray as xr

from neuralrace.errors import UserError
from neuralrace.results import checksums, files
from neuralrace.results.checksums import (
    Checksums,
    check_file,
    checksum_path,
    file_sha256,
    fingerprint,
    read_checksums,
    recorded_checksum,
)
from neuralrace.results.files import open_lazily, read_result, write_result
from neuralrace.results.lock import locked
from neuralrace.results.verify import verify
from preloaded import no_locks, no_room
from warm_python import PYTHON


@pytest.fixture
def path(dataset, tmp_path):
    write_result(dataset, tmp_path / "trajectory.nc")
    return tmp_path / "trajectory.nc"


def test_file_is_read_as_written(dataset, path):
    back = read_result(path, "trajectory")
    xr.testing.assert_identical(back.drop_attrs(), dataset.drop_attrs())
    for name in dataset.variables:
        assert back[name].attrs == dataset[name].attrs
        if dataset[name].dtype.kind != "U":  # which come back as Python's
            assert back[name].dtype == dataset[name].dtype
    assert set(back.attrs) - set(dataset.attrs) == {"variables"}


def test_of_a_large_variable_only_what_is_used_is_read(dataset, path, monkeypatch):
    monkeypatch.setattr(files, "LARGE", dataset["loss"].nbytes - 1)
    small = [n for n, v in dataset.data_vars.items() if v.nbytes < dataset["loss"].nbytes][:1]
    read = read_result(path, names=["loss", *small])
    assert {n: v.variable._in_memory for n, v in read.data_vars.items()} == (
        {"loss": False} | dict.fromkeys(small, True)
    )
    whole = read_result(path)
    for name in read.data_vars:
        xr.testing.assert_identical(read[name], whole[name])


def test_nan_is_kept(dataset, tmp_path):
    broken = dataset.copy(deep=True)
    broken["loss"][0, 0, 3:] = np.nan
    write_result(broken, tmp_path / "a.nc")
    np.testing.assert_array_equal(read_result(tmp_path / "a.nc")["loss"], broken["loss"])


def test_same_dataset_gives_the_same_bytes(dataset, path, tmp_path):
    write_result(read_result(path), tmp_path / "elsewhere" / "again.nc")
    assert (tmp_path / "elsewhere" / "again.nc").read_bytes() == path.read_bytes()


def test_writing_leaves_only_the_file_and_its_checksum_file(path):
    assert {p.name for p in path.parent.iterdir()} == {"trajectory.nc", "trajectory.nc.sha256"}


def test_large_variables_have_a_chunk_for_each_run_and_checksums(dataset, tmp_path):
    large = dataset[["loss", "outputs"]].isel(time=[0], snapshot=[0]).drop_vars("loss")
    large = large.assign(loss=dataset["loss"])
    shape = (2, 3, 1, 4, 50_000)
    values = np.broadcast_to(np.arange(50_000.0), shape)
    large["outputs"] = (large["outputs"].dims, values, large["outputs"].attrs)
    write_result(large, tmp_path / "large.nc")
    with netCDF4.Dataset(tmp_path / "large.nc") as stored:
        for name in ("loss", "outputs", "time", "init_scale"):
            assert stored[name].filters()["fletcher32"], name
        assert stored["outputs"].chunking() == [1, 1, 1, 4, 50_000]


@pytest.fixture(params=["trajectory", "theory", "metrics"])
def labelled(request, dataset, tmp_path):
    """A file of each kind, with labels along an axis."""
    path = tmp_path / f"{request.param}.nc"
    loss = dataset[["loss"]].expand_dims(solution=["exact", "süß"], axis=2)
    write_result(loss.assign_attrs(kind=request.param), path)
    return path


def test_labels_are_characters_with_checksums(labelled):
    with netCDF4.Dataset(labelled) as stored:
        assert [name for name, variable in stored.variables.items() if variable.dtype is str] == []
        assert stored["solution"].filters()["fletcher32"]
    with xr.open_dataset(labelled) as plain:
        assert plain["solution"].values.tolist() == ["exact", "süß"]


def test_attributes_beyond_ascii_are_stored_as_characters(dataset, tmp_path, monkeypatch):
    spec = '{"name": "süß"}'
    written = []
    plain = xr.Dataset.to_netcdf
    monkeypatch.setattr(
        xr.Dataset, "to_netcdf", lambda self, *a, **k: [written.append(self), plain(self, *a, **k)]
    )
    named = dataset.assign_attrs(spec=spec, spec_sha256=fingerprint(spec))
    named["loss"].attrs["comment"] = "groß"
    write_result(named, tmp_path / "a.nc")
    # text beyond ASCII is stored as strings of any length, bytes are not
    assert isinstance(written[0].attrs["spec"], bytes)
    assert isinstance(written[0]["loss"].attrs["comment"], bytes)
    back = read_result(tmp_path / "a.nc")
    assert back.attrs["spec"] == named.attrs["spec"] == spec
    assert back["loss"].attrs["comment"] == "groß"


# Damage ----------------------------------------------------------------------------------------

UNREADABLE = r"trajectory\.nc: cannot be read .*damaged, or no .*--forcerun .*trajectory\.nc"


def test_flipped_bit_in_data_is_noticed(dataset, path):
    # the bytes of the stored norms are those where a file with other norms differs
    content = path.read_bytes()
    checksum_path(path).unlink()  # the file must notice by itself
    plain = dataset["layer_norm"].astype("f8").values
    other = dataset.copy(deep=True)
    other["layer_norm"][-1, -1, -1, -1] = plain[-1, -1, -1, -1] * 1.5
    write_result(other, path.parent / "other.nc")
    there = np.frombuffer((path.parent / "other.nc").read_bytes(), np.uint8)
    here = np.frombuffer(content, np.uint8)
    common = min(len(here), len(there))
    differing = np.flatnonzero(here[:common] != there[:common])
    assert len(differing) > 0
    for position in (differing[0], differing[len(differing) // 2]):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=UNREADABLE):
            read_result(path)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_truncated_file_is_noticed(path, share):
    content = path.read_bytes()
    checksum_path(path).unlink()  # the file must notice by itself
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(UserError, match=UNREADABLE):
        read_result(path)


@pytest.mark.parametrize("position", [0, 0.1, 0.5, 0.99])
def test_any_flipped_bit_differs_from_the_checksum(path, position):
    damaged = bytearray(path.read_bytes())
    damaged[int(position * len(damaged))] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(UserError, match=r"is damaged: .* checksum") as error:
        read_result(path)
    assert error.value.file == str(path)
    assert f"--forcerun {path} " in error.value.remedy


def tampered(dataset, path, change):
    """Writes a changed dataset without the checks of the writer."""
    checksum_path(path).unlink(missing_ok=True)
    complete = dataset.assign_attrs(variables=" ".join(sorted(map(str, dataset.variables))))
    change(complete).to_netcdf(path)


def without_attribute(dataset, name):
    kept = {key: value for key, value in dataset.attrs.items() if key != name}
    return dataset.drop_attrs(deep=False).assign_attrs(kept)


def without_loss(dataset):
    dataset = dataset.drop_vars("loss")
    return dataset.assign_attrs(variables=" ".join(sorted(map(str, dataset.variables))))


CHANGES = {
    "dropped variable": (lambda d: d.drop_vars("layer_norm"), r"lacks .* \['layer_norm'\]"),
    "dropped coordinate": (lambda d: d.drop_vars("flow_time"), r"lacks .* \['flow_time'\]"),
    "dropped loss": (without_loss, "lacks the variable 'loss'"),
    "missing run axis": (lambda d: d.isel(seed=0), "lacks the axes"),
    "missing attribute": (
        lambda d: without_attribute(d, "spec_sha256"),
        r"lacks the attributes \['spec_sha256'\]",
    ),
    "no attributes": (lambda d: d.drop_attrs(deep=False), "is no trajectory file"),
    "other kind": (lambda d: d.assign_attrs(kind="theory"), r"is no trajectory file .*'theory'"),
    "unknown kind": (lambda d: d.assign_attrs(kind="recipe"), r"is no trajectory file .*'recipe'"),
    "other schema": (lambda d: d.assign_attrs(schema="0"), "has schema '0', this version reads"),
    "edited specification": (
        lambda d: d.assign_attrs(spec=d.attrs["spec"].replace("0.05", "0.07")),
        r"has a specification \(spec\) that does not match its spec_sha256",
    ),
    "specification that is no JSON": (
        lambda d: d.assign_attrs(spec="{", spec_sha256=fingerprint("{")),
        r"has a specification \(spec\) that is no JSON object",
    ),
    "specification that nests without end": (
        lambda d: d.assign_attrs(spec="[" * 10**5, spec_sha256=fingerprint("[" * 10**5)),
        r"has a specification \(spec\) that is no JSON object",
    ),
    "checksum of the specification as an array": (
        lambda d: d.assign_attrs(spec_sha256=[1.0, 2.0]),
        r"lacks the attributes \['spec_sha256'\]",
    ),
    "kind as an array": (lambda d: d.assign_attrs(kind=[1, 2]), "is no trajectory file"),
    "no units": (
        lambda d: d.assign(layer_norm=d["layer_norm"].drop_attrs()),
        r"has variables without long_name or units: \['layer_norm'\]",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_content_outside_the_schema_is_refused(dataset, tmp_path, change):
    edit, message = CHANGES[change]
    tampered(dataset, tmp_path / "a.nc", edit)
    with pytest.raises(UserError, match=r"a\.nc: " + message + r".*delete it"):
        read_result(tmp_path / "a.nc", "trajectory")


def test_unchanged_content_is_accepted(dataset, tmp_path):
    tampered(dataset, tmp_path / "a.nc", lambda d: d)
    xr.testing.assert_identical(read_result(tmp_path / "a.nc").drop_attrs(), dataset.drop_attrs())


def forged(path, change):
    """Changes a sound file with netCDF4, and its checksum file accordingly."""
    with netCDF4.Dataset(path, "a") as stored:
        change(stored)
    Checksums("", {path.name: file_sha256(path)}).write(checksum_path(path))


def huge(stored):
    """29 TiB that were never written, and take no space."""
    for name, size in (("a", 2_000_000), ("b", 2_000_000)):
        stored.createDimension(name, size)
    stored.createVariable("sparse", "f8", ("a", "b"), chunksizes=(1000, 1000))


def huge_axis(stored):
    """An axis, which xarray reads when it opens a file."""
    stored.createDimension("a", 10**12)
    stored.createVariable("a", "f8", ("a",), chunksizes=(10**6,))


def huge_chunk(stored):
    """One number in a chunk of four GB, which is unpacked to read it."""
    stored.createDimension("a", None)
    stored.createVariable("a", "f8", ("a",), zlib=True, chunksizes=(2**29 - 1,))


def scaled(stored):
    stored["loss"].scale_factor = "ten"


def texts(stored):
    stored.createDimension("a", 10)
    stored.createVariable("a", str, ("a",))[:] = np.array(["x"] * 10, object)


FORGED = {
    "a sparse variable of 29 TiB": (huge, r"says that it holds 3.2e\+04 GB, more than the file"),
    "a sparse axis of 8 TB": (huge_axis, r"says that it holds 8e\+03 GB, more than the file"),
    "a chunk larger than what is in it": (huge_chunk, r"says that it holds 4\.\d+ GB"),
    "a scale factor of letters": (scaled, "cannot be opened .* although its content has the"),
    "texts of any length": (texts, "is no result file: 'a' is of another type than numbers"),
}


@pytest.mark.parametrize("kind", FORGED)
def test_forged_file_is_refused_before_it_fills_the_memory(path, kind):
    change, message = FORGED[kind]
    forged(path, change)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UserError, match=rf"trajectory\.nc: {message}"):
        read_result(path)
    if "scale" not in kind:
        with pytest.raises(UserError, match=rf"trajectory\.nc: {message}"):
            open_lazily(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"gone\.nc: result file not found; run"):
        read_result(tmp_path / "gone.nc")


def test_writer_refuses_a_dataset_outside_the_schema(dataset, tmp_path):
    with pytest.raises(UserError, match="has schema"):
        write_result(dataset.assign_attrs(schema="0"), tmp_path / "a.nc")
    assert list(tmp_path.iterdir()) == []


# Faults while writing --------------------------------------------------------------------------


def assert_old_file_is_kept(path, content):
    assert path.read_bytes() == content
    assert [p.name for p in path.parent.iterdir() if p.name.endswith(".tmp")] == []


def test_full_disk_replaces_nothing(dataset, path, monkeypatch):
    content = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(UserError, match=r"trajectory\.nc: .*\(the disk is full\).*nothing was"):
        write_result(dataset, path)
    assert_old_file_is_kept(path, content)


def test_file_that_reads_back_differently_replaces_nothing(dataset, path, monkeypatch):
    content = path.read_bytes()
    original = xr.Dataset.to_netcdf

    def lossy(self, *args, **kwargs):
        return original(self.assign(loss=self["loss"] * (1 + 1e-12)), *args, **kwargs)

    monkeypatch.setattr(xr.Dataset, "to_netcdf", lossy)
    with pytest.raises(UserError, match="cannot be written"):
        write_result(dataset, path)
    assert_old_file_is_kept(path, content)


def test_read_only_folder_is_named(dataset, path, monkeypatch):
    content = path.read_bytes()

    def refused(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", refused)
    with pytest.raises(UserError, match=r"trajectory\.nc: .*Permission denied.*writable"):
        write_result(dataset, path)
    assert_old_file_is_kept(path, content)


def test_folder_that_is_a_file_is_named(dataset, tmp_path):
    (tmp_path / "results").write_text("in the way")
    with pytest.raises(UserError, match=r"a\.nc: cannot be written"):
        write_result(dataset, tmp_path / "results" / "a.nc")
    assert (tmp_path / "results").read_text() == "in the way"


@pytest.mark.parametrize("at_creation", [False, True])
@pytest.mark.parametrize(
    ("error", "reason"),
    [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "the disk quota is exhausted")],
)
def test_lack_of_room_is_named_as_such(path, tmp_path, error, reason, at_creation):
    """HDF5 says "Permission denied" or "HDF error" in both cases."""
    content = path.read_bytes()
    environment = os.environ | no_room(tmp_path, "/new/", error, at_creation)
    order = [sys.executable, "-c", COPIER, str(path), str(path.parent / "new" / "a.nc")]
    done = subprocess.run(order, env=environment, capture_output=True, text=True, check=True)
    assert f"a.nc: cannot be written ({reason}); " in done.stdout
    assert "nothing was replaced" in done.stdout
    assert list((path.parent / "new").iterdir()) == []
    assert path.read_bytes() == content


def test_message_says_what_was_replaced_before_a_failure(dataset, path):
    place = checksum_path(path)
    place.unlink()
    place.mkdir()
    dataset = dataset.assign(loss=dataset["loss"] + 1)
    with pytest.raises(UserError, match=r"sha256: cannot be replaced \(Is a dir.*") as told:
        write_result(dataset, path)
    assert "trajectory.nc was replaced before it" in str(told.value)
    assert "nothing was replaced" not in str(told.value)
    xr.testing.assert_equal(read_result(path), dataset)
    place.rmdir()
    with locked(path.parent, [path, place]):
        assert recorded_checksum(path) == file_sha256(path)
    assert {each.name for each in path.parent.glob("*.tmp")} == set()


# Locks -------------------------------------------------------------------------------------------

COPIER = """
import sys
from neuralrace.errors import UserError
from neuralrace.results.files import open_lazily, read_result, write_result
source, target = sys.argv[1:]
try:
    write_result(read_result(source), target)
    print(float(read_result(target)["loss"].sum()) == float(open_lazily(target)["loss"].sum()))
except UserError as error:
    print(error)
"""
UNREADABLE_NOW = """
import sys
from pathlib import Path
from neuralrace.errors import UserError
from neuralrace.results.files import open_lazily, read_attributes, read_result
from neuralrace.results.verify import verify
path = Path(sys.argv[1])
for read in (read_result, open_lazily, read_attributes, lambda _: verify(path.parent, path, print)):
    try:
        read(path)
        print("read")
    except UserError as error:
        print(error, end="\\n\\n")
"""


@pytest.mark.parametrize("error", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_files_are_written_and_read_where_locks_fail(path, tmp_path, error):
    order = [sys.executable, "-c", COPIER, str(path), str(tmp_path / "copy.nc")]
    done = subprocess.run(
        order,
        env=os.environ | no_locks(tmp_path, error),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True\n", done.stdout
    assert (tmp_path / "copy.nc").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("locking", [None, "TRUE"])
def test_healthy_file_that_is_locked_elsewhere_is_not_called_damaged(path, locking):
    """It is read; where a person switches HDF5's locks on, the message says why it is not."""
    environment = {**os.environ, "HDF5_USE_FILE_LOCKING": locking or ""}
    if locking is None:
        del environment["HDF5_USE_FILE_LOCKING"]
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        order = [sys.executable, "-c", UNREADABLE_NOW, str(path)]
        done = subprocess.run(order, env=environment, capture_output=True, text=True, check=True)
    if locking is None:
        assert done.stdout.count("read\n") == 4, done.stdout
        return
    assert done.stdout.count("cannot be opened (") == 4, done.stdout
    assert done.stdout.count("although its content has the recorded checksum; close it") == 4
    assert "damaged" not in done.stdout
    assert "--force" not in done.stdout


def test_lack_of_memory_is_no_damage(path, monkeypatch):
    def refuse(*_, **__):
        raise MemoryError("Unable to allocate 3 TiB")

    monkeypatch.setattr(xr.Dataset, "load", refuse)
    for _ in range(2):  # with and without a checksum file
        with pytest.raises(UserError, match=r"cannot be .* \(Unable to allocate") as told:
            read_result(path)
        assert "damaged" not in str(told.value)
        checksum_path(path).unlink(missing_ok=True)


# Readers and killed writers between two renames ------------------------------------------------


def another(dataset):
    return dataset.assign(loss=dataset["loss"] + 1)


def test_reader_finds_a_sound_file_before_between_and_after_the_renames(dataset, path, monkeypatch):
    rename, seen = os.replace, []

    def look():
        seen.append(bool((read_result(path)["loss"] == another(dataset)["loss"]).all()))
        verify(path.parent, path.parent / "figures", lambda line: None)

    def replace(source, target):
        look()
        rename(source, target)
        look()

    monkeypatch.setattr(files.os, "replace", replace)
    write_result(another(dataset), path)
    assert seen == [False, True, True, True]


def test_reader_looks_again_at_a_file_that_is_replaced_while_it_is_read(dataset, path, monkeypatch):
    """Its content was the old one, and its checksum file is the new one."""
    read = checksums.recorded_checksum

    def replace_first(*places):
        monkeypatch.setattr(checksums, "recorded_checksum", read)
        write_result(another(dataset), path)
        return read(*places)

    monkeypatch.setattr(checksums, "recorded_checksum", replace_first)
    assert check_file(path)


KILLED = """
import os, signal, sys
from neuralrace.results import files
path, renames = sys.argv[1], int(sys.argv[2])
dataset = files.read_result(path)
rename, done = os.replace, []
def replace(*names):
    if len(done) == renames:
        os.kill(os.getpid(), signal.SIGKILL)
    done.append(rename(*names))
files.os.replace = replace
files.write_result(dataset.assign(loss=dataset["loss"] + 1), path)
"""


@pytest.mark.parametrize("renames", [0, 1])
def test_next_run_finishes_what_a_killed_writer_began(dataset, path, renames):
    done = PYTHON.run(["-c", KILLED, str(path), str(renames)])
    assert done.returncode == -signal.SIGKILL
    expected = another(dataset) if renames else dataset
    xr.testing.assert_equal(read_result(path), expected)
    outputs = [path, checksum_path(path)]
    with locked(path.parent, outputs):
        pass
    xr.testing.assert_equal(read_result(path), another(dataset))
    assert recorded_checksum(path) == file_sha256(path)
    assert not list(path.parent.glob(".*.tmp"))
    verify(path.parent, path.parent / "figures", lambda line: None)


def test_incomplete_temporary_files_replace_nothing(dataset, path):
    assert PYTHON.run(["-c", KILLED, str(path), "0"]).returncode == -signal.SIGKILL
    (temporary,) = path.parent.glob(".trajectory.nc.[0-9]*.tmp")
    temporary.write_bytes(temporary.read_bytes()[:-1])
    before = read_checksums(checksum_path(path))
    with locked(path.parent, [path, checksum_path(path)]):
        pass
    xr.testing.assert_equal(read_result(path), dataset)
    assert read_checksums(checksum_path(path)) == before


WRITER = """
import os, sys, time
import numpy as np
from neuralrace.results import files
stage, path = sys.argv[1:]
dataset = files.read_result(path)
dataset["loss"] = dataset["loss"] + 1
if stage == "data":  # large enough to be killed while writing
    values = np.random.default_rng(0).normal(size=(*dataset["outputs"].shape[:-1], 200_000))
    dims = (*dataset["outputs"].dims[:-1], "wide")
    dataset["outputs"] = (dims, values, dataset["outputs"].attrs)
else:  # written, flushed and read back, but not renamed yet
    files.os.replace = lambda *names: (print("ready", flush=True), time.sleep(60))
print("start", flush=True)
files.write_result(dataset, path)
"""


@pytest.mark.parametrize("stage", ["data", "replace"])
def test_killed_writer_leaves_the_old_file(dataset, path, stage):
    content = path.read_bytes()
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, stage, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "start\n"
        if stage == "replace":
            assert child.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 300
        while not (partial := list(path.parent.glob(".*.tmp"))) or not partial[0].stat().st_size:
            assert time.monotonic() < deadline
            assert child.poll() is None
            time.sleep(0.001)
        os.kill(child.pid, signal.SIGKILL)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    assert child.returncode == -signal.SIGKILL
    assert path.read_bytes() == content
    assert sorted(path.parent.glob("*.nc")) == [path]
    xr.testing.assert_identical(read_result(path).drop_attrs(), dataset.drop_attrs())
    write_result(dataset, path)
