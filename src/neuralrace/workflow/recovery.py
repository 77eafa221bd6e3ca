"""One run at a time in a results folder, and what killed runs have left there."""

import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from neuralrace.atomic import TEMPORARY
from neuralrace.errors import UserError

LOCK = ".lock"
_held: list[int] = []
"""Open files whose locks this process holds to its end."""


def claim(root: Path) -> None:
    """Takes a results folder for this process alone, until it ends, however it ends.

    The lock is the kernel's, so that a killed run leaves none behind.

    Raises:
        UserError: another run is at work there, or the folder cannot be written to.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        handle = os.open(root / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise UserError(f"{root}: cannot be written ({error.strerror})") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise UserError(
            f"{root}: another run is at work in this folder; wait for its end, or send results "
            "elsewhere: --config results=FOLDER"
        ) from None
    except OSError:  # a file system without locks
        os.close(handle)
    else:
        _held.append(handle)


def sweep(outputs: Iterable[Path]) -> None:
    """Removes half-written files of killed runs; to be called by who has claimed the folder.

    Args:
        outputs: files that the workflow writes; nothing beside temporaries of these is touched.
    """
    names: dict[Path, set[str]] = {}
    for path in outputs:
        names.setdefault(path.parent, set()).update((path.name, f"{path.name}.sha256"))
    for folder, known in names.items():
        for path in folder.glob(f".*{TEMPORARY}"):
            name, _, process = path.name[1 : -len(TEMPORARY)].rpartition(".")
            if name in known and process.isdecimal():
                with suppress(OSError):
                    path.unlink()
