"""Verification of results: sound files, damage, provenance and values."""

import os
import shutil

import numpy as np
import pytest

from builders import CELL_NAME
from neuralrace.errors import UserError
from neuralrace.results.checksums import (
    Checksums,
    checksum_path,
    file_sha256,
    read_checksums,
    recorded_checksums,
    recorded_fingerprint,
)
from neuralrace.results.files import write_result
from neuralrace.results.verify import verify
from result_files import file_fingerprint


@pytest.fixture
def broken(dataset):
    """A trajectory whose copy the test may damage."""
    return dataset[["loss", "layer_norm", "singular_values", "diverged_at"]].copy(deep=True)


def problems(root, planned=None):
    """Lines of the problems that `verify` reports, without count and advice."""
    lines = []
    try:
        verify(root, root / "figures", lines.append, planned)
    except UserError as error:
        assert lines == []
        count, *lines, advice, _ = str(error).splitlines()
        assert count == f"{len(lines)} problem{'s' * (len(lines) > 1)}"
        assert advice.startswith("To compute them again: snakemake --cores all --force ")
        return lines
    assert len(lines) == 1
    return []


@pytest.fixture
def problems_of(tmp_path):
    """A function that writes a dataset and returns its problems."""

    def check(dataset):
        write_result(dataset, tmp_path / CELL_NAME / "trajectory.nc")
        return problems(tmp_path)

    return check


def test_sound_files_have_no_problems(broken, problems_of):
    assert problems_of(broken) == []


def test_report_lists_what_was_verified(broken, tmp_path):
    write_result(broken, tmp_path / CELL_NAME / "trajectory.nc")
    lines = []
    verify(tmp_path, tmp_path / "figures", lines.append)
    assert lines == [
        "1 file of cells verified: checksum, schema, specification, code, inputs, finite values"
    ]
    with pytest.raises(UserError, match="no result files"):
        verify(tmp_path / "nowhere", tmp_path / "figures", lines.append)


def test_every_problem_of_every_file_is_listed(broken, tmp_path):
    names = ("sound", "missing", "unsigned", "changed", "foreign", "moved")
    paths = {name: tmp_path / f"paper/experiment/{name}/trajectory.nc" for name in names}
    planned = {}
    for name, path in paths.items():
        own = file_fingerprint(broken.attrs | {"cell": name})
        planned[path] = "0" * 64 if name == "foreign" else own
        if name != "missing":
            cell = "main" if name == "moved" else name
            write_result(broken.assign_attrs(cell=cell), path, own)
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
    lines = [line for line in problems(tmp_path, planned) if "names another cell" not in line]
    for line, (name, problem) in zip(lines, expected.items(), strict=True):
        assert line.startswith(f"{paths[name]}: ")
        assert f"{paths[name]}: {paths[name]}" not in line
        assert problem in line


def test_file_may_have_several_problems(broken, tmp_path):
    broken["loss"][0, 0, -1] = np.nan
    path = tmp_path / CELL_NAME / "trajectory.nc"
    write_result(broken, path)
    checksum_path(path).unlink()
    lines = problems(tmp_path)
    assert len(lines) == 2
    assert all(line.startswith(f"{path}: ") for line in lines)


@pytest.mark.parametrize("with_plan", [False, True])
def test_cell_in_the_folder_of_another_is_a_problem(broken, tmp_path, with_plan):
    """With its checksum files, so that each file is sound by itself."""
    paths = [tmp_path / f"paper/experiment/{name}/trajectory.nc" for name in ("one", "two")]
    for path in paths:
        dataset = broken.assign_attrs(cell=path.parent.name)
        write_result(dataset, path, file_fingerprint(dataset.attrs))
    planned = {path: recorded_fingerprint(path) for path in paths} if with_plan else None
    assert problems(tmp_path, planned) == []
    shutil.copytree(paths[0].parent, paths[1].parent, dirs_exist_ok=True)
    lines = problems(tmp_path, planned)
    assert lines[0] == (
        f"{paths[1]}: is of paper/experiment/one, and lies in the place of another cell"
    )
    assert len(lines) == 1 + with_plan
    for folder in (tmp_path / "paper/experiment", tmp_path / "paper"):
        assert len(problems(folder)) == 1
    assert problems(paths[1].parent) == []  # alone, it may have any folder


def test_variants_have_folders_of_their_own(broken, tmp_path):
    write_result(broken, tmp_path / "variants/blind/paper/experiment/fresh/main/trajectory.nc")
    assert problems(tmp_path) == []
    assert problems(tmp_path / "variants") == []


def test_edited_specification_is_a_problem(broken, tmp_path, monkeypatch):
    path = tmp_path / CELL_NAME / "trajectory.nc"
    spec = broken.attrs["spec"].replace("0.05", "0.07")
    with monkeypatch.context() as patch:
        patch.setattr("neuralrace.results.files.check_schema", lambda *_: None)
        write_result(broken.assign_attrs(spec=spec), path, file_fingerprint(broken.attrs))
    (line,) = problems(tmp_path)
    assert "has a specification (spec) that does not match its spec_sha256" in line


def test_other_files_are_ignored(broken, tmp_path):
    write_result(broken, tmp_path / CELL_NAME / "trajectory.nc")
    for name in ("thesis.sha256", "figures/mine/thesis.sha256", "notes.md", "figures/mine/a.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{'a' * 64}  thesis.tex")
    assert problems(tmp_path) == []


def test_other_code_than_in_the_checksum_file_is_a_problem(broken, tmp_path):
    own = file_fingerprint(broken.attrs)
    other = broken.assign_attrs(code_sha256="0" * 64)
    write_result(other, tmp_path / CELL_NAME / "trajectory.nc", own)
    (line,) = problems(tmp_path)
    assert "names another cell, specification or code than its checksum file" in line


# Provenance --------------------------------------------------------------------------------------


FIGURE = "figures/paper/one.png"


@pytest.fixture
def chain(broken, tmp_path):
    """A trajectory, metrics of it, and a figure and a table of the metrics, with checksum files."""
    folder = tmp_path / CELL_NAME
    write_result(broken, folder / "trajectory.nc", file_fingerprint(broken.attrs))
    metrics = broken.isel(time=0).assign_attrs(kind="metrics")
    inputs = recorded_checksums(tmp_path, [f"{CELL_NAME}/trajectory.nc"])
    write_result(metrics, folder / "metrics.nc", file_fingerprint(metrics.attrs), inputs)
    inputs = recorded_checksums(tmp_path, [f"{CELL_NAME}/metrics.nc"])
    for file, checksums in (
        (tmp_path / FIGURE, tmp_path / "figures/paper/one.sha256"),
        (tmp_path / "claims.json", tmp_path / "claims.sha256"),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"content")
        Checksums("", {file.name: file_sha256(file)}, inputs).write(checksums)
    return tmp_path


def test_sound_chain_has_no_problems(chain):
    assert problems(chain) == []


@pytest.mark.parametrize("file", [FIGURE, "claims.json"])
@pytest.mark.parametrize("content", [b"", b"edited", None])
def test_edited_pictures_and_tables_are_problems(chain, file, content):
    path = chain / file
    path.unlink() if content is None else path.write_bytes(content)
    (line,) = problems(chain)
    problem = "cannot be read" if content is None else "is not what was written"
    assert f"{path}: {problem}" in line


def test_files_computed_from_other_files_are_problems(chain, broken):
    other = broken.copy(deep=True)
    other["loss"][0, 0, -1] += 1
    path = chain / CELL_NAME / "trajectory.nc"
    write_result(other, path, file_fingerprint(other.attrs))
    assert problems(chain) == [
        f"{chain / CELL_NAME / 'metrics.nc'}: was computed from another {path} than there is"
    ]
    checksum_path(chain / CELL_NAME / "metrics.nc").unlink()
    lines = problems(chain)
    assert [line.partition(": ")[0] for line in lines] == [
        str(chain / name)
        for name in (f"{CELL_NAME}/metrics.nc", "claims.sha256", "figures/paper/one.sha256")
    ]


def test_damaged_checksum_file_is_a_problem(chain):
    (chain / "claims.sha256").write_text("no checksum")
    problem = "is missing or no checksum file, so that its files cannot be verified"
    assert problems(chain) == [f"{chain / 'claims.sha256'}: {problem}"]
    (chain / "claims.sha256").unlink()
    assert problems(chain) == [f"{chain / 'claims.sha256'}: {problem}"]
    (chain / "claims.json").unlink()
    assert problems(chain) == []


@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize(
    "file", [f"{CELL_NAME}/metrics.nc", "claims.json", "figures/paper/one.png"]
)
@pytest.mark.parametrize("way", ["in place", "renamed over", "copied over", "older version", "cut"])
def test_damage_is_noticed_for_any_dates_of_files(chain, tmp_path, file, way, copied):
    """Copies and `touch` give files new dates, and checksum files newer ones than their files."""
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
def test_value_that_is_not_finite_in_a_healthy_run_is_a_problem(broken, problems_of, value):
    broken["layer_norm"][1, 2, 5, 0] = value
    (line,) = problems_of(broken)
    assert "variable 'layer_norm' has non-finite values" in line


def test_values_after_divergence_may_be_infinite(broken, problems_of):
    broken["loss"][1, 2, 5:] = np.nan
    broken["layer_norm"][1, 2, 5:] = np.inf
    broken["diverged_at"][1, 2] = 10
    assert problems_of(broken) == []
    broken["loss"][1, 1, 5] = np.nan  # a run that did not diverge
    (line,) = problems_of(broken)
    assert "variable 'loss'" in line


def test_singular_values_may_be_padded(broken, problems_of):
    broken["singular_values"][..., -1] = np.nan
    assert problems_of(broken) == []


def test_metrics_may_be_undefined_but_not_infinite(broken, problems_of):
    metrics = broken.isel(time=0).assign_attrs(kind="metrics")
    metrics["loss"][0, 0] = np.nan
    assert problems_of(metrics) == []
    metrics["loss"][0, 0] = np.inf
    (line,) = problems_of(metrics)
    assert "variable 'loss' has infinite values" in line
    metrics["diverged_at"][0, 0] = 10
    assert problems_of(metrics) == []


def test_theory_must_be_finite(broken, problems_of):
    theory = broken.drop_vars("diverged_at").assign_attrs(kind="theory")
    assert problems_of(theory) == []
    theory["loss"][0, 0, 3] = np.nan
    (line,) = problems_of(theory)
    assert "variable 'loss' has non-finite values" in line


def test_solution_may_lack_any_variable_but_a_loss_that_it_declares(broken, problems_of):
    theory = broken.drop_vars("diverged_at").assign_attrs(kind="theory")
    for name in ("layer_norm", "loss"):
        theory[name] = theory[name].expand_dims(solution=2, axis=2).copy()
    theory["layer_norm"][:, :, 1] = np.nan
    assert problems_of(theory) == []
    theory["layer_norm"][0, 0, 0, 3] = np.nan
    (line,) = problems_of(theory)
    assert "variable 'layer_norm' has non-finite values" in line
    theory["layer_norm"][:, :, 0] = 1.0
    theory["loss"][:, :, 1] = np.nan
    for solutions, lines in (
        (["flow", "exact"], 1),
        (["flow", "unknown"], 1),
        (["flow", "ridge"], 0),
    ):
        problems = problems_of(theory.assign_coords(solution=solutions))
        assert ["variable 'loss' has non-finite values" in line for line in problems] == [
            True
        ] * lines
