"""Bounded reads of data files.

A path may lead to a pipe without a writer, a device without an end, or a file that announces more
numbers than memory holds. Such files are refused before anything is read.
"""

import os
import stat
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np

from neuralrace.datasets.base import MOST_NUMBERS
from neuralrace.errors import UserError, shorten


def content_of(path: str | Path, limit: int, remedy: str = "check permissions") -> bytes:
    """The bytes of a regular file.

    Args:
        path: the file; `~` stands for the user's home folder.
        limit: largest size in bytes.
        remedy: what the message tells the user to do.

    Raises:
        UserError: the file cannot be read, is not a regular file, or is too large.
    """
    try:
        # O_NONBLOCK: opening a pipe would otherwise wait until another process writes to it
        place = os.path.expanduser(path)
        wait_not = getattr(os, "O_NONBLOCK", 0)  # Windows has none
        with open(place, "rb", opener=lambda name, how: os.open(name, how | wait_not)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                reason = "it is no regular file"
            elif status.st_size > limit:
                size = f"{status.st_size / 1e6:.6g} MB"
                reason = f"it has {size}, and at most {limit / 1e6:.6g} MB are read"
            elif len(content := file.read(status.st_size + 1)) != status.st_size:
                reason = "it changes while it is read"
            else:
                return content
    except (OSError, ValueError) as error:  # ValueError: the path contains a null byte
        reason = str(error.strerror if isinstance(error, OSError) else error)
    raise UserError(f"cannot be read ({reason})", file=path, remedy=remedy)


def refuse_array(path: str, name: str, dtype: np.dtype, shape: Sequence[int]) -> None:
    """Refuses an array that does not hold real numbers or is too large, before it is read.

    Args:
        path: name of the file, for the message.
        name: name of the array.
        dtype: type of its entries, from the header of the file.
        shape: shape of the array, from the header of the file.

    Raises:
        UserError: the entries are not real numbers, or there are more than `MOST_NUMBERS`.
    """
    if dtype.hasobject:
        problem = "holds Python objects, which are not read"
        remedy = "save it as an array of numbers, with rows of equal length"
    elif dtype.kind not in "fiub":
        problem = f"holds {shorten(str(dtype), 80)} instead of real numbers"
        remedy = "save it as float64"
    elif prod(shape) > MOST_NUMBERS:
        problem = f"has the shape {tuple(shape)}, and at most {MOST_NUMBERS:.0e} numbers are read"
        remedy = "use fewer samples"
    else:
        return
    raise UserError(problem, file=path, key=name, remedy=remedy)
