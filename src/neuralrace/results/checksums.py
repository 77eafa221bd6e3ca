"""Checksum files: what a file holds, and what it was computed from.

Beside a result file stands `<file>.sha256`, beside the files of a figure or table one for all of
them. `sha256sum --check` reads it. In comments it tells the fingerprint of specification and code,
and the checksums of the result files that the content was computed from.

Content decides, never a time: copies have other times. Checksums protect against accidents, not
against somebody who writes a new checksum file too.
"""

import errno
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from neuralrace.results.atomic import write_text
from neuralrace.errors import UserError

FINGERPRINT, INPUT = "# made from ", "# input "
ENTRY = re.compile(r"([0-9a-f]{64})  ([^\x00-\x1f]+)")
LONGEST = 1 << 24
"""Bytes of a checksum file at most: those of tables have a line for each cell."""
PATIENCE, PAUSE = 0.5, 0.02
"""Seconds that a reader waits for the checksum of a file that was just replaced, and between."""
REMEDY = "add --forcerun {path} to the snakemake command that made it, and it is computed again"
"""What to do about a file that is not as it was written."""


@dataclass(frozen=True)
class Checksums:
    """What a checksum file says.

    Attributes:
        fingerprint: of specification and code; empty where nobody asks.
        files: checksum of each file, by its path from the folder of the checksum file.
        inputs: checksum of each result file that it was computed from, by its path in the results.
    """

    fingerprint: str
    files: Mapping[str, str]
    inputs: Mapping[str, str] = field(default_factory=dict)

    def write(self, place: Path) -> None:
        """Writes the checksum file, or replaces it.

        Raises:
            UserError: the folder cannot be written to or is full.
        """
        lines = [f"{FINGERPRINT}{self.fingerprint}"]
        lines += [f"{INPUT}{digest}  {name}" for name, digest in self.inputs.items()]
        lines += [f"{digest}  {name}" for name, digest in self.files.items()]
        write_text("\n".join(lines) + "\n", place)


def read_checksums(place: Path) -> Checksums | None:
    """What a checksum file says; None where there is none, or it is damaged."""
    try:
        if not place.is_file() or place.stat().st_size > LONGEST:
            return None
        first, *lines = place.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):  # no text, or an empty one
        return None
    entries = [ENTRY.fullmatch(line.removeprefix(INPUT)) for line in lines]
    if not first.startswith(FINGERPRINT) or not lines or None in entries:
        return None
    of_inputs = [line.startswith(INPUT) for line in lines]
    named = [(entry[2], entry[1]) for entry in entries if entry]
    return Checksums(
        first.removeprefix(FINGERPRINT),
        dict(each for each, of_input in zip(named, of_inputs, strict=True) if not of_input),
        dict(each for each, of_input in zip(named, of_inputs, strict=True) if of_input),
    )


def checksum_path(path: Path) -> Path:
    """Where the checksum of a result file stands."""
    return path.with_name(f"{path.name}.sha256")


def file_sha256(path: Path) -> str:
    """Hex digest of a file.

    Raises:
        OSError: it cannot be read, or is a folder, a pipe or a device, which may have no end.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "no ordinary file", str(path))
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def fingerprint(*computed_from: str) -> str:
    """Hex digest of all that something is computed from."""
    return hashlib.sha256(" ".join(computed_from).encode()).hexdigest()


def recorded_fingerprint(path: Path) -> str | None:
    """What a result file was computed from; None where it or its checksum is missing."""
    found = read_checksums(checksum_path(path)) if os.path.isfile(path) else None
    return found.fingerprint if found else None


def recorded_checksum(path: Path, place: Path | None = None) -> str | None:
    """The checksum that a file was written with; None where none is known.

    Args:
        path: the file.
        place: its checksum file, in the same folder; that of a result file when absent.
    """
    found = read_checksums(place or checksum_path(path))
    return found.files.get(path.name) if found else None


def recorded_checksums(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Checksums that result files were written with, by name; without those where none is known."""
    found = {name: recorded_checksum(root / name) for name in names}
    return {name: digest for name, digest in found.items() if digest is not None}


def is_intact(place: Path) -> bool:
    """Whether all files of a checksum file are there, with the content they were written with."""
    found = read_checksums(place)
    try:
        return found is not None and all(
            file_sha256(place.parent / name) == digest for name, digest in found.files.items()
        )
    except OSError:
        return False


@contextmanager
def unchanged_inputs(root: Path, paths: Iterable[Path]) -> Iterator[dict[str, str]]:
    """Checksums of result files, by their path in the results, for the time that they are read.

    Args:
        root: the results folder.
        paths: of the files.

    Raises:
        UserError: one of them was replaced meanwhile, or has no checksum.
    """
    names = [path.relative_to(root).as_posix() for path in paths]
    before = recorded_checksums(root, names)
    for name in names:
        if name not in before:
            raise UserError(_without(root / name, checksum_path(root / name)))
    yield before
    if recorded_checksums(root, names) != before:
        raise UserError(f"{root}: files changed while they were read; run the same command again")


@contextmanager
def checksums_of_outputs(
    place: Path,
    root: Path,
    inputs: Sequence[str],
    files: Sequence[str],
    *computed_from: str,
    guard: Callable[[], None],
) -> Iterator[None]:
    """Writes the checksum file of a figure or table that is written inside.

    Args:
        place: where the checksum file goes.
        root: the results folder.
        inputs: paths of the result files that are read.
        files: paths of the files that are written.
        computed_from: what else they are computed from.
        guard: refuses code that was edited meanwhile.

    Raises:
        UserError: what `guard` refuses, inputs that changed meanwhile, or a folder that cannot be
            written to.
    """
    with unchanged_inputs(root, map(Path, inputs)) as checksums:
        yield
    guard()
    names = {os.path.relpath(file, place.parent): file_sha256(Path(file)) for file in files}
    Checksums(fingerprint(*computed_from), names, checksums).write(place)


def check_checksum(path: Path, digest: str, place: Path | None = None) -> None:
    """Refuses a file with another checksum than it was written with.

    A file without a checksum file passes; one whose checksum file is damaged does not.

    Args:
        path: the file.
        digest: `sha256` of its content.
        place: its checksum file, in the same folder; that of a result file when absent.

    Raises:
        UserError: it is damaged, or its checksum file is.
    """
    place = place or checksum_path(path)
    known = recorded_checksum(path, place)
    if known is None and os.path.lexists(place):
        raise UserError(_without(path, place))
    if known not in (None, digest):
        raise UserError(
            f"{path}: is damaged: its content does not have the checksum it was written with; "
            + REMEDY.format(path=path)
        )


def _without(path: Path, place: Path) -> str:
    """What to tell of a file whose checksum is not known."""
    return f"{path}: its checksum {place.name} is missing or damaged; " + REMEDY.format(path=path)


def check_file(path: Path) -> None:
    """Refuses a result file whose content is not what it was written with.

    A file and its checksum are replaced one after the other; who reads in between waits.

    Raises:
        UserError: it is damaged, or cannot be read.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            digest, age = file_sha256(path), time.time() - path.stat().st_ctime
        except OSError as error:
            raise UserError(
                f"{path}: cannot be read ({error.strerror}); check its permissions"
            ) from error
        fresh = abs(age) < PATIENCE and time.monotonic() < deadline
        if not fresh or recorded_checksum(path) in (None, digest):
            return check_checksum(path, digest)
        time.sleep(PAUSE)
