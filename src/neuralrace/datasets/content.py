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
        path: the file.
        limit: largest size in bytes.
        remedy: what the message tells the user to do.

    Raises:
        UserError: the file cannot be read, is not a regular file, or is too large.
    """
    try:
        # O_NONBLOCK: opening a pipe would otherwise wait until another process writes to it
        with open(path, "rb", opener=lambda name, how: os.open(name, how | os.O_NONBLOCK)) as file:
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


def refuse_size(path: str, name: str, shape: Sequence[int]) -> None:
    """Refuses an array with too many numbers, before memory is allocated for it.

    Args:
        path: name of the file, for the message.
        name: name of the array.
        shape: shape that the file announces.

    Raises:
        UserError: the array has more than `MOST_NUMBERS` entries.
    """
    if prod(shape) > MOST_NUMBERS:
        raise UserError(
            f"has the shape {tuple(shape)}, and at most {MOST_NUMBERS:.0e} numbers are read",
            file=path,
            key=name,
            remedy="use fewer samples",
        )


def refuse_kind(path: str, name: str, dtype: np.dtype) -> None:
    """Refuses an array whose entries are not real numbers.

    Args:
        path: name of the file, for the message.
        name: name of the array.
        dtype: type of its entries.

    Raises:
        UserError: the entries are objects, text, complex numbers or dates.
    """
    if dtype.hasobject:
        raise UserError(
            "holds Python objects, which are not read",
            file=path,
            key=name,
            remedy="save it as an array of numbers, with rows of equal length",
        )
    if dtype.kind not in "fiub":
        problem = f"holds {shorten(str(dtype), 80)} instead of real numbers"
        raise UserError(problem, file=path, key=name, remedy="save it as float64")
