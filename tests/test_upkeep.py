"""What killed runs leave is cleared away, and what is good stays until there is better."""

import os
import subprocess
import sys
import time

import pytest

from neuralrace.atomic import give_back, keep, kept, set_aside, temporaries
from neuralrace.upkeep import finish, join, prepare

CELL = "paper/experiment/main"
JOIN = """
import sys
from pathlib import Path
from neuralrace.upkeep import join
print(join(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def results(tmp_path):
    path = tmp_path / CELL / "trajectory.nc"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"good")
    return tmp_path


def test_what_is_deleted_comes_back_unless_something_better_is_there(tmp_path):
    path = tmp_path / "trajectory.nc"
    path.write_bytes(b"good")
    keep(path)
    path.unlink()  # as Snakemake does
    give_back(path)
    assert path.read_bytes() == b"good"
    keep(path)
    path.unlink()
    path.write_bytes(b"better")
    give_back(path)
    assert path.read_bytes() == b"better"
    assert list(tmp_path.iterdir()) == [path]
    keep(tmp_path / "none.nc")
    give_back(tmp_path / "none.nc")
    assert list(tmp_path.iterdir()) == [path]


def test_it_is_kept_where_there_are_no_links(tmp_path, monkeypatch):
    path = tmp_path / "trajectory.nc"
    path.write_bytes(b"good")

    def refuse(*_):
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    keep(path)
    path.unlink()
    give_back(path)
    assert path.read_bytes() == b"good"


def test_a_damaged_file_is_set_aside(tmp_path):
    path = tmp_path / "trajectory.nc"
    path.write_bytes(b"bad")
    assert set_aside(path, path.name) == tmp_path / "trajectory.nc.damaged"
    assert not path.exists()


def test_a_run_keeps_what_it_replaces_and_puts_back_what_it_did_not(results):
    path = results / CELL / "trajectory.nc"
    todo = [path, path.with_name("metrics.nc")]
    prepare(results, results / "figures", todo, alone=True)
    assert kept(path).exists()
    path.unlink()
    finish(todo)
    assert path.read_bytes() == b"good"
    assert not kept(path).exists()


@pytest.mark.parametrize("alone", [True, False])
def test_what_a_killed_run_left_is_cleared_by_who_is_alone(results, alone):
    path = results / CELL / "trajectory.nc"
    half = path.with_name(".metrics.nc.1.tmp")
    half.write_bytes(b"half")
    keep(path)
    path.unlink()
    prepare(results, results / "figures", [], alone)
    assert path.exists() == alone
    assert temporaries(results) == ([] if alone else [half])


def test_times_of_the_future_are_those_of_now(results):
    path = results / CELL / "trajectory.nc"
    os.utime(path, (4e9, 4e9))
    prepare(results, results / "figures", [], alone=True)
    assert abs(path.stat().st_mtime - time.time()) < 60


def joining(state):
    return subprocess.Popen(
        [sys.executable, "-c", JOIN, str(state)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_locks_are_removed_by_who_is_alone(tmp_path):
    state, lock = tmp_path / ".snakemake", tmp_path / ".snakemake/locks/0.output.lock"
    lock.parent.mkdir(parents=True)
    with joining(state) as first:
        assert first.stdout.readline() == "True\n"
        lock.touch()
        with joining(state) as second:
            assert second.stdout.readline() == "False\n"
            first.kill()  # the second is still at work
            first.wait()
            with joining(state) as third:
                assert third.stdout.readline() == "False\n"
                assert lock.exists()
                third.stdin.close()
            second.kill()
            second.wait()
    assert join(state), "a kill leaves nothing held"
    assert not lock.exists()


def test_a_folder_that_cannot_be_written_to_is_nobodys(tmp_path):
    (tmp_path / "file").touch()
    assert not join(tmp_path / "file")
