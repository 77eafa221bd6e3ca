"""What killed runs leave behind, and how the last good files stay until others are there."""

import fcntl
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from neuralrace.atomic import give_back, keep, temporaries
from neuralrace.given import SOURCES

HELD: list[int] = []
"""Open files whose locks this process holds to its end, however it ends."""


def join(state: Path) -> bool:
    """Takes part in the runs of a folder.

    Each run holds a lock that the kernel takes back when its process ends. Who finds none held is
    alone, and then Snakemake's own locks are those of a run that was killed: they are removed.

    Args:
        state: Snakemake's folder, `.snakemake`.

    Returns:
        Whether no other run is at work here, as far as the file system can tell.
    """
    try:
        state.mkdir(exist_ok=True)
        handle = os.open(state / "runs", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:  # a folder that is read only: Snakemake says so
        return False
    HELD.append(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        alone = False
    except OSError:  # a file system without locks: Snakemake's own count
        return False
    else:
        alone = True
        for lock in state.glob("locks/*.lock"):
            with suppress(OSError):
                lock.unlink()
    fcntl.flock(handle, fcntl.LOCK_SH)
    return alone


def prepare(root: Path, gallery: Path, todo: Iterable[Path], alone: bool) -> None:
    """Readies a results folder for a run.

    What killed runs left half made is removed, and what they were about to replace is put back.
    Files that are to be made again are kept until others are there.

    Args:
        root: the results folder.
        gallery: the folder of its figures.
        todo: result files that are to be made.
        alone: whether no other run is at work.
    """
    if alone:
        for path in (*temporaries(root), *temporaries(gallery)):
            with suppress(OSError):
                path.unlink()
        for path in root.glob("*/*/*/*.last"):
            give_back(path.with_suffix(""))
    for path in todo:
        keep(path)
    for path in root.glob("*/*/*/*.nc"):
        if path.stem in SOURCES and path.stat().st_mtime > time.time() + 1:
            # by a clock that was wrong: Snakemake would take all that follows for outdated, ever
            with suppress(OSError):
                os.utime(path)


def finish(todo: Iterable[Path]) -> None:
    """Puts back what a run was about to replace and did not, as its jobs failed or were killed."""
    for path in todo:
        give_back(path)
