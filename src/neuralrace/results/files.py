"""The only reader and writer of result files."""

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import xarray as xr

from neuralrace.results.atomic import replacing
from neuralrace.errors import UserError
from neuralrace.config.variables import FileKind
from neuralrace.results.schema import check, check_origin
from neuralrace.results.checksums import REMEDY, Checksums, check_file, checksum_path, file_sha256

DENSEST = 1032
"""Bytes that one byte of a file can stand for: zlib makes nothing smaller."""
NUMBERS = ("f", "i", "u", "b", "S")
"""Kinds of data types that result files have: numbers, and characters."""
PLAIN: dict[str, Any] = {"engine": "netcdf4", "decode_times": False}
"""How result files are opened: no axis is one of dates, and to look for them takes time."""


def write_result(
    dataset: xr.Dataset,
    path: str | os.PathLike[str],
    fingerprint: str = "",
    inputs: Mapping[str, str] | None = None,
) -> None:
    """Writes a result file that is either whole or absent.

    The file is written under a temporary name in the same folder, flushed, reopened and compared,
    and only then takes its name. Every chunk carries a checksum (fletcher32), so that a flipped bit
    is an error on reading. The same dataset gives the same bytes. Its checksum stands beside it.

    Args:
        dataset: follows the schema.
        path: where it goes.
        fingerprint: of specification and code; see `neuralrace.results.checksums`.
        inputs: checksums of result files that it was computed from, by their paths in the results.

    Raises:
        UserError: the folder cannot be written to or is full.
    """
    path = Path(path)
    dataset = dataset.assign_attrs(variables=" ".join(sorted(map(str, dataset.variables))))
    check(dataset, path)
    with replacing(path) as temporary:
        _in_characters(dataset).to_netcdf(temporary, engine="netcdf4", encoding=_encoding(dataset))
        with xr.open_dataset(temporary, engine="netcdf4") as back:
            xr.testing.assert_identical(back.load(), dataset)
        digest = file_sha256(temporary)
    Checksums(fingerprint, {path.name: digest}, inputs or {}).write(checksum_path(path))


def read_result(path: str | os.PathLike[str], kind: FileKind | None = None) -> xr.Dataset:
    """A result file in memory, checked against the schema.

    Raises:
        UserError: missing, unreadable, damaged, or not of this kind.
    """
    path = _sound(path)
    with _whole(path):
        with netCDF4.Dataset(path) as stored:
            _refuse_bomb(stored, path)
        with xr.open_dataset(path, **PLAIN) as dataset:
            check(dataset, path, kind)
            return dataset.load()


def open_lazily(path: str | os.PathLike[str], kind: FileKind | None = None) -> xr.Dataset:
    """A result file of which an array is read when it is used, and not kept.

    Its content is not compared with its seal: the checksum of each chunk is, when that is read.

    Raises:
        UserError: unreadable, or not of this kind.
    """
    path = Path(path)
    with _whole(path):
        with netCDF4.Dataset(path) as stored:
            _refuse_bomb(stored, path)
        dataset = xr.open_dataset(path, cache=False, **PLAIN)
        check(dataset, path, kind)
        return dataset


def read_attributes(path: str | os.PathLike[str], kind: FileKind | None = None) -> dict[str, Any]:
    """The attributes of a result file, and nothing else of it.

    Raises:
        UserError: missing, unreadable, damaged, or not of this kind.
    """
    path = _sound(path)
    with _whole(path), netCDF4.Dataset(path) as stored:
        attrs = {name: stored.getncattr(name) for name in stored.ncattrs()}
        check_origin(attrs, stored.variables, path, kind)
    return attrs


def _sound(path: str | os.PathLike[str]) -> Path:
    """A file whose content is what it was sealed with.

    To be asked before it is opened: damage in HDF5's own tables can keep its library busy for ever.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise UserError(f"{path}: is a folder; name a file in it.")
        if not path.is_file():
            raise UserError(f"{path}: result file not found. Run the workflow to make it.")
    except OSError as error:  # such as a folder that may not be searched
        raise UserError(f"{path}: cannot be read ({error.strerror}); check permissions") from error
    check_file(path)
    return path


def _refuse_bomb(stored: netCDF4.Dataset, path: Path) -> None:
    """Refuses a file that says it holds more than it can, before memory is taken for it.

    Raises:
        UserError: it does, or holds what no result file has: arrays of other than numbers and
            characters.
    """
    size = 0
    for name, variable in stored.variables.items():
        if getattr(variable.datatype, "kind", None) not in NUMBERS:
            raise UserError(f"{path}: is no result file: {name!r} is of another type than numbers")
        chunks = variable.chunking()
        # a chunk is unpacked whole, and may be larger than what is read of it
        each = math.prod(chunks) if isinstance(chunks, list) else 0
        size += max(math.prod(variable.shape), each) * variable.dtype.itemsize
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    most = min(DENSEST * path.stat().st_size, installed)
    if size > most:
        raise UserError(
            f"{path}: says that it holds {size / 1e9:.3g} GB, more than the file or the memory of "
            f"this machine can ({most / 1e9:.3g} GB). If the workflow wrote it, "
            + REMEDY.format(path=path)
        )


@contextmanager
def _whole(path: str | os.PathLike[str]) -> Iterator[None]:
    """Refuses a damaged or forged file, whatever its library says of it."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{path}: cannot be read ({error}); it is damaged, or no result file. If the workflow "
            f"wrote it, {REMEDY.format(path=path)}"
        ) from error


def _encoding(dataset: xr.Dataset) -> dict[str, dict[str, object]]:
    """Portable compression with checksums for every array; chunks span one run's time axis."""
    encoding: dict[str, dict[str, object]] = {}
    for name, variable in dataset.variables.items():
        if variable.dtype.kind in "OU":
            # characters, as HDF5 crashes on strings of any length in a file that is open twice
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
            # by the CF conventions, what is missing has no place on an axis
            encoding[str(name)]["_FillValue"] = None if name in dataset.coords else np.nan
    return encoding


def _in_characters(dataset: xr.Dataset) -> xr.Dataset:
    """The same, its attributes beyond ASCII as bytes, which become characters of fixed number."""
    stored = dataset.copy()
    for attrs in (stored.attrs, *(variable.attrs for variable in stored.variables.values())):
        for name, value in attrs.items():
            if isinstance(value, str) and not value.isascii():
                attrs[name] = value.encode()
    return stored
