"""Seals: of what files a product consists, and what it was made from.

A seal is a text as `sha256sum --check` reads it, with the checksum of each file. In comments stand
the key of all that the product was made from, and the checksums of the result files among that. It
can be told without opening the files themselves.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from neuralrace.atomic import write_text
from neuralrace.errors import UserError

KEY, INPUT = "# made from ", "# input "
ENTRY = re.compile(r"([0-9a-f]{64})  (.+)")
PATIENCE, PAUSE = 0.5, 0.02
"""Seconds that a reader waits for the seal of a file that was replaced just now, and between."""


@dataclass(frozen=True)
class Seal:
    """What a seal says.

    Attributes:
        key: stands for all that the product was made from; empty where nobody asks.
        files: checksum of each file, by its path from the folder of the seal.
        inputs: checksum of each result file that it was made from, by its path in the results.
    """

    key: str
    files: Mapping[str, str]
    inputs: Mapping[str, str] = field(default_factory=dict)

    def write(self, place: Path) -> None:
        """Writes the seal, or replaces it.

        Raises:
            UserError: the folder cannot be written to or is full.
        """
        lines = [f"{KEY}{self.key}"]
        lines += [f"{INPUT}{digest}  {name}" for name, digest in self.inputs.items()]
        lines += [f"{digest}  {name}" for name, digest in self.files.items()]
        write_text("\n".join(lines) + "\n", place)


def read_seal(place: Path) -> Seal | None:
    """What a seal says; None where there is none, or it is damaged."""
    try:
        first, *lines = place.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):  # no text, or an empty one
        return None
    entries = [ENTRY.fullmatch(line.removeprefix(INPUT)) for line in lines]
    if not first.startswith(KEY) or not lines or None in entries:
        return None
    of_inputs = [line.startswith(INPUT) for line in lines]
    named = [(entry[2], entry[1]) for entry in entries if entry]
    return Seal(
        first.removeprefix(KEY),
        dict(each for each, of_input in zip(named, of_inputs, strict=True) if not of_input),
        dict(each for each, of_input in zip(named, of_inputs, strict=True) if of_input),
    )


def seal_file(path: Path) -> Path:
    """Where the seal of a result file stands."""
    return path.with_name(f"{path.name}.sha256")


def seal(path: Path, digest: str, key: str, inputs: Mapping[str, str] | None = None) -> None:
    """Writes the seal of a result file.

    Args:
        path: the file.
        digest: `sha256` of its content.
        key: stands for all that it was made from; empty where nobody asks.
        inputs: checksums of result files that it was made from.

    Raises:
        UserError: the folder cannot be written to or is full.
    """
    Seal(key, {path.name: digest}, inputs or {}).write(seal_file(path))


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def key(*made_from: str) -> str:
    """One text that stands for many."""
    return hashlib.sha256(" ".join(made_from).encode()).hexdigest()


def digest_of(path: Path) -> str | None:
    """The checksum that a result file was sealed with; None where it has no seal."""
    found = read_seal(seal_file(path))
    return found.files.get(path.name) if found else None


def digests(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Checksums that result files were sealed with, by name; none of what has no seal."""
    found = {name: digest_of(root / name) for name in names}
    return {name: digest for name, digest in found.items() if digest is not None}


def key_of(path: Path) -> str | None:
    """The key of what a result file was made from; None where the file or its seal is missing."""
    found = read_seal(seal_file(path)) if os.path.isfile(path) else None
    return found.key if found else None


def refuse_damage(path: Path, digest: str) -> None:
    """Refuses a result file with another checksum than its seal; one without a seal passes.

    Args:
        path: the file.
        digest: `sha256` of its content.

    Raises:
        UserError: it is damaged.
    """
    if digest_of(path) not in (None, digest):
        raise UserError(
            f"{path}: its content does not have the checksum it was written with; it is damaged. "
            "Run the workflow again: it sets the file aside and makes it anew."
        )


def refuse_unsound(path: Path) -> None:
    """Refuses a result file whose content is not what it was sealed with.

    A file and its seal are replaced one after the other; who reads in between waits for the seal.

    Raises:
        UserError: it is damaged, or cannot be read.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            digest, age = sha256(path), time.time() - path.stat().st_ctime
        except OSError as error:
            raise UserError(
                f"{path}: cannot be read ({error.strerror}); check its permissions"
            ) from error
        fresh = abs(age) < PATIENCE and time.monotonic() < deadline
        if not fresh or digest_of(path) in (None, digest):
            return refuse_damage(path, digest)
        time.sleep(PAUSE)


def sound(place: Path) -> bool:
    """Whether the files of a seal are there, with the content that they were sealed with.

    What was not changed since it was sealed, as the file system says, is not read again: no program
    can set the time of the last change of a file's entry (ctime), and moved, copied, touched or
    edited files have a later one. Those are read, and if all are sound the seal is touched.
    """
    found = read_seal(place)
    if found is None:
        return False
    try:
        sealed = place.stat().st_ctime_ns
        paths = {place.parent / name: digest for name, digest in found.files.items()}
        changed = {path: each for path, each in paths.items() if path.stat().st_ctime_ns > sealed}
        if any(sha256(path) != digest for path, digest in changed.items()):
            return False
    except OSError:
        return False
    if changed:
        with suppress(OSError):  # such as a folder that is read only: they are read each time
            os.utime(place)
    return True
