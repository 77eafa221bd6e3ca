"""The only reader and writer of result files."""

import os
from pathlib import Path

import numpy as np
import xarray as xr

from neuralrace.errors import UserError
from neuralrace.records.schema import Kind, check


def write(dataset: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Writes a result file that is either whole or absent.

    The file is written under a temporary name in the same folder, flushed, reopened and compared,
    and only then takes its name. Every chunk carries a checksum (fletcher32), so that a flipped bit
    is an error on reading. The same dataset gives the same bytes.

    Raises:
        UserError: the folder cannot be written to or is full.
    """
    path = Path(path)
    dataset = dataset.assign_attrs(variables=" ".join(sorted(map(str, dataset.variables))))
    check(dataset, path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        dataset.to_netcdf(temporary, engine="netcdf4", encoding=_encoding(dataset))
        with open(temporary, "rb+") as handle:
            os.fsync(handle.fileno())
        with xr.open_dataset(temporary, engine="netcdf4") as back:
            xr.testing.assert_identical(back.load(), dataset)
        os.replace(temporary, path)
    except (OSError, RuntimeError, AssertionError) as error:
        raise UserError(
            f"{path}: cannot be written ({error}). Check that the folder is writable and the disk "
            "has room, then run the workflow again; nothing was replaced."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def read(path: str | os.PathLike[str], kind: Kind | None = None) -> xr.Dataset:
    """A result file in memory, checked against the schema.

    Raises:
        UserError: missing, unreadable, damaged, or not of this kind.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: result file not found. Run the workflow to make it.")
    try:
        with xr.open_dataset(path, engine="netcdf4") as dataset:
            check(dataset, path, kind)
            return dataset.load()
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        raise UserError(
            f"{path}: cannot be read ({error}); it is damaged. Delete it and run "
            "the workflow again."
        ) from error


def _encoding(dataset: xr.Dataset) -> dict[str, dict[str, object]]:
    """Portable compression with checksums for every array; chunks span one run's time axis."""
    encoding: dict[str, dict[str, object]] = {}
    for name, variable in dataset.variables.items():
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
            encoding[str(name)]["_FillValue"] = np.nan
    return encoding
