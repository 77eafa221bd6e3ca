"""The lock of a results folder: only one process at a time writes there.

The lock is a kernel lock on a file in the folder. It works between clones that share a results
folder, and the kernel releases it when a run is killed.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from neuralrace.errors import UserError
from neuralrace.results.checksums import finish_replacements, pending_checksums, read_checksums

LOCK = ".neuralrace"
CONTENT = b"Runs of neuralrace write their results here, and replace files under these names.\n"
"""Content of the lock file after a first run, which has checked the files that it replaces."""
NAMED = 3
"""Largest number of foreign files that a message names."""


@contextmanager
def locked(root: Path, outputs: Sequence[Path] = ()) -> Iterator[bool]:
    """Reserves a results folder for this process until the `with` block ends.

    The first run in a folder also checks `outputs`. Those that exist must be checksum files, or
    listed in one. All others were not written by this library, and would be lost. Replacements that
    a killed run left half done are finished.

    Args:
        root: the results folder.
        outputs: files that the run may write there.

    Yields:
        Whether the lock was acquired; False on a file system without locks.

    Raises:
        UserError: another process holds the lock, a foreign file would be replaced, or the folder
            cannot be written to.
    """
    new = not ((root / LOCK).is_file() and os.path.getsize(root / LOCK))
    if new:
        _check_foreign_files(root, outputs)
    try:
        root.mkdir(parents=True, exist_ok=True)
        handle = os.open(root / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise _not_writable(root, error) from error
    try:
        alone = _lock(handle, root)
        if new and outputs:
            _mark(handle, root)
        if alone:
            finish_replacements(outputs)
        yield alone
    finally:
        os.close(handle)


def _mark(handle: int, root: Path) -> None:
    try:
        os.write(handle, CONTENT)
    except OSError as error:  # such as a full disk
        raise _not_writable(root, error) from error


def _not_writable(root: Path, error: OSError) -> UserError:
    return UserError(
        f"cannot be written ({error.strerror})",
        file=root,
        remedy="check its permissions and the room on its disk, or name another folder",
    )


def _lock(handle: int, root: Path) -> bool:
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(
            "another run is at work in this folder",
            file=root,
            remedy="wait for its end, or send results elsewhere: --config results=FOLDER",
        ) from None
    except OSError:  # a file system without locks
        return False
    return True


def _check_foreign_files(root: Path, outputs: Iterable[Path]) -> None:
    """Raises UserError if outputs exist that no checksum file lists."""
    folders: dict[Path, list[Path]] = {}
    for path in outputs:
        folders.setdefault(path.parent, []).append(path)
    foreign = [path for folder, paths in folders.items() for path in _foreign(folder, paths)]
    if foreign:
        more = f" and {len(foreign) - NAMED} more" if len(foreign) > NAMED else ""
        raise UserError(
            f"{', '.join(map(str, foreign[:NAMED]))}{more}: not written by neuralrace (no checksum "
            "file names it), and a run would replace it",
            file=root,
            remedy="move it elsewhere, or send results elsewhere: --config results=FOLDER",
        )


def _foreign(folder: Path, paths: Iterable[Path]) -> Iterator[Path]:
    existing = [path for path in paths if os.path.lexists(path)]
    if not existing:
        return
    files = {*folder.glob("*.sha256"), *(path for path in paths if path.suffix == ".sha256")}
    read = {path: read_checksums(path) for path in files}
    checksums = {path: content for path, content in read.items() if content}
    # of a killed writer, which replaced a file and not yet its checksum file
    pending = [content for path in read for content in pending_checksums(path)]
    known = {folder / name for each in (*checksums.values(), *pending) for name in each.files}
    known |= checksums.keys()
    yield from (path for path in existing if path not in known)
