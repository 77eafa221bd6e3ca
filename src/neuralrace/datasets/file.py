"""Samples from a file of one's own."""

import csv
import hashlib
import io
import zipfile
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field, model_validator

from neuralrace.datasets.base import MOST_NUMBERS, Data, Dataset
from neuralrace.datasets.content import content_of, refuse_kind, refuse_size
from neuralrace.datasets.netcdf import read_netcdf
from neuralrace.errors import UserError, shorten

LARGEST = 1e100
"""Largest number that is read: correlations of larger ones may overflow."""
NAMES = ("x", "y", "context")
Arrays = Mapping[str, np.ndarray]


class File(Dataset):
    """Samples in a file: arrays of NumPy (`.npz`) or NetCDF (`.nc`), or a table (`.csv`).

    The arrays are `x` (sample, input) and `y` (sample, output) and, where samples are shown in
    contexts, `context` (sample), whole numbers from 0 without gaps. The first line of a table names
    its columns: those that begin with `x` are inputs, those that begin with `y` targets, in their
    order, and `context` may stand beside them; every other line is a sample.
    """

    example: ClassVar[Mapping[str, Any]] = {"path": "my.npz", "checksum": "0" * 64}
    reads_files: ClassVar[bool] = True
    name: Literal["file"]
    path: Annotated[str, Field(pattern=r"\.(npz|nc|csv)$")]
    """The file; `.npz`, `.nc` or `.csv`."""
    checksum: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """SHA-256 of the file; that of its content when absent, so that another content is another
    specification."""

    @model_validator(mode="before")
    @classmethod
    def _content_counts(cls, raw: Any) -> Any:
        if not isinstance(raw, dict) or raw.get("checksum"):
            return raw
        if Path(str(raw.get("path"))).suffix not in READERS:  # no file of ours, or no text at all
            return raw
        try:
            return raw | {"checksum": hashlib.sha256(_content(raw["path"])).hexdigest()}
        except UserError as error:
            raise ValueError(str(error)) from error

    @property
    def contexts(self) -> Int[np.ndarray, " sample"] | None:
        """Context of each sample, where the file gives it.

        Raises:
            UserError: see `load`.
        """
        return self.load().contexts

    def load(self) -> Data:
        """The arrays, read-only.

        Raises:
            UserError: the file is missing, has another checksum, or cannot be read; an array is
                missing, too large, of another shape, or no finite numbers.
        """
        return _data(self.path, str(self.checksum))


@lru_cache(maxsize=1)  # every cell of a plan asks how large it is
def _data(path: str, checksum: str) -> Data:
    content = _content(path)
    found = hashlib.sha256(content).hexdigest()
    if found != checksum:
        raise UserError(
            f"{path}: has the checksum {found}, not {checksum}; put the former file back, or give "
            "the new one as `checksum` of the dataset, or leave that out"
        )
    arrays = READERS[Path(path).suffix](path, content)
    if lacking := [name for name in ("x", "y") if name not in arrays]:
        raise UserError(f"{path}: {lacking[0]}: is missing; give the arrays x and y")
    x = _matrix(path, "x", "input", arrays["x"])
    y = _matrix(path, "y", "output", arrays["y"])
    if len(x) != len(y):
        raise UserError(f"{path}: y: {len(y)} rows, and x has {len(x)}; give one of each a sample")
    contexts = _contexts(path, arrays["context"], len(x)) if "context" in arrays else None
    return Data(x=x, y=y, contexts=contexts)


def _content(path: str) -> bytes:
    return content_of(path, 8 * MOST_NUMBERS, "put the file there, or mend `path`")


def _matrix(path: str, name: str, unit: str, array: np.ndarray) -> Float[np.ndarray, "sample unit"]:
    refuse_kind(path, name, array.dtype)
    if array.ndim != 2 or not array.size:
        raise UserError(
            f"{path}: {name}: has the shape {array.shape}; give it (sample, {unit}), none of them 0"
        )
    with np.errstate(over="ignore"):  # of longer numbers
        matrix = array.astype(np.float64)
    for wrong, most, remedy in (
        ("is not finite", np.finfo(float).max, "mend it or leave the sample out"),
        (f"holds more than {LARGEST:.0e}", LARGEST, "use other units"),
    ):
        if not (within := (np.abs(matrix) <= most).all(axis=1)).all():
            raise UserError(f"{path}: {name}: row {within.argmin()} {wrong}; {remedy}")
    matrix.flags.writeable = False
    return matrix


def _contexts(path: str, array: np.ndarray, samples: int) -> Int[np.ndarray, " sample"]:
    with np.errstate(invalid="ignore"):
        numbers = array.astype(np.int64) if array.dtype.kind in "fiu" else array
    if array.shape != (samples,) or numbers is array or (numbers != array).any():
        raise UserError(
            f"{path}: context: {array.dtype} of shape {array.shape}; give one whole number for "
            f"each sample, ({samples},)"
        )
    known = np.unique(numbers)
    if not np.array_equal(known, np.arange(len(known))):
        raise UserError(
            f"{path}: context: has the numbers {shorten(', '.join(map(str, known)), 80)}; number "
            "contexts from 0 without gaps"
        )
    return numbers


def _npz(path: str, content: bytes) -> Arrays:
    arrays = {}
    with _readable(path, "is no archive of NumPy", "use numpy.savez"):
        archive = zipfile.ZipFile(io.BytesIO(content))
        members = set(archive.namelist())
    for name in NAMES:
        if f"{name}.npy" in members:
            with _readable(path, f"{name}: cannot be read", "save it as an array of numbers"):
                arrays[name] = _npy(path, name, archive)
    return arrays


def _npy(path: str, name: str, archive: zipfile.ZipFile) -> np.ndarray:
    """An array of an archive; its header is held against what there is before any of it is read."""
    with archive.open(f"{name}.npy") as stream:
        read_header = HEADERS[np.lib.format.read_magic(stream)]
        shape, by_column, dtype = read_header(stream)
        refuse_kind(path, name, dtype)
        refuse_size(path, name, shape)
        size, there = prod(shape) * dtype.itemsize, archive.getinfo(f"{name}.npy").file_size
        if size != there - stream.tell() or min(shape, default=0) < 0:
            raise ValueError(f"of shape {shape} in {there} bytes")
        numbers = np.frombuffer(stream.read(size), dtype)
    return numbers.reshape(shape, order="F" if by_column else "C")


HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""What reads the header of an array, by the version of its format; later ones have no numbers."""


def _nc(path: str, content: bytes) -> Arrays:
    return read_netcdf(path, content, NAMES)


@contextmanager
def _readable(path: str, wrong: str, remedy: str) -> Iterator[None]:
    """Takes whatever a reader of a format raises of a file for damage of that file."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{path}: {wrong} ({shorten(str(error), 200)}); {remedy}") from error


def _csv(path: str, content: bytes) -> Arrays:
    with _readable(path, "is no table", "name columns in its first line"):
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
            f"{path}: {shorten(names[unknown[0]], 80)!r}: is no column of x, y or context; "
            "rename it or leave it out"
        )
    numbers = array("d")  # a list of lines would take ten times the memory
    with _readable(path, "is no table", "give numbers, parted by commas"):
        for row, line in enumerate(lines):
            if len(line) != len(names):
                raise UserError(
                    f"{path}: row {row} has {len(line)} entries, and {len(names)} columns are "
                    "named in the first line; give one for each"
                )
            refuse_size(path, "row", (row, len(names)))
            try:
                numbers.extend(map(float, line))
            except ValueError as error:
                said = shorten(str(error), 80)
                raise UserError(f"{path}: row {row}: {said}; give numbers") from error
    rows = np.frombuffer(numbers).reshape(-1, len(names))
    one = {"context": 0} if len(columns["context"]) == 1 else {}
    return {name: rows[:, at][:, one.get(name, slice(None))] for name, at in columns.items() if at}


READERS: dict[str, Callable[[str, bytes], Arrays]] = {".npz": _npz, ".nc": _nc, ".csv": _csv}
