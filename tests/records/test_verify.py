"""What `verify` finds, and what it lets be."""

import numpy as np
import pytest

from neuralrace.errors import UserError
from neuralrace.records.files import write
from neuralrace.records.verify import verify
from neuralrace.seal import seal_file


@pytest.fixture
def broken(dataset):
    """A trajectory of which the test may spoil a copy."""
    return dataset[["loss", "layer_norm", "singular_values", "diverged_at"]].copy(deep=True)


@pytest.fixture
def found(tmp_path):
    """A function that writes a dataset and returns what `verify` says of it."""
    path = tmp_path / "trajectory.nc"

    def check(dataset):
        write(dataset, path)
        said = []
        try:
            verify({str(path): dataset.attrs["spec_sha256"]}, said.append)
        except UserError as error:
            assert said == []
            return str(error).splitlines()[1:-1]
        (line,) = said
        assert line.startswith("1 files verified")
        return []

    return check


def test_sound_files(broken, found):
    assert found(broken) == []


def test_every_problem_of_every_file_is_told(broken, tmp_path):
    spec = broken.attrs["spec_sha256"]
    names = ("sound", "missing", "unsigned", "changed", "foreign")
    paths = {name: tmp_path / f"{name}.nc" for name in names}
    for name in set(names) - {"missing"}:
        write(broken, paths[name])
    seal_file(paths["unsigned"]).unlink()
    with paths["changed"].open("r+b") as handle:
        handle.seek(-1, 2)
        last = handle.read(1)[0]
        handle.seek(-1, 2)
        handle.write(bytes([last ^ 1]))
    wanted = {str(path): spec for path in paths.values()}
    wanted[str(paths["foreign"])] = "0" * 64
    said = []
    with pytest.raises(UserError) as raised:
        verify(wanted, said.append)
    count, *lines, advice = str(raised.value).splitlines()
    assert said == []
    assert count == "4 problems"
    assert "Delete the files named here" in advice
    for line, (name, what) in zip(
        lines,
        {
            "missing": "is missing",
            "unsigned": "its checksum unsigned.nc.sha256 is missing",
            "changed": "does not have the checksum it was written with",
            "foreign": "another specification",
        }.items(),
        strict=True,
    ):
        assert line.startswith(f"{paths[name]}: ")
        assert line.count(str(paths[name])) == 1
        assert what in line


def test_a_file_may_have_several_problems(broken, tmp_path):
    broken["loss"][0, 0, -1] = np.nan
    write(broken, tmp_path / "a.nc")
    seal_file(tmp_path / "a.nc").unlink()
    with pytest.raises(UserError, match=r"3 problems\n(.*a\.nc: .*\n){3}"):
        verify({str(tmp_path / "a.nc"): "0" * 64}, print)


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
