"""Samples from the user's own file: NumPy, NetCDF or CSV."""

import csv
import io
from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field

from neuralrace.datasets.base import Data, Dataset
from neuralrace.datasets.content import refuse_array
from neuralrace.datasets.user_file import ARRAY_READERS, Arrays, Reader, UserFile, readable
from neuralrace.errors import UserError, shorten

LARGEST = 1e100
"""Largest absolute value that is read: correlations of larger values can overflow."""
NAMES = ("x", "y", "context")


def _read_csv(path: str, content: bytes, names: Sequence[str]) -> Arrays:
    with readable(path, "is no table", "name the columns in the first line"):
        text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
        lines = (line for line in csv.reader(text) if line)
        header = next(lines, [])
        if not header:
            raise ValueError("it is empty")
    columns = {
        name: [at for at, column in enumerate(header) if column.strip().startswith(name)]
        for name in names
    }
    if unknown := sorted({*range(len(header))}.difference(*columns.values())):
        raise UserError(
            "is no column of x, y or context",
            file=path,
            value=header[unknown[0]],
            remedy="rename or remove it",
        )
    numbers = array("d")  # a list of lists takes ten times the memory
    with readable(path, "is no table", "use numbers, separated by commas"):
        for row, line in enumerate(lines):
            if len(line) != len(header):
                raise UserError(
                    f"row {row} has {len(line)} entries, and the first line names {len(header)} "
                    "columns",
                    file=path,
                    remedy="use one entry for each column",
                )
            refuse_array(path, "table", np.dtype(float), (row, len(header)))
            try:
                numbers.extend(map(float, line))
            except ValueError as error:
                problem = f"row {row}: {shorten(str(error), 80)}"
                raise UserError(problem, file=path, remedy="use numbers") from error
    rows = np.frombuffer(numbers).reshape(-1, len(header))
    arrays = {name: rows[:, at] for name, at in columns.items() if at}
    if len(columns["context"]) == 1:
        arrays["context"] = arrays["context"][:, 0]
    return arrays


class File(UserFile, Dataset):
    """Samples from your own file: NumPy arrays (`.npz`), NetCDF (`.nc`) or a table (`.csv`).

    The arrays are `x` (sample, input), `y` (sample, output) and optionally `context` (sample),
    which numbers the context of each sample from 0 without gaps. The first line of a table names
    its columns. Columns whose names begin with `x` are inputs, columns whose names begin with `y`
    are targets, and a column `context` is optional. Every other line is a sample.
    """

    example: ClassVar[Mapping[str, Any]] = {"path": "my.npz", "checksum": "0" * 64}
    readers: ClassVar[Mapping[str, Reader]] = {**ARRAY_READERS, ".csv": _read_csv}
    name: Literal["file"]
    path: Annotated[str, Field(pattern=r"\.(npz|nc|csv)$")]
    """Path of the file; `.npz`, `.nc` or `.csv`."""

    @property
    def contexts(self) -> Int[np.ndarray, " sample"] | None:
        """Context of each sample; None if the file has none.

        Raises:
            UserError: see `load`.
        """
        return self.load().contexts

    def load(self) -> Data:
        """The arrays, read-only.

        Raises:
            UserError: the file is missing, has another checksum, or cannot be read; or an array is
                missing, is too large, has another shape, or holds values that are not finite.
        """
        return _data(self)  # pyright: ignore[reportArgumentType]  frozen models have a hash


@lru_cache(maxsize=1)  # planning reads the sizes once for every cell
def _data(file: File) -> Data:
    path, arrays = file.path, file.arrays(NAMES)
    for name in ("x", "y"):
        if name not in arrays:
            raise UserError("is missing", file=path, key=name, remedy="add the arrays x and y")
    x = _matrix(path, "x", "input", arrays["x"])
    y = _matrix(path, "y", "output", arrays["y"])
    if len(x) != len(y):
        raise UserError(
            f"{len(y)} rows, and x has {len(x)}",
            file=path,
            key="y",
            remedy="use one row of x and one row of y for each sample",
        )
    contexts = _contexts(path, arrays["context"], len(x)) if "context" in arrays else None
    return Data(x=x, y=y, contexts=contexts)


def _matrix(path: str, name: str, unit: str, array: np.ndarray) -> Float[np.ndarray, "sample unit"]:
    refuse_array(path, name, array.dtype, array.shape)
    if array.ndim != 2 or not array.size:
        problem, remedy = (
            f"has the shape {array.shape}",
            f"use (sample, {unit}), without empty axes",
        )
        raise UserError(problem, file=path, key=name, remedy=remedy)
    with np.errstate(over="ignore"):  # longdouble can exceed the range of float64
        matrix = array.astype(np.float64)
    for problem, limit, remedy in (
        ("is not finite", np.finfo(float).max, "correct it or leave the sample out"),
        (f"has a value above {LARGEST:.0e}", LARGEST, "use other units"),
    ):
        if not (within := (np.abs(matrix) <= limit).all(axis=1)).all():
            problem = f"row {within.argmin()} {problem}"
            raise UserError(problem, file=path, key=name, remedy=remedy)
    matrix.flags.writeable = False
    return matrix


def _contexts(path: str, array: np.ndarray, samples: int) -> Int[np.ndarray, " sample"]:
    with np.errstate(invalid="ignore"):
        numbers = array.astype(np.int64) if array.dtype.kind in "fiu" else array
    if array.shape != (samples,) or numbers is array or (numbers != array).any():
        raise UserError(
            f"has type {array.dtype} and shape {array.shape}",
            file=path,
            key="context",
            remedy=f"use one whole number for each sample, shape ({samples},)",
        )
    distinct = np.unique(numbers)
    if not np.array_equal(distinct, np.arange(len(distinct))):
        raise UserError(
            f"has the numbers {shorten(', '.join(map(str, distinct)), 80)}",
            file=path,
            key="context",
            remedy="number contexts from 0 without gaps",
        )
    return numbers
