"""Reading and writing of result files (NetCDF)."""

import math
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.backends import NetCDF4DataStore

from neuralrace.config.variables import FileKind
from neuralrace.errors import UserError
from neuralrace.results.atomic import replacing, replacing_together
from neuralrace.results.checksums import (
    Checksums,
    UnreadableError,
    check_file,
    checksum_path,
    file_sha256,
    to_recompute,
    unreadable,
)
from neuralrace.results.schema import check_origin, check_schema
from neuralrace.training.memory import total_memory

if TYPE_CHECKING:
    import netCDF4

# HDF5 locks each file that it opens, which fails on file systems without locks, and where another
# process holds a lock. Files are only ever replaced as a whole, so that a lock protects nothing.
# HDF5 reads the variable when netCDF4 is imported.
os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")

MOST_COMPRESSED = 1032
"""Largest ratio of content to file size: zlib compresses no further."""
LARGE = 2**26
"""Bytes of a variable, such as the weights of all runs at all times, of which only parts are read
where variables are named."""
NUMBERS = ("f", "i", "u", "b", "S")
"""Kinds of data types in result files: numbers and characters."""


def write_result(
    dataset: xr.Dataset,
    path: str | os.PathLike[str],
    fingerprint: str = "",
    inputs: Mapping[str, str] | None = None,
) -> None:
    """Writes a result file and its checksum file.

    The write is atomic, and the file is read back and compared before both get their names. Every
    chunk carries a checksum (fletcher32), so that a flipped bit is an error on reading. The same
    dataset gives the same bytes.

    Args:
        dataset: a dataset that follows the schema.
        path: path of the file.
        fingerprint: hash of specification and code; see `neuralrace.results.checksums`.
        inputs: checksums of the result files that were read, by their paths in the results folder.

    Raises:
        UserError: the folder cannot be written to, or the disk is full.
    """
    path = Path(path)
    dataset = dataset.assign_attrs(variables=" ".join(sorted(map(str, dataset.variables))))
    check_schema(dataset, path)
    with replacing_together([path, checksum_path(path)]):
        with replacing(path) as temporary:
            _as_bytes(dataset).to_netcdf(temporary, engine="netcdf4", encoding=_encoding(dataset))
            with _stored(temporary) as stored:
                xr.testing.assert_identical(_opened(stored).load(), dataset)
            digest = file_sha256(temporary)
        Checksums(fingerprint, {path.name: digest}, inputs or {}).write(checksum_path(path))


def read_result(
    path: str | os.PathLike[str],
    kind: FileKind | None = None,
    names: Collection[str] | None = None,
) -> xr.Dataset:
    """Reads a result file into memory, and checks it against its checksum and the schema.

    Args:
        path: path of the file.
        kind: the expected kind of file; any when absent.
        names: variables to read beside the coordinates; all when absent. `LARGE` ones stay in the
            file, and each use reads the part that it takes.

    Raises:
        UserError: the file is missing, unreadable, damaged, or of another kind.
    """
    path = checked(path)
    with _readable(path), _stored(path) as stored:
        _check_size(stored, path)
        dataset = _opened(stored)
        check_schema(dataset, path, kind)
        if names is None:
            return dataset.load()
        dataset = dataset.drop_vars(set(dataset.data_vars).difference(names))
        large = [name for name, variable in dataset.data_vars.items() if variable.nbytes > LARGE]
        dataset = dataset.drop_vars(large).load()
    return dataset.assign(open_lazily(path, kind)[large].data_vars) if large else dataset


def open_lazily(path: str | os.PathLike[str], kind: FileKind | None = None) -> xr.Dataset:
    """Opens a result file whose arrays are read at each use, and not kept.

    The file is not compared with its checksum file. The checksum of each chunk is compared when the
    chunk is read.

    Raises:
        UserError: the file is unreadable, or of another kind.
    """
    path = Path(path)
    with _readable(path), ExitStack() as failed:
        store = NetCDF4DataStore.open(str(path))
        failed.callback(store.close)
        _check_size(store.ds, path)
        dataset = xr.open_dataset(store, cache=False, decode_times=False)
        check_schema(dataset, path, kind)
        failed.pop_all()
        return dataset


def read_attributes(path: str | os.PathLike[str], kind: FileKind | None = None) -> dict[str, Any]:
    """The attributes of a result file; its arrays are not read.

    Raises:
        UserError: the file is missing, unreadable, damaged, or of another kind.
    """
    path = checked(path)
    with _readable(path), _stored(path) as stored:
        attrs = {name: stored.getncattr(name) for name in stored.ncattrs()}
        check_origin(attrs, stored.variables, path, kind)
    return attrs


def checked(path: str | os.PathLike[str]) -> Path:
    """The path of a file that exists and has the recorded checksum."""
    path = Path(path)
    try:
        if path.is_dir():
            raise UserError("is a folder", file=path, remedy="name a file in it")
        if not path.is_file():
            remedy = "run the workflow to make it"
            raise UserError("result file not found", file=path, remedy=remedy)
    except OSError as error:  # such as a folder without permission to search it
        raise unreadable(path, error) from error
    # before the file is opened: damaged tables can send the HDF5 library into an endless loop
    check_file(path)
    return path


def _stored(path: Path) -> "netCDF4.Dataset":
    """An open file."""
    import netCDF4  # datasets in memory do without

    return netCDF4.Dataset(path)


def _opened(stored: "netCDF4.Dataset") -> xr.Dataset:
    """The content of an open file; no axis holds dates, and looking for them takes time."""
    return xr.open_dataset(NetCDF4DataStore(stored), decode_times=False)


def _check_size(stored: "netCDF4.Dataset", path: Path) -> None:
    """Refuses a forged file before it fills the memory.

    Raises:
        UserError: the file declares more content than it can hold, or data types that no result
            file has.
    """
    size = 0
    for name, variable in stored.variables.items():
        if getattr(variable.datatype, "kind", None) not in NUMBERS:
            raise UserError(
                f"is no result file: {name!r} is of another type than numbers", file=path
            )
        chunks = variable.chunking()
        # a chunk is unpacked as a whole, and may be larger than the variable
        chunk = math.prod(chunks) if isinstance(chunks, list) else 0
        size += max(math.prod(variable.shape), chunk) * variable.dtype.itemsize
    most = min(MOST_COMPRESSED * path.stat().st_size, total_memory())
    if size > most:
        problem = (
            f"says that it holds {size / 1e9:.3g} GB, more than the file or the memory of this "
            f"machine can ({most / 1e9:.3g} GB)"
        )
        raise to_recompute(path, problem, "if the workflow wrote it, ")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turns any error of the libraries into UserError, as forged files cause all kinds."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise _refusal(path, error) from error


def _refusal(path: Path, error: Exception) -> UserError:
    """The error about a file that cannot be opened: damaged only if its checksum does not match.

    HDF5 reports a lock of another program and a damaged file alike.
    """
    try:
        intact = check_file(path)
    except UnreadableError as unreadable_now:
        return unreadable_now
    except UserError:
        intact = False
    if intact:
        problem = f"cannot be opened ({error}), although its content has the recorded checksum"
        remedy = "close it in other programs, or set HDF5_USE_FILE_LOCKING=FALSE before Python runs"
        locked = isinstance(error, OSError)
        return UnreadableError(problem, file=path, remedy=remedy if locked else "")
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and (error.errno or 0) > 0):
        problem, remedy = f"cannot be read ({error})", "try again when this is mended"
        return UnreadableError(problem, file=path, remedy=remedy)
    problem = f"cannot be read ({error}); it is damaged, or no result file"
    return to_recompute(path, problem, "if the workflow wrote it, ")


def _encoding(dataset: xr.Dataset) -> dict[str, dict[str, object]]:
    """Compression with checksums for every array, in chunks of whole time axes of one run."""
    encoding: dict[str, dict[str, object]] = {}
    for name, variable in dataset.variables.items():
        if variable.dtype.kind in "OU":
            # characters: HDF5 crashes on strings of variable length in a file that is open twice
            # (xarray issue 8289)
            encoding[str(name)] = {"dtype": "S1", "fletcher32": True}
        if variable.dtype.kind not in "fiub" or not variable.ndim or not variable.size:
            continue
        chunks = tuple(
            1 if dim in ("init_scale", "seed") and variable.size > 1e6 else size
            for dim, size in zip(variable.dims, variable.shape, strict=True)
        )
        encoding[str(name)] = {
            "zlib": True,
            "complevel": 1,
            "shuffle": True,
            "fletcher32": True,
            "chunksizes": chunks,
        }
        if np.issubdtype(variable.dtype, np.floating):
            # the CF conventions allow no missing values in coordinates
            encoding[str(name)]["_FillValue"] = None if name in dataset.coords else np.nan
    return encoding


def _as_bytes(dataset: xr.Dataset) -> xr.Dataset:
    """Encodes attributes beyond ASCII, which netCDF would store as strings of variable length."""
    stored = dataset.copy()
    for attrs in (stored.attrs, *(variable.attrs for variable in stored.variables.values())):
        for name, value in attrs.items():
            if isinstance(value, str) and not value.isascii():
                attrs[name] = value.encode()
    return stored
