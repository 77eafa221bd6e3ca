"""Bounded reads of data files.

A name of a data file may lead anywhere: to a pipe that nobody writes to, a device that never ends,
a file that claims more than memory holds. None of them is read.
"""

import os
import stat
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np

from neuralrace.datasets.base import MOST_NUMBERS
from neuralrace.errors import UserError, shorten


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
            if not stat.S_ISREG(found.st_mode):
                reason = "it is no regular file"
            elif found.st_size > most:
                size = f"{found.st_size / 1e6:.6g} MB"
                reason = f"it has {size}, and at most {most / 1e6:.6g} MB are read"
            elif len(content := file.read(found.st_size + 1)) != found.st_size:
                reason = "it changes while it is read"
            else:
                return content
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = str(error.strerror if isinstance(error, OSError) else error)
    raise UserError(f"{path}: cannot be read ({reason}); {remedy}")


def refuse_size(path: str, name: str, shape: Sequence[int]) -> None:
    """Refuses an array that is too large, before memory is taken for it.

    Args:
        path: what messages call its file.
        name: of the array.
        shape: as its file announces it.

    Raises:
        UserError: it has more than `MOST_NUMBERS`.
    """
    if prod(shape) > MOST_NUMBERS:
        raise UserError(
            f"{path}: {name}: has the shape {tuple(shape)}, and at most {MOST_NUMBERS:.0e} numbers "
            "are read; use fewer samples"
        )


def refuse_kind(path: str, name: str, dtype: np.dtype) -> None:
    """Refuses an array of anything but real numbers.

    Args:
        path: what messages call its file.
        name: of the array.
        dtype: of its entries.

    Raises:
        UserError: it holds objects, texts, or anything else.
    """
    if dtype.hasobject:
        raise UserError(
            f"{path}: {name}: holds objects, which are not read; save it as an array of numbers, "
            "its rows equally long"
        )
    if dtype.kind not in "fiub":
        held = shorten(str(dtype), 80)
        raise UserError(f"{path}: {name}: holds {held}, no real numbers; save it as float64")
