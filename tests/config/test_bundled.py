"""Where the workflow stands: in a clone, in what a wheel installs, and nowhere."""

from pathlib import Path

import pytest

from builders import REPOSITORY
from neuralrace.config import bundled
from neuralrace.errors import UserError


def put(folder: Path) -> Path:
    """A folder with a Snakefile."""
    folder.mkdir(parents=True)
    folder.joinpath("Snakefile").touch()
    return folder


def test_a_clone_is_its_own_root():
    assert bundled.root() == REPOSITORY
    assert all((bundled.root() / name).is_dir() for name in ("workflow", "config", "profiles"))


def test_what_was_installed_comes_before_a_snakefile_around_it(tmp_path, monkeypatch):
    monkeypatch.setattr(bundled, "CLONE", put(tmp_path / "around"))
    monkeypatch.setattr(bundled, "FOLDER", put(tmp_path / "around/neuralrace/config/bundled"))
    assert bundled.root() == tmp_path / "around/neuralrace/config/bundled"


def test_where_neither_is_there_it_says_so(tmp_path, monkeypatch):
    for name in ("FOLDER", "CLONE"):
        monkeypatch.setattr(bundled, name, tmp_path)
    with pytest.raises(UserError, match="Snakefile: the workflow is not there; install neuralrace"):
        bundled.root()
