"""Files that were changed at random, read in a process of their own.

A reader may end in a message and in nothing else: no traceback, no crash of a library, no hang, and
no more than a gigabyte of memory.
"""

import json
import select
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import xarray as xr
from hypothesis import strategies as st

from neuralrace.cli.archive import NAME
from neuralrace.results.checksums import Checksums, checksum_path, file_sha256, fingerprint
from neuralrace.results.files import write_result
from neuralrace.results.schema import SCHEMA_VERSION

READER = """
import json, sys, traceback
from contextlib import suppress
from pathlib import Path
from neuralrace.cli.archive import opened
from neuralrace.errors import UserError
from neuralrace.results.files import attributes, open_lazily, read
from neuralrace.results.checksums import intact, read_seal, refuse_unsound

def seal(path):
    read_seal(path)
    intact(path)
    refuse_unsound(path.with_suffix(""))

def archive(path):
    for name in (found := opened(path)).sizes:
        with found.file(name) as file:
            attributes(file)

def result(path):
    with suppress(UserError):
        attributes(path)
    with suppress(UserError):
        open_lazily(path).close()
    read(path)

READERS = {"result file": result, "checksum file": seal, "archive": archive}
for line in sys.stdin:
    kind, path = json.loads(line)
    try:
        READERS[kind](Path(path))
        said = "read"
    except UserError as error:
        said = "refused"
        assert str(error).count("\\n") < 3
    except BaseException:
        said = traceback.format_exc()
    # that of getrusage begins with the peak of the process that this one was forked from
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
    print(json.dumps([said, peak // 1024]), flush=True)
"""
PATIENCE = 120.0
"""Seconds after which a reader hangs; one takes milliseconds."""
MOST_MB = 1000


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


class Reader:
    """A process that reads files, and sound ones to be changed.

    Args:
        folder: an empty one.
    """

    def __init__(self, folder: Path) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.paths = sound_files(folder)
        self.sound = {kind: path.read_bytes() for kind, path in self.paths.items()}

    def read_edited(self, kind: str, edits: Edits, sealed: bool) -> str:
        """What came of reading a file after some changes; see `read`.

        Args:
            kind: of file.
            edits: changes.
            sealed: whether a result file has a checksum file to match, as by a forger; else it has
                none. One that does not match is refused before anything is read.
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
        """What came of reading a file: `read`, `refused`, or what should not have happened."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-c", READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
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
        said, megabytes = json.loads(line)
        return said if megabytes < MOST_MB else f"{megabytes} MB of memory"

    def end(self) -> None:
        """Ends the process; another is started when something is to be read."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


@contextmanager
def reader(folder: Path) -> Iterator[Reader]:
    """A reader that ends with the test."""
    found = Reader(folder)
    try:
        yield found
    finally:
        found.end()


KINDS = ("result file", "checksum file", "archive")
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["flip", "set", "cut", "drop", "insert", "repeat"]),
        st.floats(0, 1, exclude_max=True),
        st.binary(min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=6,
)
"""Changes of a file: what, where (as a share of its length), and with which bytes."""


def edited(content: bytes, edits: Edits) -> bytes:
    """A file after some changes."""
    for what, share, with_ in edits:
        at = int(share * len(content))
        if what == "flip":
            changed = bytes(a ^ b for a, b in zip(content[at:], with_, strict=False))
            content = content[:at] + changed + content[at + len(changed) :]
        elif what == "set":
            content = content[:at] + with_ + content[at + len(with_) :]
        elif what == "cut":
            content = content[:at]
        elif what == "drop":
            content = content[:at] + content[at + len(with_) :]
        elif what == "insert":
            content = content[:at] + with_ + content[at:]
        else:
            content = content[:at] + content[at : at + 64] * len(with_) + content[at:]
    return content
