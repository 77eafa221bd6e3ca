"""The only reader and writer of result files."""

import hashlib
import os
from pathlib import Path

import numpy as np
import xarray as xr

from neuralrace.atomic import replacing, write_text
from neuralrace.errors import UserError
from neuralrace.records.schema import Kind, check


def write(dataset: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Writes a result file that is either whole or absent.

    The file is written under a temporary name in the same folder, flushed, reopened and compared,
    and only then takes its name. Every chunk carries a checksum (fletcher32), so that a flipped bit
    is an error on reading. The same dataset gives the same bytes. Beside it stands a file with its
    SHA-256, for `verify`.

    Raises:
        UserError: the folder cannot be written to or is full.
    """
    path = Path(path)
    dataset = dataset.assign_attrs(variables=" ".join(sorted(map(str, dataset.variables))))
    check(dataset, path)
    with replacing(path) as temporary:
        dataset.to_netcdf(temporary, engine="netcdf4", encoding=_encoding(dataset))
        with xr.open_dataset(temporary, engine="netcdf4") as back:
            xr.testing.assert_identical(back.load(), dataset)
        digest = sha256(temporary)
    write_text(f"{digest}  {path.name}\n", checksum_file(path))


def checksum_file(path: Path) -> Path:
    """Where the checksum of a result file stands, as `sha256sum --check` reads it."""
    return path.with_name(f"{path.name}.sha256")


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def read(path: str | os.PathLike[str], kind: Kind | None = None) -> xr.Dataset:
    """A result file in memory, checked against the schema.

    Raises:
        UserError: missing, unreadable, damaged, or not of this kind.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: result file not found. Run the workflow to make it.")
    # before opening: damage in HDF5's own tables can keep its library busy for ever
    recorded = checksum_file(path)
    if recorded.is_file() and recorded.read_text(encoding="utf-8").split()[:1] != [sha256(path)]:
        raise UserError(
            f"{path}: its content does not have the checksum it was written with; it is damaged. "
            "Delete it and run the workflow again."
        )
    try:
        with xr.open_dataset(path, engine="netcdf4") as dataset:
            check(dataset, path, kind)
            return dataset.load()
    except (OSError, RuntimeError, ValueError, KeyError, AttributeError) as error:
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
