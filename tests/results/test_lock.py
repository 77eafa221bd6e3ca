"""The lock of a results folder, and safety of other files in it."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralrace.errors import UserError
from neuralrace.results.atomic import _temporary, remove_temporaries, replacing, write_text
from neuralrace.results.checksums import Checksums, checksum_path, file_sha256
from neuralrace.results.lock import LOCK, locked
from neuralrace.workflow.checkpoints import FileCheckpoints

LOCKING = """
import sys
from pathlib import Path
from neuralrace.results.lock import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def locking_elsewhere(root):
    return subprocess.Popen(
        [sys.executable, "-c", LOCKING, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def test_folder_is_locked_until_the_process_ends(tmp_path):
    root = tmp_path / "results"
    link = tmp_path / "link"  # another clone may know the folder by another path
    link.symlink_to(root)
    with locking_elsewhere(root) as first:
        assert first.stdout.readline() == "locked\n"
        for path in (root, link):
            with (
                pytest.raises(UserError, match=r"another run is at work .* results=FOLDER"),
                locked(path),
            ):
                pass
        with locked(tmp_path / "elsewhere") as alone:
            assert alone
        first.kill()  # the kernel releases the lock
        first.wait()
        for _ in range(2):
            with locked(root) as alone:
                assert alone


@pytest.mark.parametrize("what", ["file", "link that leads nowhere", "link to itself"])
def test_folder_that_cannot_be_written_to_is_refused(tmp_path, what):
    root = tmp_path / "results"
    if what == "file":
        root.touch()
    else:
        root.symlink_to(tmp_path / ("nowhere" if what.endswith("nowhere") else "results"))
    with pytest.raises(UserError, match=r"results: cannot be written"), locked(root):
        pass


def test_file_system_without_locks_is_reported(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("no locks here")

    monkeypatch.setattr("fcntl.flock", refuse)
    with locked(tmp_path) as alone, locked(tmp_path):
        assert not alone


# Files of the user -------------------------------------------------------------------------------

CELLS = ("paper/experiment/main", "paper/experiment/learning_rate-0.1")
OUTPUTS = [
    *(f"{cell}/{kind}.nc{end}" for cell in CELLS for kind in ("trajectory", "metrics")
      for end in ("", ".sha256")),
    "metrics.csv", "metrics.csv.sha256", "claims.md", "claims.sha256",
]  # fmt: skip
CHECKPOINT = "checkpoints/paper/experiment/main.npz"


def run(root: Path) -> None:
    """Does in a results folder what a run does: at its start, for each file, and at its end."""
    outputs = [root / name for name in OUTPUTS]
    with locked(root, outputs):
        remove_temporaries(outputs)
        for path in outputs:
            if path.suffix != ".sha256":
                write_text("a result", path)
                Checksums("", {path.name: file_sha256(path)}).write(checksum_path(path))
        FileCheckpoints(root / CHECKPOINT, "one", 0.0).clear()


NAMES = st.one_of(
    st.sampled_from(
        [
            ".draft.tmp", ".config.tmp", "thesis.tex.last", "data.last", ".trajectory.nc.tmp",
            ".trajectory.nc.17.tmp", ".metrics.nc.sha256.17.tmp", ".metrics.csv.2026.tmp",
            ".trajectory.nc.17.00000000.tmp", "trajectory.nc.last", "trajectory.nc.17.tmp",
            ".lock", ".snakemake.tmp", ".main.npz.17.tmp", "main.npz.last", "notes.md",
            "metrics.csv", "claims.md", "claims.sha256", "trajectory.nc", "trajectory.nc.sha256",
            _temporary("thesis.nc", "17"), _temporary("metrics.nc", "17").replace(".17.", ".18."),
        ]
    ),
    st.from_regex(r"\.?[a-z]{1,8}(\.(nc|csv|npz))?(\.\d{1,5})?\.(tmp|last|lock)", fullmatch=True),
)  # fmt: skip
FOLDERS = st.one_of(
    st.sampled_from(["", *CELLS, *(str(Path(cell).parent) for cell in CELLS), "checkpoints",
                     str(Path(CHECKPOINT).parent), "logs", "variants/blind/paper/experiment",
                     "home/mine"]),
    st.lists(st.from_regex(r"[a-z]{1,5}", fullmatch=True), max_size=5).map("/".join),
)  # fmt: skip
TREES = st.dictionaries(st.tuples(FOLDERS, NAMES), st.binary(max_size=20), max_size=12)


def snapshot(root: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {
        path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in files
    }


@settings(max_examples=int(os.environ.get("NEURALRACE_EXAMPLES", "60")))
@given(tree=TREES, twice=st.booleans())
def test_no_file_of_the_user_is_touched(tree, twice):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if twice:  # files that appear between two runs are the user's too
            run(root)
        ours = snapshot(root).keys()
        for (place, name), content in tree.items():
            path = root / place / name
            relative = path.relative_to(root).as_posix()
            if relative in ours or any(parent.is_file() for parent in path.parents):
                continue
            if path.is_dir() or (twice and relative in OUTPUTS):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        before = snapshot(root)
        foreign = before.keys() - ours
        in_the_way = foreign & set(OUTPUTS)
        if in_the_way:
            with pytest.raises(UserError, match="not written by neuralrace"):
                run(root)
            assert snapshot(root) == before
            return
        run(root)
        after = snapshot(root)
        assert {name: after.get(name) for name in foreign} == {n: before[n] for n in foreign}


def test_temporary_files_of_killed_runs_are_removed(tmp_path):
    cell = tmp_path / CELLS[0]
    cell.mkdir(parents=True)
    writers = [replacing(cell / name) for name in ("trajectory.nc", "trajectory.nc.sha256")]
    for writer in writers:  # a killed process never leaves the context
        writer.__enter__().touch()
    assert len(list(cell.iterdir())) == 2
    remove_temporaries([tmp_path / name for name in OUTPUTS if "metrics" in name])
    assert len(list(cell.iterdir())) == 2
    remove_temporaries([tmp_path / name for name in OUTPUTS])
    assert list(cell.iterdir()) == []


def test_copied_results_are_not_foreign(tmp_path):
    path = tmp_path / OUTPUTS[0]
    write_text("a result", path)
    Checksums("", {path.name: file_sha256(path)}).write(checksum_path(path))
    run(tmp_path)
    (tmp_path / LOCK).unlink()
    run(tmp_path)
