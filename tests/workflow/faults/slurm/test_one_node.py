"""A SLURM that a killed test left behind keeps no later one from starting; any other one does."""

import shutil
import sys

import one_node
import psutil
import pytest

pytestmark = pytest.mark.faults


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """A machine whose only folder for temporary files and whose configuration are of this test."""
    monkeypatch.setattr(one_node, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(one_node, "CONFIGURED", tmp_path / "etc/slurm.conf")
    (tmp_path / "etc").mkdir()
    return one_node.CONFIGURED


@pytest.fixture
def folder(configured, tmp_path):
    """Where a SLURM of the tests was, by the link that leads there."""
    folder = tmp_path / f"{one_node.PREFIX}abc"
    folder.mkdir()
    (folder / "slurm.conf").write_text("ClusterName=test\n")
    configured.symlink_to(folder / "slurm.conf")
    return folder


def test_one_that_runs_is_left_alone(folder, monkeypatch):
    own = psutil.Process()
    (folder / "slurmctld.pid").write_text(f"{own.pid}\n")
    monkeypatch.setattr(psutil.Process, "name", lambda self: "slurmctld")
    assert not one_node.left_behind()


def test_one_whose_number_another_process_has_now_is_gone(folder):
    (folder / "slurmctld.pid").write_text(f"{psutil.Process().pid}\n")
    assert one_node.left_behind()


@pytest.mark.parametrize("number", [None, "", f"{sys.maxsize}"])
def test_one_without_its_process_is_gone(folder, number):
    if number is not None:
        (folder / "slurmctld.pid").write_text(number)
    assert one_node.left_behind()


def test_one_whose_folder_is_gone_is_gone(folder):
    shutil.rmtree(folder)
    assert one_node.left_behind()


def test_one_of_the_machine_stays(configured, tmp_path):
    configured.write_text("ClusterName=real\n")
    assert not one_node.left_behind()
    configured.unlink()
    (tmp_path / "shared").mkdir()
    configured.symlink_to(tmp_path / "shared/slurm.conf")
    assert not one_node.left_behind()


def test_where_there_is_none_nothing_is_left_behind(configured):
    assert not one_node.left_behind()
