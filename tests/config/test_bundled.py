"""Files of the workflow: in a clone, in an installed wheel, and missing."""

from pathlib import Path

import pytest

from builders import REPOSITORY
from neuralrace.config import bundled
from neuralrace.errors import UserError


def make_workflow(folder: Path) -> Path:
    """A new folder with a Snakefile."""
    folder.mkdir(parents=True)
    folder.joinpath("Snakefile").touch()
    return folder


def test_a_clone_has_the_files_at_its_root():
    assert bundled.root() == REPOSITORY
    assert all((bundled.root() / name).is_dir() for name in ("workflow", "config", "profiles"))


def test_installed_files_come_before_a_snakefile_around_them(tmp_path, monkeypatch):
    monkeypatch.setattr(bundled, "CLONE", make_workflow(tmp_path / "around"))
    inner = make_workflow(tmp_path / "around/neuralrace/config/bundled")
    monkeypatch.setattr(bundled, "FOLDER", inner)
    assert bundled.root() == inner


def test_without_the_files_the_message_names_the_remedy(tmp_path, monkeypatch):
    for name in ("FOLDER", "CLONE"):
        monkeypatch.setattr(bundled, name, tmp_path)
    with pytest.raises(UserError, match="the workflow is not there") as caught:
        bundled.root()
    assert caught.value.file == str(tmp_path / "Snakefile")
    assert caught.value.remedy.startswith("install neuralrace")
