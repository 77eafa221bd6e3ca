"""NetCDF files of users, read in a subprocess.

A damaged file can make HDF5 crash, loop for ever or take all memory. So a subprocess with limits on
processor time and memory reads the file, and sends the arrays back.
"""

import io
import json
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from neuralrace.datasets.content import refuse_array
from neuralrace.errors import UserError, shorten

REFUSED = 3
"""Exit status of the subprocess if its output describes the error."""
SECONDS = 300
"""Limit of processor time of the subprocess."""
OVERHEAD = 500_000_000
"""Memory that the subprocess may use in addition to the file and its arrays, in bytes."""


def read_netcdf(path: str, content: bytes, names: Sequence[str]) -> Mapping[str, np.ndarray]:
    """Arrays of a NetCDF file.

    Args:
        path: name of the file, for messages.
        content: content of the file.
        names: variables to read; variables that the file lacks are left out.

    Raises:
        UserError: the file is damaged or no NetCDF file; or an array is too large, has missing
            values, or does not hold numbers.
    """
    with np.load(io.BytesIO(_answer(path, content, *names)), allow_pickle=False) as arrays:
        return dict(arrays)


def list_netcdf(path: str, content: bytes) -> list[str]:
    """Names of the variables of a NetCDF file.

    Raises:
        UserError: the file is damaged or no NetCDF file.
    """
    return json.loads(_answer(path, content))


def _answer(path: str, content: bytes, *names: str) -> bytes:
    """What the subprocess writes to its output: see `main`."""
    command = [sys.executable, "-m", __name__, path, *names]
    done = subprocess.run(command, input=content, capture_output=True, check=False)  # noqa: S603
    if done.returncode == REFUSED:
        raise UserError(file=path, **json.loads(done.stdout))
    if done.returncode:
        problem = f"cannot be read as NetCDF (the reader ended with exit status {done.returncode})"
        raise UserError(problem, file=path, remedy="write it again")
    return done.stdout


def main(path: str, *names: str) -> int:
    """Runs in the subprocess: reads the file from stdin, and writes the arrays as `.npz`.

    Without names it writes those of all variables, as JSON.
    """
    import netCDF4

    content, arrays = sys.stdin.buffer.read(), {}
    with suppress(ImportError, ValueError, OSError):  # some systems have no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        _limit_memory(2 * len(content))
    try:
        warnings.simplefilter("error")  # netCDF4 only warns of a scale factor that is text
        with netCDF4.Dataset(path, memory=content) as dataset:
            present = [name for name in names if name in dataset.variables]
            for name in present:
                refuse_array(path, name, np.dtype(dataset[name].dtype), dataset[name].shape)
            with suppress(ImportError, ValueError, OSError):
                _limit_memory(3 * sum(8 * dataset[name].size for name in present))
            for name in present:
                array = dataset[name][...]
                if np.ma.is_masked(array):
                    remedy = "fill them in or leave them out"
                    raise UserError("has missing values", key=name, remedy=remedy)
                arrays[name] = np.asarray(array)
            variables = [*dataset.variables]
        if names:
            np.savez(sys.stdout.buffer, **arrays)
        else:
            print(json.dumps(variables))
    except UserError as error:
        refusal = error
    except Exception as error:  # damaged files make the reader raise exceptions of many types
        problem = f"cannot be read as NetCDF ({shorten(str(error), 200)})"
        refusal = UserError(problem, remedy="write it again")
    else:
        return 0
    print(json.dumps({name: getattr(refusal, name) for name in ("problem", "key", "remedy")}))
    return REFUSED


def _limit_memory(more: int) -> None:
    """Limits the memory of this process to what it has, `more` bytes and `OVERHEAD`."""
    import resource

    import psutil

    _, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    limit = psutil.Process().memory_info().vms + more + OVERHEAD
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard_limit))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
