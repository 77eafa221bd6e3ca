"""NetCDF files of a person's own, read by a process apart.

HDF5 trusts what it reads: damage may crash the process, keep it busy for ever, or take all memory.
So another process reads, which may take only so much time and memory.
"""

import io
import resource
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from neuralrace.datasets.content import refuse_kind, refuse_size
from neuralrace.errors import UserError, shorten

REFUSED = 3
"""Exit status of the other process where it says what is wrong."""
SECONDS = 300
"""Of its processor time, at most."""
OVERHEAD = 500_000_000
"""Bytes that it may take beside the file and its arrays."""


def read_netcdf(path: str, content: bytes, names: Sequence[str]) -> Mapping[str, np.ndarray]:
    """Arrays of a NetCDF file.

    Args:
        path: what messages call it.
        content: of the file.
        names: variables to read; those that are not there are left out.

    Raises:
        UserError: it is no NetCDF file or damaged, or an array is too large, has missing values or
            no numbers.
    """
    command = [sys.executable, "-m", __name__, path, *names]
    done = subprocess.run(command, input=content, capture_output=True, check=False)  # noqa: S603
    if done.returncode == REFUSED:
        raise UserError(done.stdout.decode())
    if done.returncode:
        raise UserError(
            f"{path}: cannot be read as NetCDF (who tried ended with exit status "
            f"{done.returncode}); write it again"
        )
    with np.load(io.BytesIO(done.stdout), allow_pickle=False) as arrays:
        return dict(arrays)


def main(path: str, *names: str) -> int:
    """The other process: reads the file from its input, and writes the arrays as `.npz`."""
    import netCDF4

    content, arrays = sys.stdin.buffer.read(), {}
    with suppress(ValueError, OSError):  # where the system has no such limits
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        _limit_memory(2 * len(content))
    try:
        warnings.simplefilter("error")  # of attributes that cannot be applied
        with netCDF4.Dataset(path, memory=content) as dataset:
            found = [name for name in names if name in dataset.variables]
            for name in found:
                refuse_kind(path, name, np.dtype(dataset[name].dtype))
                refuse_size(path, name, dataset[name].shape)
            with suppress(ValueError, OSError):
                _limit_memory(3 * sum(8 * dataset[name].size for name in found))
            for name in found:
                array = dataset[name][...]
                if np.ma.is_masked(array):
                    raise UserError(
                        f"{path}: {name}: has missing values; mend them or leave the samples out"
                    )
                arrays[name] = np.asarray(array)
        np.savez(sys.stdout.buffer, **arrays)
    except UserError as error:
        print(error, end="")
        return REFUSED
    except Exception as error:  # its reader raises whatever a damaged file leads it to
        said = shorten(str(error), 200)
        print(f"{path}: cannot be read as NetCDF ({said}); write it again", end="")
        return REFUSED
    return 0


def _limit_memory(more: int) -> None:
    """Lets this process take so many bytes more than it has, and what it needs anyway."""
    import psutil

    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = psutil.Process().memory_info().vms + more + OVERHEAD
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
