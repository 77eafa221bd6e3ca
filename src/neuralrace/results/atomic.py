"""Atomic file writes: a file is either whole or as it was before.

A file is written under a temporary name beside it. That name carries a checksum of itself, so that
what a killed process left can be told from a file of the user's with a name like it.
"""

import os
import shutil
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from neuralrace.errors import UserError

TEMPORARY = ".tmp"
"""How a temporary name ends; it begins with a dot."""
LEAST = 2**17
"""Bytes that are left of a disk which is as good as full."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file in the same folder that takes the place of `path` once it is complete.

    Raises:
        UserError: the folder cannot be written to or is full.
    """
    temporary = path.with_name(_temporary(path.name, str(os.getpid())))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with open(temporary, "rb+") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except (OSError, RuntimeError, AssertionError) as error:
        # libraries tell of a full disk as of anything else, such as "Permission denied"
        reason = "the disk is full" if _full(path.parent) else error
        raise UserError(
            f"{path}: cannot be written ({reason}). Check that the folder is writable and the disk "
            "has room, then try again; nothing was replaced."
        ) from error
    finally:
        with suppress(OSError):  # the first error is the one to tell
            temporary.unlink()


def remove_temporaries(paths: Iterable[Path]) -> None:
    """Removes temporary files that killed processes left of some files, and nothing else.

    Nobody else may be writing these files now: see `neuralrace.results.lock`.

    Args:
        paths: of the files themselves, which are left as they are.
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
    """The temporary name of a file, with a checksum of file name and process."""
    stem = f"{name}.{process}"
    return f".{stem}.{zlib.crc32(f'neuralrace {stem}'.encode()):08x}{TEMPORARY}"


def _full(folder: Path) -> bool:
    """Whether the disk of a folder has no room for a small file."""
    try:
        return shutil.disk_usage(folder).free < LEAST
    except OSError:
        return False


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Writes a text file that is either whole or absent.

    Raises:
        UserError: the folder cannot be written to or is full.
    """
    with replacing(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")
