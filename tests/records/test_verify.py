"""What `verify` finds, and what it lets be."""

import numpy as np
import pytest

from neuralrace.errors import UserError
from neuralrace.records.files import write
from neuralrace.records.verify import verify
from neuralrace.seal import Seal, digests, fingerprint, seal_file, sha256


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
        write(dataset, tmp_path / CELL / "trajectory.nc")
        return problems(tmp_path)

    return check


def test_sound_files(broken, found):
    assert found(broken) == []


def test_what_is_verified_is_told(broken, tmp_path):
    write(broken, tmp_path / CELL / "trajectory.nc")
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
            write(dataset, path, own)
    seal_file(paths["unsigned"]).unlink()
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
        "moved": "names another cell",
    }
    for line, (name, what) in zip(problems(tmp_path, wanted), expected.items(), strict=True):
        assert line.startswith(f"{paths[name]}: ")
        assert f"{paths[name]}: {paths[name]}" not in line
        assert what in line


def test_a_file_may_have_several_problems(broken, tmp_path):
    broken["loss"][0, 0, -1] = np.nan
    path = tmp_path / CELL / "trajectory.nc"
    write(broken, path)
    seal_file(path).unlink()
    lines = problems(tmp_path)
    assert len(lines) == 2
    assert all(line.startswith(f"{path}: ") for line in lines)


def test_another_code_than_its_checksum_file_names_is_told(broken, tmp_path):
    own = fingerprinted(broken.attrs)
    write(broken.assign_attrs(code_sha256="0" * 64), tmp_path / CELL / "trajectory.nc", own)
    (line,) = problems(tmp_path)
    assert "names another cell, specification or code than its checksum file" in line


# What was computed from result files --------------------------------------------------------------


@pytest.fixture
def chain(broken, tmp_path):
    """A trajectory, metrics of it, and a picture and tables of these, with their checksums."""
    folder = tmp_path / CELL
    write(broken, folder / "trajectory.nc", fingerprinted(broken.attrs))
    metrics = broken.isel(time=0).assign_attrs(kind="metrics")
    taken = digests(tmp_path, [f"{CELL}/trajectory.nc"])
    write(metrics, folder / "metrics.nc", fingerprinted(metrics.attrs), taken)
    from_metrics = digests(tmp_path, [f"{CELL}/metrics.nc"])
    for file, checksums in (
        (tmp_path / "figures/paper/one.png", tmp_path / "figures/paper/one.sha256"),
        (tmp_path / "claims.json", tmp_path / "claims.sha256"),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"content")
        Seal("", {file.name: sha256(file)}, from_metrics).write(checksums)
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
    write(other, path, fingerprinted(other.attrs))
    assert problems(chain) == [
        f"{chain / CELL / 'metrics.nc'}: was computed from another {path} than there is"
    ]
    seal_file(chain / CELL / "metrics.nc").unlink()
    lines = problems(chain)
    assert [line.partition(": ")[0] for line in lines] == [
        str(chain / name)
        for name in (f"{CELL}/metrics.nc", "claims.sha256", "figures/paper/one.sha256")
    ]


def test_a_damaged_checksum_file_is_told(chain):
    (chain / "claims.sha256").write_text("no checksum")
    (line,) = problems(chain)
    assert line == f"{chain / 'claims.sha256'}: is no checksum file; it is damaged"


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
