"""Atomic file writes: a file is replaced as a whole or not at all.

The content goes to a temporary file in the same folder, which is then renamed. Files that belong
together, such as a result file and its checksum file, are renamed one right after the other when
all are complete. A killed process may leave temporary files behind. Their names contain a checksum
of themselves, so that a later run can distinguish them from a file of the user with a similar name.
"""

import errno
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from neuralrace.errors import UserError

TEMPORARY = ".tmp"
"""Suffix of temporary names, which begin with a dot."""
SMALL_FILE = 2**17
"""A disk without room for so many bytes counts as full."""
NO_ROOM = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the disk quota is exhausted"}
"""What a message says about errors of a disk without room."""


class _Group:
    """Files of `replacing_together`.

    Attributes:
        paths: the files.
        written: temporary file of each one that is complete, in the order of writing.
    """

    def __init__(self, paths: Iterable[Path]):
        self.paths = frozenset(paths)
        self.written: dict[Path, Path] = {}


_group: ContextVar[_Group | None] = ContextVar("group", default=None)


@contextmanager
def replacing_together(paths: Iterable[Path]) -> Iterator[dict[Path, Path]]:
    """Replaces several files at the end, one right after the other, or none after an error.

    Inside, `replacing` and `write_text` write each of these files as a complete temporary file.
    The files are replaced in the order in which they were written. Other files are not affected.

    Yields:
        The temporary file of each file that was written so far.

    Raises:
        UserError: a file cannot be replaced. The message says whether others were.
    """
    group = _Group(paths)
    token = _group.set(group)
    try:
        yield group.written
    except BaseException:
        _remove(group.written.values())
        raise
    finally:
        _group.reset(token)
    done: list[Path] = []
    for path, temporary in group.written.items():
        try:
            os.replace(temporary, path)
        except OSError as error:
            if not done:
                _remove(group.written.values())
                raise _not_written(path, error) from error
            # the other temporary files stay, as after a kill: readers and the next run use them
            raise UserError(
                f"cannot be replaced ({error.strerror}); {done[-1].name} was replaced before it",
                file=path,
                remedy="check that nothing is in its place, then run the same command again",
            ) from error
        done.append(path)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary file in the same folder, and renames it to `path` at the end.

    Inside `replacing_together`, it is renamed at the end of that.

    Raises:
        UserError: the folder cannot be written to, or the disk is full.
    """
    temporary = path.with_name(_temporary(path.name, str(os.getpid())))
    group, waits = _group.get(), False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with open(temporary, "rb+") as handle:
            os.fsync(handle.fileno())
        if group is not None and path in group.paths:
            group.written[path], waits = temporary, True
        else:
            os.replace(temporary, path)
    except (OSError, RuntimeError, AssertionError) as error:
        raise _not_written(path, error) from error
    finally:
        if not waits:
            _remove([temporary])


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(OSError):  # must not hide the first error
            path.unlink()


def _not_written(path: Path, error: BaseException) -> UserError:
    return UserError(
        f"cannot be written ({_no_room(path.parent, error) or error})",
        file=path,
        remedy="check that the folder is writable and the disk has room, then try again; "
        "nothing was replaced",
    )


def _no_room(folder: Path, error: BaseException) -> str | None:
    """Why there is no room in a folder; None if there is, or the folder cannot be written to.

    HDF5 reports a full disk as another error, such as "Permission denied", and the free space of a
    disk does not tell of quotas. So a small file is written, while the incomplete file still takes
    its room.
    """
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return NO_ROOM[error.errno]
    probe = folder / _temporary("room", str(os.getpid()))
    try:
        with probe.open("wb") as file:
            file.write(os.urandom(SMALL_FILE))  # some disks compress zeros
            file.flush()
            os.fsync(file.fileno())
    except OSError as failure:
        return NO_ROOM.get(failure.errno or 0)
    finally:
        _remove([probe])
    return None


def temporaries(paths: Iterable[Path]) -> Iterator[tuple[Path, Path, str]]:
    """The temporary files of some files: the temporary file, the file and the writing process."""
    names: dict[Path, set[str]] = {}
    for path in paths:
        names.setdefault(path.parent, set()).add(path.name)
    for folder, known in names.items():
        for path in folder.glob(f".*{TEMPORARY}"):
            name, _, process = path.name[1 : -len(TEMPORARY)].rpartition(".")[0].rpartition(".")
            ours = name in known and path.name == _temporary(name, process)
            if ours and path.is_file() and not path.is_symlink():
                yield path, folder / name, process


def remove_temporaries(paths: Iterable[Path]) -> None:
    """Removes the temporary files that killed processes left behind.

    No other process may be writing these files: see `neuralrace.results.lock`.

    Args:
        paths: files whose temporary files are removed; the files themselves stay.
    """
    _remove([temporary for temporary, _, _ in temporaries(paths)])


def _temporary(name: str, process: str) -> str:
    stem = f"{name}.{process}"
    return f".{stem}.{zlib.crc32(f'neuralrace {stem}'.encode()):08x}{TEMPORARY}"


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Writes a text file atomically.

    Raises:
        UserError: the folder cannot be written to, or the disk is full.
    """
    with replacing(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")
