"""What `verify` finds, and what it lets be."""

import os
import shutil

import numpy as np
import pytest

from neuralrace.errors import UserError
from neuralrace.results.files import write_result
from neuralrace.results.verify import verify
from neuralrace.results.checksums import (
    Checksums,
    recorded_checksums,
    fingerprint,
    recorded_fingerprint,
    read_checksums,
    checksum_path,
    file_sha256,
)


@pytest.fixture
def broken(dataset):
    """A trajectory of which the test may spoil a copy."""
    return dataset[["loss", "layer_norm", "singular_values", "diverged_at"]].copy(deep=True)


CELL = "paper/experiment/main"


def fingerprinted(attrs):
    """The fingerprint of a file that says this of itself."""
    return fingerprint(CELL, attrs["spec_sha256"], attrs["code_sha256"])


def problems(root, planned=None):
    """What `verify` says of a folder, a line each, without count and advice."""
    said = []
    try:
        verify(root, root / "figures", said.append, planned)
    except UserError as error:
        assert said == []
        count, *lines, advice, _ = str(error).splitlines()
        assert count == f"{len(lines)} problem{'s' * (len(lines) > 1)}"
        assert advice.startswith("To compute them again: snakemake --cores all --force ")
        return lines
    assert len(said) == 1
    return []


@pytest.fixture
def found(tmp_path):
    """A function that writes a dataset and returns what `verify` says of it."""

    def check(dataset):
        write_result(dataset, tmp_path / CELL / "trajectory.nc")
        return problems(tmp_path)

    return check


def test_sound_files(broken, found):
    assert found(broken) == []


def test_what_is_verified_is_told(broken, tmp_path):
    write_result(broken, tmp_path / CELL / "trajectory.nc")
    said = []
    verify(tmp_path, tmp_path / "figures", said.append)
    assert said == [
        "1 files verified: checksum, schema, specification, code, inputs, finite values"
    ]
    with pytest.raises(UserError, match="no result files"):
        verify(tmp_path / "nowhere", tmp_path / "figures", said.append)


def test_every_problem_of_every_file_is_told(broken, tmp_path):
    names = ("sound", "missing", "unsigned", "changed", "foreign", "moved")
    paths = {name: tmp_path / f"paper/experiment/{name}/trajectory.nc" for name in names}
    wanted = {}
    for name, path in paths.items():
        dataset = broken.assign_attrs(cell="main" if name == "moved" else name)
        attrs = dataset.attrs
        cell = f"paper/experiment/{name}"
        own = fingerprint(cell, attrs["spec_sha256"], attrs["code_sha256"])
        wanted[path] = "0" * 64 if name == "foreign" else own
        if name != "missing":
            write_result(dataset, path, own)
    checksum_path(paths["unsigned"]).unlink()
    with paths["changed"].open("r+b") as handle:
        handle.seek(-1, 2)
        last = handle.read(1)[0]
        handle.seek(-1, 2)
        handle.write(bytes([last ^ 1]))
    expected = {
        "missing": "is missing",
        "unsigned": "its checksum trajectory.nc.sha256 is missing or damaged",
        "changed": "does not have the checksum it was written with",
        "foreign": "another configuration or other code",
        "moved": "is of paper/experiment/main, and lies in the place of another cell",
    }
    said = [line for line in problems(tmp_path, wanted) if "names another cell" not in line]
    for line, (name, what) in zip(said, expected.items(), strict=True):
        assert line.startswith(f"{paths[name]}: ")
        assert f"{paths[name]}: {paths[name]}" not in line
        assert what in line


def test_a_file_may_have_several_problems(broken, tmp_path):
    broken["loss"][0, 0, -1] = np.nan
    path = tmp_path / CELL / "trajectory.nc"
    write_result(broken, path)
    checksum_path(path).unlink()
    lines = problems(tmp_path)
    assert len(lines) == 2
    assert all(line.startswith(f"{path}: ") for line in lines)


@pytest.mark.parametrize("planned", [False, True])
def test_a_whole_cell_in_the_place_of_a_sibling_is_told(broken, tmp_path, planned):
    """With its checksum files, so that each file is sound by itself."""
    cells = {f"paper/experiment/{name}": name for name in ("one", "two")}
    for cell, name in cells.items():
        named = broken.assign_attrs(cell=name)
        own = fingerprint(cell, named.attrs["spec_sha256"], named.attrs["code_sha256"])
        write_result(named, tmp_path / cell / "trajectory.nc", own)
    paths = [tmp_path / cell / "trajectory.nc" for cell in cells]
    wanted = {path: recorded_fingerprint(path) for path in paths}
    assert problems(tmp_path, wanted if planned else None) == []
    shutil.copytree(paths[0].parent, paths[1].parent, dirs_exist_ok=True)
    lines = problems(tmp_path, wanted if planned else None)
    assert lines[0] == (
        f"{paths[1]}: is of paper/experiment/one, and lies in the place of another cell"
    )
    assert len(lines) == 1 + planned
    for folder in (tmp_path / "paper/experiment", tmp_path / "paper"):
        assert len(problems(folder)) == 1
    assert problems(paths[1].parent) == []  # alone, it may lie anywhere


def test_robustness_runs_lie_in_folders_of_their_variant(broken, tmp_path):
    write_result(broken, tmp_path / "robustness/paper/experiment/fresh/main/trajectory.nc")
    assert problems(tmp_path) == []
    assert problems(tmp_path / "robustness") == []


def test_an_edited_specification_is_told(broken, tmp_path, monkeypatch):
    path = tmp_path / CELL / "trajectory.nc"
    spec = broken.attrs["spec"].replace("0.05", "0.07")
    with monkeypatch.context() as patch:
        patch.setattr("neuralrace.results.files.check", lambda *_: None)
        write_result(broken.assign_attrs(spec=spec), path, fingerprinted(broken.attrs))
    (line,) = problems(tmp_path)
    assert "has a specification (spec) that is not the one of its spec_sha256" in line


def test_files_of_others_are_nobodys_business(broken, tmp_path):
    write_result(broken, tmp_path / CELL / "trajectory.nc")
    for name in ("thesis.sha256", "figures/mine/thesis.sha256", "notes.md", "figures/mine/a.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{'a' * 64}  thesis.tex")
    assert problems(tmp_path) == []


def test_another_code_than_its_checksum_file_names_is_told(broken, tmp_path):
    own = fingerprinted(broken.attrs)
    write_result(broken.assign_attrs(code_sha256="0" * 64), tmp_path / CELL / "trajectory.nc", own)
    (line,) = problems(tmp_path)
    assert "names another cell, specification or code than its checksum file" in line


# What was computed from result files --------------------------------------------------------------


@pytest.fixture
def chain(broken, tmp_path):
    """A trajectory, metrics of it, and a picture and tables of these, with their checksums."""
    folder = tmp_path / CELL
    write_result(broken, folder / "trajectory.nc", fingerprinted(broken.attrs))
    metrics = broken.isel(time=0).assign_attrs(kind="metrics")
    taken = recorded_checksums(tmp_path, [f"{CELL}/trajectory.nc"])
    write_result(metrics, folder / "metrics.nc", fingerprinted(metrics.attrs), taken)
    from_metrics = recorded_checksums(tmp_path, [f"{CELL}/metrics.nc"])
    for file, checksums in (
        (tmp_path / "figures/paper/one.png", tmp_path / "figures/paper/one.sha256"),
        (tmp_path / "claims.json", tmp_path / "claims.sha256"),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"content")
        Checksums("", {file.name: file_sha256(file)}, from_metrics).write(checksums)
    return tmp_path


def test_a_sound_chain(chain):
    assert problems(chain) == []


@pytest.mark.parametrize("file", ["figures/paper/one.png", "claims.json"])
@pytest.mark.parametrize("content", [b"", b"edited", None])
def test_pictures_and_tables_that_were_edited_are_told(chain, file, content):
    path = chain / file
    path.unlink() if content is None else path.write_bytes(content)
    (line,) = problems(chain)
    what = "cannot be read" if content is None else "is not what was written"
    assert f"{path}: {what}" in line


def test_what_was_computed_from_other_files_than_there_are_is_told(chain, broken):
    other = broken.copy(deep=True)
    other["loss"][0, 0, -1] += 1
    path = chain / CELL / "trajectory.nc"
    write_result(other, path, fingerprinted(other.attrs))
    assert problems(chain) == [
        f"{chain / CELL / 'metrics.nc'}: was computed from another {path} than there is"
    ]
    checksum_path(chain / CELL / "metrics.nc").unlink()
    lines = problems(chain)
    assert [line.partition(": ")[0] for line in lines] == [
        str(chain / name)
        for name in (f"{CELL}/metrics.nc", "claims.sha256", "figures/paper/one.sha256")
    ]


def test_a_damaged_checksum_file_is_told(chain):
    (chain / "claims.sha256").write_text("no checksum")
    told = "is missing or no checksum file, so that nobody can tell whether its files are sound"
    assert problems(chain) == [f"{chain / 'claims.sha256'}: {told}"]
    (chain / "claims.sha256").unlink()
    assert problems(chain) == [f"{chain / 'claims.sha256'}: {told}"]
    (chain / "claims.json").unlink()
    assert problems(chain) == []


@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize("file", [f"{CELL}/metrics.nc", "claims.json", "figures/paper/one.png"])
@pytest.mark.parametrize("way", ["in place", "renamed over", "copied over", "older version", "cut"])
def test_damage_is_told_whatever_the_times_are(chain, tmp_path, file, way, copied):
    """Copies and `touch` give all files other times, a checksum file a newer one than its file."""
    path = chain / file
    old = path.read_bytes()
    if copied:
        for each in sorted(chain.rglob("*"), reverse=True):
            os.utime(each)
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    damaged = bytes([old[0] ^ 1]) + old[1:]
    if way == "in place":
        with path.open("r+b") as handle:
            handle.write(damaged[:1])
    elif way == "older version":
        path.write_bytes(old + b"newer")
        Checksums("", {path.name: file_sha256(path)}).write(checksum_path(path))
        if path.suffix != ".nc":
            place = path.with_suffix(".sha256")
            kept = read_checksums(place)
            Checksums("", {path.name: file_sha256(path)}, kept.inputs).write(place)
            checksum_path(path).unlink()
        path.write_bytes(old)
    else:
        other = tmp_path.parent / "other"
        other.write_bytes(old[: len(old) // 2] if way == "cut" else damaged)
        other.replace(path) if way == "renamed over" else shutil.copyfile(other, path)
    os.utime(path, ns=times)
    assert any(str(path) in line for line in problems(chain))


# Values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_in_a_healthy_run(broken, found, value):
    broken["layer_norm"][1, 2, 5, 0] = value
    (line,) = found(broken)
    assert "variable 'layer_norm' has non-finite values" in line


def test_what_a_run_records_after_it_diverged_is_its_own(broken, found):
    broken["loss"][1, 2, 5:] = np.nan
    broken["layer_norm"][1, 2, 5:] = np.inf
    broken["diverged_at"][1, 2] = 10
    assert found(broken) == []
    broken["loss"][1, 1, 5] = np.nan  # beside it, a run that did not diverge
    (line,) = found(broken)
    assert "variable 'loss'" in line


def test_padding_of_singular_values_is_no_damage(broken, found):
    broken["singular_values"][..., -1] = np.nan
    assert found(broken) == []


def test_metrics_may_be_undefined_but_not_infinite(broken, found):
    metrics = broken.isel(time=0).assign_attrs(kind="metrics")
    metrics["loss"][0, 0] = np.nan
    assert found(metrics) == []
    metrics["loss"][0, 0] = np.inf
    (line,) = found(metrics)
    assert "variable 'loss' has infinite values" in line
    metrics["diverged_at"][0, 0] = 10
    assert found(metrics) == []


def test_theory_has_no_run_to_excuse_it(broken, found):
    theory = broken.drop_vars("diverged_at").assign_attrs(kind="theory")
    assert found(theory) == []
    theory["loss"][0, 0, 3] = np.nan
    (line,) = found(theory)
    assert "variable 'loss' has non-finite values" in line


def test_a_solution_need_not_give_every_variable(broken, found):
    theory = broken.drop_vars("diverged_at").assign_attrs(kind="theory")
    for name in ("layer_norm", "loss"):
        theory[name] = theory[name].expand_dims(solution=2, axis=2).copy()
    theory["layer_norm"][:, :, 1] = np.nan
    assert found(theory) == []
    theory["layer_norm"][0, 0, 0, 3] = np.nan
    (line,) = found(theory)
    assert "variable 'layer_norm' has non-finite values" in line
    theory["layer_norm"][:, :, 0] = 1.0
    theory["loss"][:, :, 1] = np.nan  # but each gives its loss
    (line,) = found(theory)
    assert "variable 'loss' has non-finite values" in line
