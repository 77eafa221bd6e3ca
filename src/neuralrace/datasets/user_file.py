"""Files of users, whose content is part of the specification, and NumPy archives."""

import hashlib
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, PrivateAttr, model_validator

from neuralrace.datasets.base import MOST_NUMBERS
from neuralrace.datasets.content import content_of, refuse_array
from neuralrace.datasets.given import Given, given, is_given
from neuralrace.datasets.netcdf import list_netcdf, read_netcdf
from neuralrace.errors import UserError, shorten
from neuralrace.extensions.model import ConfigModel

Arrays = Mapping[str, np.ndarray]
Reader = Callable[[str, bytes, Sequence[str]], Arrays]
"""Reads arrays by name from the content of a file; see `read_npz`."""
Lister = Callable[[str, bytes], Sequence[str]]
"""Names of all arrays in the content of a file."""


class UserFile(ConfigModel):
    """A configuration that reads a file of the user, or arrays given in Python.

    The checksum of either is part of it: another content is another specification.
    """

    reads_files: ClassVar[bool] = True
    readers: ClassVar[Mapping[str, Reader]]
    """Reader by suffix of the path, in lower case."""
    listers: ClassVar[Mapping[str, Lister]]
    """The same for what a file has, for messages."""
    name: str  # stands before `path` in the canonical text
    path: str
    """Path of the file."""
    checksum: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """SHA-256 of the file; computed when absent, so that another content is another
    specification."""
    _given: Given | None = PrivateAttr(None)
    """The arrays in place of a file."""

    @model_validator(mode="before")
    @classmethod
    def _add_checksum(cls, raw: Any) -> Any:
        if not isinstance(raw, dict) or not isinstance(path := raw.get("path"), str):
            return raw
        if is_given(path):
            given(path, raw.get("checksum"))  # refused where nothing holds the arrays
            return raw
        if (suffix := suffix_of(path)) not in cls.readers:
            problem = f"expected a path that ends in {' or '.join(cls.readers)}"
            remedy = ADVICE.get(suffix, "")
            raise UserError(problem, key="path", value=path, remedy=remedy)
        if raw.get("checksum"):
            return raw
        return raw | {"checksum": hashlib.sha256(_content(raw["path"])).hexdigest()}

    @model_validator(mode="after")
    def _hold_given(self) -> "UserFile":
        if is_given(self.path):
            self._given = given(self.path, self.checksum)
        return self

    @property
    def given(self) -> Given | None:
        """The arrays that were given in Python, if it names such."""
        return self._given

    def arrays(self, names: Sequence[str]) -> Arrays:
        """Those of the named arrays that the file has.

        Raises:
            UserError: the file is missing, has another checksum, or cannot be read; or an array is
                too large or does not hold real numbers.
        """
        if self._given is not None:
            known = self._given.variables
            return {name: known[name][1] for name in names if name in known}
        content = _content(self.path)
        actual = hashlib.sha256(content).hexdigest()
        if actual != self.checksum:
            raise UserError(
                f"has the checksum {actual}, not {self.checksum}",
                file=self.path,
                remedy="put the former file back, or change or remove its `checksum`",
            )
        return self.readers[suffix_of(self.path)](self.path, content, names)

    def names(self) -> Sequence[str]:
        """Names of all arrays that the file has.

        Raises:
            UserError: the file cannot be read.
        """
        if self._given is not None:
            return [*self._given.variables]
        return self.listers[suffix_of(self.path)](self.path, _content(self.path))


def suffix_of(path: str) -> str:
    """The suffix of a path, in lower case."""
    return Path(path).suffix.lower()


def _content(path: str) -> bytes:
    return content_of(path, 8 * MOST_NUMBERS, "put the file there, or correct `path`")


@contextmanager
def readable(path: str, problem: str, remedy: str, key: str = "") -> Iterator[None]:
    """Reports any exception of a reader as damage of the file: readers raise many types."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        problem = f"{problem} ({shorten(str(error), 200)})"
        raise UserError(problem, file=path, key=key, remedy=remedy) from error


def list_npz(path: str, content: bytes) -> list[str]:
    """Names of the arrays of a NumPy archive.

    Raises:
        UserError: the file is no archive.
    """
    with readable(path, "is no NumPy archive", "write it with numpy.savez"):
        members = zipfile.ZipFile(io.BytesIO(content)).namelist()
    return [name.removesuffix(".npy") for name in members if name.endswith(".npy")]


def read_npz(path: str, content: bytes, names: Sequence[str]) -> Arrays:
    """Arrays of a NumPy archive, without pickled objects.

    Args:
        path: name of the file, for messages.
        content: content of the file.
        names: arrays to read; arrays that the file lacks are left out.

    Raises:
        UserError: the file is damaged or no archive; or an array is too large or does not hold real
            numbers.
    """
    arrays = {}
    with readable(path, "is no NumPy archive", "write it with numpy.savez"):
        archive = zipfile.ZipFile(io.BytesIO(content))
        members = set(archive.namelist())
    for name in names:
        if f"{name}.npy" in members:
            with readable(path, "cannot be read", "save it as an array of numbers", name):
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
ARRAY_READERS: Mapping[str, Reader] = {".npz": read_npz, ".nc": read_netcdf}
"""Reader of named arrays by suffix."""
ARRAY_LISTERS: Mapping[str, Lister] = {".npz": list_npz, ".nc": list_netcdf}
"""The same for the names of all arrays."""
ADVICE = {
    ".npy": "a .npy file holds a single array: write both into one file, numpy.savez('my.npz', "
    "x=x, y=y)",
    ".xlsx": "save the sheet as CSV",
    ".pkl": "pickles can run code: write the arrays with numpy.savez",
    ".pt": "write the arrays with numpy.savez('my.npz', x=x.numpy(), y=y.numpy())",
    ".mat": "numpy.savez('my.npz', **scipy.io.loadmat(path)) converts it",
    ".parquet": "pandas.read_parquet(path).to_csv('my.csv') converts it",
}
"""What to do with files of other formats."""
