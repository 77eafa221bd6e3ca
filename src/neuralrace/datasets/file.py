"""Samples from a file of one's own."""

import csv
import hashlib
import io
import zipfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field, model_validator

from neuralrace.datasets.base import Data, Dataset
from neuralrace.errors import UserError

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
                missing, of another shape, or no finite numbers.
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
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(
            f"{path}: cannot be read ({reason}); put the file there, or mend `path`"
        ) from error


def _matrix(path: str, name: str, unit: str, array: np.ndarray) -> Float[np.ndarray, "sample unit"]:
    if array.dtype.kind not in "fiub":
        raise UserError(f"{path}: {name}: holds {array.dtype}, no real numbers; save it as float64")
    if array.ndim != 2 or not array.size:
        raise UserError(
            f"{path}: {name}: has the shape {array.shape}; give it (sample, {unit}), none of them 0"
        )
    if not (finite := np.isfinite(array).all(axis=1)).all():
        raise UserError(
            f"{path}: {name}: row {finite.argmin()} is not finite; mend it or leave the sample out"
        )
    matrix = array.astype(np.float64)
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
    if not np.array_equal(np.unique(numbers), np.arange(numbers.max() + 1)):
        raise UserError(
            f"{path}: context: has the numbers {', '.join(map(str, np.unique(numbers)))}; number "
            "contexts from 0 without gaps"
        )
    return numbers


def _npz(path: str, content: bytes) -> Arrays:
    try:
        with zipfile.ZipFile(io.BytesIO(content)):
            archive = np.load(io.BytesIO(content), allow_pickle=False)
    except zipfile.BadZipFile as error:
        raise UserError(f"{path}: is no archive of NumPy ({error}); use numpy.savez") from error
    arrays = {}
    for name in set(NAMES) & set(archive):
        try:
            arrays[name] = archive[name]
        except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise UserError(
                f"{path}: {name}: cannot be read ({error}); save it as an array of numbers, its "
                "rows equally long"
            ) from error
    return arrays


def _nc(path: str, content: bytes) -> Arrays:
    import netCDF4  # only such a file needs it

    arrays = {}
    try:
        with netCDF4.Dataset(path, memory=content) as dataset:
            for name in set(NAMES) & set(dataset.variables):
                array = dataset[name][...]
                if np.ma.is_masked(array):
                    raise UserError(
                        f"{path}: {name}: has missing values; mend them or leave the samples out"
                    )
                arrays[name] = np.asarray(array)
    except (OSError, RuntimeError) as error:
        raise UserError(f"{path}: cannot be read as NetCDF ({error}); write it again") from error
    return arrays


def _csv(path: str, content: bytes) -> Arrays:
    try:
        names, *lines = [
            line for line in csv.reader(io.StringIO(content.decode("utf-8-sig"))) if line
        ]
    except (ValueError, csv.Error) as error:  # nothing in it, or no text
        raise UserError(f"{path}: is no table ({error}); name columns in its first line") from error
    columns = {
        name: [at for at, column in enumerate(names) if column.strip().startswith(name)]
        for name in NAMES
    }
    if unknown := [names[at] for at in {*range(len(names))}.difference(*columns.values())]:
        raise UserError(
            f"{path}: {unknown[0]!r}: is no column of x, y or context; rename it or leave it out"
        )
    rows = np.empty((len(lines), len(names)))
    for number, line in enumerate(lines):
        if len(line) != len(names):
            raise UserError(
                f"{path}: row {number} has {len(line)} entries, and {len(names)} columns are named "
                "in the first line; give one for each"
            )
        try:
            rows[number] = line
        except ValueError as error:
            raise UserError(f"{path}: row {number}: {error}; give numbers") from error
    one = {"context": 0} if len(columns["context"]) == 1 else {}
    return {name: rows[:, at][:, one.get(name, slice(None))] for name, at in columns.items() if at}


READERS: dict[str, Callable[[str, bytes], Arrays]] = {".npz": _npz, ".nc": _nc, ".csv": _csv}
