"""The lock of a results folder: one process at a time writes there, and over nobody else's files.

The lock is the kernel's, on a file in the folder itself: two clones that share a results folder
notice each other, and a killed run leaves no lock behind.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from neuralrace.errors import UserError
from neuralrace.results.checksums import read_checksums

LOCK = ".neuralrace"
OURS = b"Runs of neuralrace write their results here, and replace files under these names.\n"
"""What the lock file says once a run has found no file of somebody else under these names."""
NAMED = 3
"""Files in the way that a message names."""


@contextmanager
def locked(root: Path, outputs: Sequence[Path] = ()) -> Iterator[bool]:
    """Keeps a results folder for this process alone, however it ends.

    Args:
        root: the results folder.
        outputs: files that a run may write there. Where no run has been before, each of them that
            is there must be in a checksum file, or be one.

    Returns:
        Whether nobody else can be at work there; False on a file system without locks.

    Raises:
        UserError: another process is at work there, a file of somebody else is in the way, or the
            folder cannot be written to.
    """
    new = not ((root / LOCK).is_file() and os.path.getsize(root / LOCK))
    if new:
        _refuse_foreign(root, outputs)
    try:
        root.mkdir(parents=True, exist_ok=True)
        handle = os.open(root / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise UserError(
            f"{root}: cannot be written ({error.strerror}); check its permissions, or name another "
            "folder"
        ) from error
    try:
        alone = _lock(handle, root)
        if new and outputs:
            os.write(handle, OURS)
        yield alone
    finally:
        os.close(handle)


def _lock(handle: int, root: Path) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(
            f"{root}: another run is at work in this folder; wait for its end, or send results "
            "elsewhere: --config results=FOLDER"
        ) from None
    except OSError:  # a file system without locks
        return False
    return True


def _refuse_foreign(root: Path, outputs: Iterable[Path]) -> None:
    """Refuses files under the names of results that no checksum file names.

    Raises:
        UserError: there are some.
    """
    folders: dict[Path, list[Path]] = {}
    for path in outputs:
        folders.setdefault(path.parent, []).append(path)
    foreign = [path for folder, paths in folders.items() for path in _foreign(folder, paths)]
    if foreign:
        more = f" and {len(foreign) - NAMED} more" if len(foreign) > NAMED else ""
        raise UserError(
            f"{root}: {', '.join(map(str, foreign[:NAMED]))}{more}: not written by neuralrace "
            "(no checksum file names it), and a run would replace it. Move it elsewhere, or send "
            "results elsewhere: --config results=FOLDER"
        )


def _foreign(folder: Path, paths: Iterable[Path]) -> Iterator[Path]:
    there = [path for path in paths if os.path.lexists(path)]
    seals = {place: read_checksums(place) for place in folder.glob("*.sha256")} if there else {}
    ours = {folder / name for seal in seals.values() if seal for name in seal.files}
    ours |= {place for place, seal in seals.items() if seal}
    yield from (path for path in there if path not in ours)
