"""Atomic file writes: a file is replaced as a whole or not at all.

The content goes to a temporary file in the same folder, which is then renamed. A killed process may
leave its temporary file behind. The name contains a checksum of itself, so that a later run can
distinguish such a file from a file of the user with a similar name.
"""

import os
import shutil
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from neuralrace.errors import UserError

TEMPORARY = ".tmp"
"""Suffix of temporary names, which begin with a dot."""
SMALL_FILE = 2**17
"""A disk with less free space counts as full, in bytes."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary file in the same folder, and renames it to `path` at the end.

    Raises:
        UserError: the folder cannot be written to, or the disk is full.
    """
    temporary = path.with_name(_temporary(path.name, str(os.getpid())))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with open(temporary, "rb+") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except (OSError, RuntimeError, AssertionError) as error:
        # HDF5 reports a full disk as another error, such as "Permission denied"
        reason = "the disk is full" if _full(path.parent) else error
        raise UserError(
            f"cannot be written ({reason})",
            file=path,
            remedy="check that the folder is writable and the disk has room, then try again; "
            "nothing was replaced",
        ) from error
    finally:
        with suppress(OSError):  # must not hide the first error
            temporary.unlink()


def remove_temporaries(paths: Iterable[Path]) -> None:
    """Removes the temporary files that killed processes left behind.

    No other process may be writing these files: see `neuralrace.results.lock`.

    Args:
        paths: files whose temporary files are removed; the files themselves stay.
    """
    names: dict[Path, set[str]] = {}
    for path in paths:
        names.setdefault(path.parent, set()).add(path.name)
    for folder, known in names.items():
        for path in folder.glob(f".*{TEMPORARY}"):
            name, _, process = path.name[1 : -len(TEMPORARY)].rpartition(".")[0].rpartition(".")
            ours = name in known and path.name == _temporary(name, process)
            if ours and path.is_file() and not path.is_symlink():
                with suppress(OSError):
                    path.unlink()


def _temporary(name: str, process: str) -> str:
    stem = f"{name}.{process}"
    return f".{stem}.{zlib.crc32(f'neuralrace {stem}'.encode()):08x}{TEMPORARY}"


def _full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < SMALL_FILE
    except OSError:
        return False


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Writes a text file atomically.

    Raises:
        UserError: the folder cannot be written to, or the disk is full.
    """
    with replacing(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")
