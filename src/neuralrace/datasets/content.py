"""Bounded reads of data files.

A name of a data file may lead anywhere: to a pipe that nobody writes to, a device that never ends,
a file that claims more than memory holds. None of them is read.
"""

import os
import stat
from pathlib import Path

from neuralrace.errors import UserError


def content_of(path: str | Path, most: int, remedy: str = "check permissions") -> bytes:
    """The bytes of a regular file.

    Args:
        path: the file.
        most: bytes that it may have.
        remedy: what the message ends with.

    Raises:
        UserError: it cannot be read, is no regular file, or is larger.
    """
    try:
        # a pipe would keep who opens it waiting for somebody who writes
        with open(path, "rb", opener=lambda name, how: os.open(name, how | os.O_NONBLOCK)) as file:
            found = os.fstat(file.fileno())
            if stat.S_ISREG(found.st_mode) and found.st_size <= most:
                content = file.read(most + 1)
                if len(content) <= most:
                    return content
            reason = "it is no regular file"
            if stat.S_ISREG(found.st_mode):
                size = max(found.st_size, most + 1)
                reason = f"it has {size / 1e6:.6g} MB, and at most {most / 1e6:.6g} MB are read"
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = str(error.strerror if isinstance(error, OSError) else error)
    raise UserError(f"{path}: cannot be read ({reason}); {remedy}")
