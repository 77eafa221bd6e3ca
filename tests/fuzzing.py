"""Randomly changed files, read in another process.

A reader may refuse a file with a message. It may not end in a traceback, crash, hang, or take more
than a gigabyte of memory. This module run as a script is that process.
"""

import json
import select
import subprocess
import sys
import traceback
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import xarray as xr
from hypothesis import strategies as st

from neuralrace.cli.archive import NAME, open_archive
from neuralrace.errors import UserError
from neuralrace.results.checksums import (
    Checksums,
    check_file,
    checksum_path,
    file_sha256,
    fingerprint,
    is_intact,
    read_checksums,
)
from neuralrace.results.files import open_lazily, read_attributes, read_result, write_result
from neuralrace.results.schema import SCHEMA_VERSION

PATIENCE = 120.0
"""Seconds after which a reader counts as hanging; one takes milliseconds."""
MOST_MB = 1000
"""Most memory of the process that reads."""


Edits = list[tuple[str, float, bytes]]
CELL = "paper/experiment/main"


def sound_files(folder: Path) -> dict[str, Path]:
    """A result file of numbers, labels and axes, its checksum file, and an archive of both."""
    spec = json.dumps({"training": {"steps": 400}})
    attrs = dict(zip(("paper", "experiment", "cell"), CELL.split("/"), strict=True))
    attrs |= {"kind": "trajectory", "schema": SCHEMA_VERSION, "spec": spec}
    attrs |= {"spec_sha256": fingerprint(spec), "code_sha256": "c" * 64, "versions": "python"}
    described = {"long_name": "made up", "units": "1"}
    loss = (("init_scale", "seed", "time"), np.linspace(0, 1, 60).reshape(2, 3, 10), described)
    coords = {"time": np.arange(10), "label": ["one", "two"]}
    path = folder / CELL / "trajectory.nc"
    write_result(xr.Dataset({"loss": loss}, coords, attrs), path)
    packed = folder / "results.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for each in (path, checksum_path(path)):
            archive.write(each, f"{NAME}/{each.relative_to(folder).as_posix()}")
    return {"result file": path, "checksum file": checksum_path(path), "archive": packed}


def read_checksum_file(path: Path) -> None:
    """Reads a checksum file as the library does."""
    read_checksums(path)
    is_intact(path)
    check_file(path.with_suffix(""))


def read_archive(path: Path) -> None:
    """Reads all files of an archive."""
    archive = open_archive(path)
    for name in archive.sizes:
        with archive.file(name) as file:
            read_attributes(file)


def read_result_file(path: Path) -> None:
    """Reads a result file in all ways."""
    with suppress(UserError):
        read_attributes(path)
    with suppress(UserError):
        open_lazily(path).close()
    read_result(path)


READERS = {
    "result file": read_result_file,
    "checksum file": read_checksum_file,
    "archive": read_archive,
}
KINDS = tuple(READERS)


def serve() -> None:
    """Reads the files that standard input names, and prints outcome and peak memory in MB."""
    for line in sys.stdin:
        kind, path = json.loads(line)
        try:
            READERS[kind](Path(path))
            outcome = "read"
        except UserError as error:
            lines = str(error).count("\n") + 1
            outcome = "refused" if lines < 4 else f"refused in {lines} lines"
        except BaseException:
            outcome = traceback.format_exc()
        # the peak of getrusage begins with that of the process that this one was forked from
        peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
        print(json.dumps([outcome, peak // 1024]), flush=True)


class Reader:
    """A process that reads files, and undamaged files to change.

    Args:
        folder: an empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.paths = sound_files(folder)
        self.sound = {kind: path.read_bytes() for kind, path in self.paths.items()}

    def read_edited(self, kind: str, edits: Edits, sealed: bool) -> str:
        """The outcome of reading a file after some changes; see `read`.

        Args:
            kind: kind of file.
            edits: changes.
            sealed: whether a result file has a matching checksum file, as from a forger, or none.
                A file that does not match its checksum is refused before anything is read.
        """
        path = self.paths[kind]
        path.write_bytes(edited(self.sound[kind], edits))
        if kind == "result file" and sealed:
            Checksums("", {path.name: file_sha256(path)}).write(checksum_path(path))
        elif kind == "result file":
            checksum_path(path).unlink(missing_ok=True)
        else:
            self.paths["result file"].write_bytes(self.sound["result file"])
        return self.read(kind, path)

    def read(self, kind: str, path: Path) -> str:
        """The outcome of reading a file: `read`, `refused`, or a description of a fault."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
        requests, replies = self.process.stdin, self.process.stdout
        assert requests is not None
        assert replies is not None
        print(json.dumps([kind, str(path)]), file=requests, flush=True)
        ready, _, _ = select.select([replies], [], [], PATIENCE)
        line = replies.readline() if ready else ""
        if not line:
            status = self.process.poll() if ready else "none: it hangs"
            self.end()
            return f"the process ended with exit status {status}"
        outcome, megabytes = json.loads(line)
        return outcome if megabytes < MOST_MB else f"{megabytes} MB of memory"

    def end(self) -> None:
        """Ends the process; the next `read` starts another one."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


@contextmanager
def reader(folder: Path) -> Iterator[Reader]:
    """A reader that ends with the test."""
    reader = Reader(folder)
    try:
        yield reader
    finally:
        reader.end()


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["flip", "set", "cut", "drop", "insert", "repeat"]),
        st.floats(0, 1, exclude_max=True),
        st.binary(min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=6,
)
"""Changes of a file: operation, position (as a share of its length), and bytes."""


def edited(content: bytes, edits: Edits) -> bytes:
    """A file after some changes."""
    for operation, share, with_ in edits:
        at = int(share * len(content))
        if operation == "flip":
            changed = bytes(a ^ b for a, b in zip(content[at:], with_, strict=False))
            content = content[:at] + changed + content[at + len(changed) :]
        elif operation == "set":
            content = content[:at] + with_ + content[at + len(with_) :]
        elif operation == "cut":
            content = content[:at]
        elif operation == "drop":
            content = content[:at] + content[at + len(with_) :]
        elif operation == "insert":
            content = content[:at] + with_ + content[at:]
        else:
            content = content[:at] + content[at : at + 64] * len(with_) + content[at:]
    return content


if __name__ == "__main__":
    serve()
