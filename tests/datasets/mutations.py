"""Damaged data files of users: random changes of intact files, and a fuzz test that reads them."""

import hashlib
import os
import resource
import tempfile
from pathlib import Path

import netCDF4
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralrace.datasets.file import File
from neuralrace.errors import UserError

X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
Y = np.array([[3.0], [1.0], [-1.0]])
CONTEXT = np.array([0, 1, 0])
ARRAYS = {"x": X, "y": Y, "context": CONTEXT}
MOST_MEMORY = 10**9
"""Limit of what reading a file of some kilobytes may add to the peak of memory, in bytes."""


def write_nc(path, arrays, file_format="NETCDF4"):
    """Writes arrays to a NetCDF file, and returns its path."""
    with netCDF4.Dataset(path, "w", format=file_format) as file:
        for name, array in arrays.items():
            dims = [f"{name}_{axis}" for axis in range(np.ndim(array))]
            for dim, size in zip(dims, np.shape(array), strict=True):
                file.createDimension(dim, size)
            file.createVariable(name, array.dtype, dims)[...] = array
    return path


def intact(suffix: str) -> list[bytes]:
    """Contents of intact files, in all variants of the format."""
    if suffix == ".csv":
        return [b"x1,x2,y,context\n1,0,3,0\n0,2,1,1\n1,1,-1,0\n", b"y,x\r\n1e3,2\r\n-1,.5\r\n"]
    contents = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "my" + suffix)
        for save in (np.savez, np.savez_compressed) if suffix == ".npz" else ():
            save(path, **ARRAYS)
            contents.append(path.read_bytes())
        for file_format in ("NETCDF4", "NETCDF3_CLASSIC") if suffix == ".nc" else ():
            # the classic format has no 64-bit integers
            short = {name: array.astype(array.dtype.str[1] + "4") for name, array in ARRAYS.items()}
            write_nc(path, short, file_format)
            contents.append(path.read_bytes())
    return contents


@st.composite
def damaged(draw: st.DrawFn, contents: list[bytes]) -> bytes:
    """An intact file with bytes changed, removed or inserted; one in twenty is random bytes."""
    if draw(st.integers(0, 19)) == 0:
        return draw(st.binary(max_size=400))
    content = bytearray(draw(st.sampled_from(contents)))
    for _ in range(draw(st.integers(1, 8))):
        at = draw(st.integers(0, len(content)))
        length = draw(st.sampled_from([0, 1, 1, 2, 4, 8, len(content)]))
        new = draw(st.binary(max_size=8) | st.just(b"\xff" * 8) | st.just(b"\0" * 8))
        content[at : at + length] = new
    return bytes(content)


def fuzz(suffix: str, examples: int) -> None:
    """Reads damaged files: each is refused with a message, or gives finite numbers."""
    before = [_peak(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]

    @settings(max_examples=examples)
    @given(damaged(intact(suffix)))
    def read(content: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "my" + suffix)
            Path(path).write_bytes(content)
            checksum, message = hashlib.sha256(content).hexdigest(), ""
            try:
                data = File(name="file", path=path, checksum=checksum).load()
            except UserError as error:
                message = str(error)
            if message:
                assert message.startswith(path)
                assert len(message) < 2000
            else:
                assert np.isfinite(data.x).all()
                assert np.isfinite(data.y).all()

    read()
    after = [_peak(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    # the peak of a child process starts at the peak of its parent
    assert max(after) - max(before) < MOST_MEMORY


def _peak(who: int) -> int:
    return 1024 * resource.getrusage(who).ru_maxrss
