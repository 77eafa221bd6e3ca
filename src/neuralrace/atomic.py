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


def temporaries(folder: Path) -> list[Path]:
    """Files below a folder that are not complete, or that killed processes left so."""
    return sorted(folder.rglob(f".*{TEMPORARY}"))


def kept(path: Path) -> Path:
    """Where the last good file is kept while another one is made."""
    return path.with_name(f"{path.name}.last")


def keep(path: Path) -> None:
    """Keeps a file, if it is there, although who runs the jobs deletes it before another is made.

    See `give_back`. It costs no room where the file system knows links.
    """
    last = kept(path)
    with suppress(OSError):  # such as a folder that is read only, where no job deletes anything
        last.unlink(missing_ok=True)
        if path.is_file():
            try:
                os.link(path, last)
            except OSError:
                shutil.copy2(path, last)


def give_back(path: Path) -> None:
    """Puts the file that was kept back in its place, unless there is another one by now."""
    last = kept(path)
    with suppress(OSError):
        if path.exists():
            last.unlink()
        else:
            os.replace(last, path)


def set_aside(path: Path, name: str) -> Path:
    """Renames a damaged file, so that nobody takes it for sound.

    Args:
        path: where it is.
        name: what it is called when it is in its place.

    Returns:
        Where it is now; the one that stood there before is gone.

    Raises:
        UserError: the folder cannot be written to.
    """
    aside = path.with_name(f"{name}.damaged")
    try:
        os.replace(path, aside)
    except OSError as error:
        raise UserError(f"{path}: is damaged and cannot be renamed ({error}); delete it") from error
    return aside
