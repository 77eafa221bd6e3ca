"""Samples from the user's own file: NumPy, NetCDF or CSV."""

import csv
import hashlib
import io
import zipfile
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from math import prod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field, model_validator

from neuralrace.datasets.base import MOST_NUMBERS, Data, Dataset
from neuralrace.datasets.content import content_of, refuse_array
from neuralrace.datasets.netcdf import read_netcdf
from neuralrace.errors import UserError, shorten

LARGEST = 1e100
"""Largest absolute value that is read: correlations of larger values can overflow."""
NAMES = ("x", "y", "context")
Arrays = Mapping[str, np.ndarray]


class File(Dataset):
    """Samples from your own file: NumPy arrays (`.npz`), NetCDF (`.nc`) or a table (`.csv`).

    The arrays are `x` (sample, input), `y` (sample, output) and optionally `context` (sample),
    which numbers the context of each sample from 0 without gaps. The first line of a table names
    its columns. Columns whose names begin with `x` are inputs, columns whose names begin with `y`
    are targets, and a column `context` is optional. Every other line is a sample.
    """

    example: ClassVar[Mapping[str, Any]] = {"path": "my.npz", "checksum": "0" * 64}
    reads_files: ClassVar[bool] = True
    name: Literal["file"]
    path: Annotated[str, Field(pattern=r"\.(npz|nc|csv)$")]
    """Path of the file; `.npz`, `.nc` or `.csv`."""
    checksum: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """SHA-256 of the file; computed when absent, so that another content is another
    specification."""

    @model_validator(mode="before")
    @classmethod
    def _add_checksum(cls, raw: Any) -> Any:
        if not isinstance(raw, dict) or raw.get("checksum"):
            return raw
        if Path(str(raw.get("path"))).suffix not in READERS:  # the pattern of `path` refuses it
            return raw
        return raw | {"checksum": hashlib.sha256(_content(raw["path"])).hexdigest()}

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
        return _data(self.path, str(self.checksum))


@lru_cache(maxsize=1)  # planning reads the sizes once for every cell
def _data(path: str, checksum: str) -> Data:
    content = _content(path)
    actual = hashlib.sha256(content).hexdigest()
    if actual != checksum:
        raise UserError(
            f"has the checksum {actual}, not {checksum}",
            file=path,
            remedy="put the former file back, or change or remove `checksum` of the dataset",
        )
    arrays = READERS[Path(path).suffix](path, content)
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


def _content(path: str) -> bytes:
    return content_of(path, 8 * MOST_NUMBERS, "put the file there, or correct `path`")


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


@contextmanager
def _readable(path: str, problem: str, remedy: str, key: str = "") -> Iterator[None]:
    """Reports any exception of a reader as damage of the file: readers raise many types."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        problem = f"{problem} ({shorten(str(error), 200)})"
        raise UserError(problem, file=path, key=key, remedy=remedy) from error


def _read_npz(path: str, content: bytes) -> Arrays:
    arrays = {}
    with _readable(path, "is no NumPy archive", "write it with numpy.savez"):
        archive = zipfile.ZipFile(io.BytesIO(content))
        members = set(archive.namelist())
    for name in NAMES:
        if f"{name}.npy" in members:
            with _readable(path, "cannot be read", "save it as an array of numbers", name):
                arrays[name] = _read_npy(path, name, archive)
    return arrays


def _read_npy(path: str, name: str, archive: zipfile.ZipFile) -> np.ndarray:
    """An array of an archive. NumPy would allocate whatever shape the header announces."""
    with archive.open(f"{name}.npy") as stream:
        read_header = HEADERS[np.lib.format.read_magic(stream)]
        shape, by_column, dtype = read_header(stream)
        refuse_array(path, name, dtype, shape)
        size, member_size = prod(shape) * dtype.itemsize, archive.getinfo(f"{name}.npy").file_size
        if size != member_size - stream.tell() or min(shape, default=0) < 0:
            raise ValueError(f"of shape {shape} in {member_size} bytes")
        numbers = np.frombuffer(stream.read(size), dtype)
    return numbers.reshape(shape, order="F" if by_column else "C")


HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""Reader of the header of an array, by format version; later versions hold structured types."""


def _read_csv(path: str, content: bytes) -> Arrays:
    with _readable(path, "is no table", "name the columns in the first line"):
        text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
        lines = (line for line in csv.reader(text) if line)
        names = next(lines, [])
        if not names:
            raise ValueError("it is empty")
    columns = {
        name: [at for at, column in enumerate(names) if column.strip().startswith(name)]
        for name in NAMES
    }
    if unknown := sorted({*range(len(names))}.difference(*columns.values())):
        raise UserError(
            "is no column of x, y or context",
            file=path,
            value=names[unknown[0]],
            remedy="rename or remove it",
        )
    numbers = array("d")  # a list of lists takes ten times the memory
    with _readable(path, "is no table", "use numbers, separated by commas"):
        for row, line in enumerate(lines):
            if len(line) != len(names):
                raise UserError(
                    f"row {row} has {len(line)} entries, and the first line names {len(names)} "
                    "columns",
                    file=path,
                    remedy="use one entry for each column",
                )
            refuse_array(path, "table", np.dtype(float), (row, len(names)))
            try:
                numbers.extend(map(float, line))
            except ValueError as error:
                problem = f"row {row}: {shorten(str(error), 80)}"
                raise UserError(problem, file=path, remedy="use numbers") from error
    rows = np.frombuffer(numbers).reshape(-1, len(names))
    arrays = {name: rows[:, at] for name, at in columns.items() if at}
    if len(columns["context"]) == 1:
        arrays["context"] = arrays["context"][:, 0]
    return arrays


READERS: dict[str, Callable[[str, bytes], Arrays]] = {
    ".npz": _read_npz,
    ".nc": partial(read_netcdf, names=NAMES),
    ".csv": _read_csv,
}
