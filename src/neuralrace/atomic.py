"""Files that are either whole or as they were before."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from neuralrace.errors import UserError

TEMPORARY = ".tmp"
"""How the name of a file ends that is not complete; it begins with a dot."""
LEAST = 2**17
"""Bytes that are left of a disk which is as good as full."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file in the same folder that takes the place of `path` once it is complete.

    Raises:
        UserError: the folder cannot be written to or is full.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
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
