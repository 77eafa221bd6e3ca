"""One run at a time in a results folder; of what killed runs left, only what is ours is removed."""

import os
import subprocess
import sys

import pytest

from neuralrace.errors import UserError
from neuralrace.workflow import recovery
from neuralrace.workflow.recovery import claim, sweep

CLAIM = """
import sys
from pathlib import Path
from neuralrace.workflow.recovery import claim
claim(Path(sys.argv[1]))
print("claimed", flush=True)
sys.stdin.read()
"""


def claiming(root):
    return subprocess.Popen(
        [sys.executable, "-c", CLAIM, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def released(monkeypatch):
    """What a test claims is free again after it."""
    held: list[int] = []
    monkeypatch.setattr(recovery, "_held", held)
    yield
    for handle in held:
        os.close(handle)


def test_a_folder_is_one_run_s_until_it_ends(tmp_path):
    root = tmp_path / "results"
    with claiming(root) as first:
        assert first.stdout.readline() == "claimed\n"
        with pytest.raises(UserError, match=r"results: another run is at work .* results=FOLDER"):
            claim(root)
        claim(tmp_path / "elsewhere")
        first.kill()  # the kernel gives back what it held
        first.wait()
        claim(root)


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"file: cannot be written"):
        claim(tmp_path / "file")


def test_a_file_system_without_locks_is_no_hindrance(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("no locks here")

    monkeypatch.setattr(recovery.fcntl, "flock", refuse)
    claim(tmp_path)
    claim(tmp_path)


def test_half_written_files_of_what_is_planned_are_removed_and_no_others(tmp_path):
    folder = tmp_path / "paper/experiment/main"
    folder.mkdir(parents=True)
    ours = [".trajectory.nc.17.tmp", ".trajectory.nc.sha256.17.tmp"]
    others = [
        "trajectory.nc", ".draft.tmp", ".thesis.tex.17.tmp", ".trajectory.nc.tmp",
        ".trajectory.nc.mine.tmp", "trajectory.nc.17.tmp",
    ]  # fmt: skip
    for name in (*ours, *others):
        (folder / name).touch()
    (tmp_path / ".trajectory.nc.17.tmp").touch()  # in a folder of no cell
    sweep([folder / "trajectory.nc", tmp_path / "none/metrics.nc"])
    assert sorted(path.name for path in folder.iterdir()) == sorted(others)
    assert (tmp_path / ".trajectory.nc.17.tmp").exists()
