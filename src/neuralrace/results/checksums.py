"""Checksum files: checksum and provenance of result files, figures and tables.

Each result file has a checksum file `<file>.sha256` beside it; the files of a figure or table share
one. `sha256sum --check` reads these files. Comment lines hold the fingerprint of specification and
code, and the checksums of the result files that the content was computed from.

Files are compared by content and never by date, since copies have other dates. Checksums protect
against accidents. They do not protect against somebody who also replaces the checksum file.
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

from neuralrace.errors import UserError
from neuralrace.results.atomic import write_text

FINGERPRINT, INPUT = "# made from ", "# input "
ENTRY = re.compile(r"([0-9a-f]{64})  ([^\x00-\x1f]+)")
PICTURES = (".png", ".pdf", ".svg")
"""Suffixes of the files of a figure, which share a checksum file."""
TABLES = (
    *(f"{name}.{kind}" for name in ("claims", "findings") for kind in ("md", "json", "csv")),
    "claims.svg",
)
"""Tables of claims and findings, which share one too, with the pages of papers in `claims/`."""
BOARD = ("benchmark.nc", "benchmark.md", "benchmark.csv", "benchmark_findings.json")
"""Files of the benchmark's board, which share the checksum file of the first."""
LONGEST = 1 << 24
"""Largest size of a checksum file in bytes: those of tables have a line for each cell."""
PATIENCE, PAUSE = 0.5, 0.02
"""How long a reader waits for the checksum of a file that was just replaced, and how often it
looks, in seconds."""


@dataclass(frozen=True)
class Checksums:
    """The content of a checksum file.

    Attributes:
        fingerprint: hash of specification and code; may be empty.
        files: checksum of each file, by its path relative to the checksum file.
        inputs: checksum of each result file that was read, by its path in the results folder.
    """

    fingerprint: str
    files: Mapping[str, str]
    inputs: Mapping[str, str] = field(default_factory=dict)

    def write(self, checksum_file: Path) -> None:
        """Writes the checksum file, or replaces it.

        Raises:
            UserError: the folder cannot be written to, or the disk is full.
        """
        lines = [f"{FINGERPRINT}{self.fingerprint}"]
        lines += [f"{INPUT}{digest}  {name}" for name, digest in self.inputs.items()]
        lines += [f"{digest}  {name}" for name, digest in self.files.items()]
        write_text("\n".join(lines) + "\n", checksum_file)


def read_checksums(checksum_file: Path) -> Checksums | None:
    """Reads a checksum file; None if it is missing or damaged."""
    try:
        if not checksum_file.is_file() or checksum_file.stat().st_size > LONGEST:
            return None
        first, *lines = checksum_file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):  # unreadable, not text, or empty
        return None
    if not first.startswith(FINGERPRINT) or not lines:
        return None
    files: dict[str, str] = {}
    inputs: dict[str, str] = {}
    for line in lines:
        entry = ENTRY.fullmatch(line.removeprefix(INPUT))
        if entry is None:
            return None
        (inputs if line.startswith(INPUT) else files)[entry[2]] = entry[1]
    return Checksums(first.removeprefix(FINGERPRINT), files, inputs)


def checksum_path(path: Path) -> Path:
    """The path of the checksum file of a result file."""
    return path.with_name(f"{path.name}.sha256")


def file_sha256(path: Path) -> str:
    """Hex digest of the content of a file.

    Raises:
        OSError: the file cannot be read, or is a folder, a pipe or a device, which may be endless.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not an ordinary file", str(path))
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def fingerprint(*parts: str) -> str:
    """Hex digest of several texts in their order, such as specification and code."""
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def recorded_fingerprint(path: Path) -> str | None:
    """The fingerprint of a result file; None if the file or its checksum file is missing."""
    checksums = read_checksums(checksum_path(path)) if os.path.isfile(path) else None
    return checksums.fingerprint if checksums else None


def recorded_checksum(path: Path, checksum_file: Path | None = None) -> str | None:
    """The checksum of a file in its checksum file; None if there is none.

    Args:
        path: the file.
        checksum_file: the checksum file, in the same folder; `checksum_path(path)` when absent.
    """
    checksums = read_checksums(checksum_file or checksum_path(path))
    return checksums.files.get(path.name) if checksums else None


def recorded_checksums(root: Path, names: Iterable[str]) -> dict[str, str]:
    """The checksums of those result files that have a checksum file, by path in the folder."""
    checksums = {name: recorded_checksum(root / name) for name in names}
    return {name: digest for name, digest in checksums.items() if digest is not None}


def is_intact(checksum_file: Path) -> bool:
    """Whether a checksum file exists, and all its files exist and have the recorded content."""
    checksums = read_checksums(checksum_file)
    try:
        return checksums is not None and all(
            file_sha256(checksum_file.parent / name) == digest
            for name, digest in checksums.files.items()
        )
    except OSError:
        return False


@contextmanager
def unchanged_inputs(root: Path, paths: Iterable[Path]) -> Iterator[dict[str, str]]:
    """Checksums of result files, by their path in the results folder, while these are read.

    Only recorded checksums are compared; reading compares them with the content.

    Args:
        root: the results folder.
        paths: paths of the files.

    Raises:
        UserError: a file was replaced in the meantime, or has no checksum.
    """
    names = [path.relative_to(root).as_posix() for path in paths]
    before = recorded_checksums(root, names)
    for name in names:
        if name not in before:
            raise _without_checksum(root / name, checksum_path(root / name))
    yield before
    if recorded_checksums(root, names) != before:
        raise UserError(
            "files changed while they were read", file=root, remedy="run the same command again"
        )


@contextmanager
def writing_checksums(
    checksum_file: Path,
    root: Path,
    inputs: Sequence[str],
    files: Sequence[str],
    *computed_from: str,
    guard: Callable[[], None],
) -> Iterator[None]:
    """Writes the checksum file of the figure or table that the `with` block writes.

    Args:
        checksum_file: the checksum file.
        root: the results folder.
        inputs: paths of the result files that are read.
        files: paths of the files that are written.
        computed_from: parts of the fingerprint, such as the digest of the code.
        guard: raises an error if the code was edited in the meantime.

    Raises:
        UserError: by `guard`, because inputs changed in the meantime, or because the folder cannot
            be written to.
    """
    with unchanged_inputs(root, map(Path, inputs)) as checksums:
        yield
    guard()
    names = {os.path.relpath(file, checksum_file.parent): file_sha256(Path(file)) for file in files}
    Checksums(fingerprint(*computed_from), names, checksums).write(checksum_file)


def check_checksum(path: Path, digest: str, checksum_file: Path | None = None) -> None:
    """Compares the content of a file with its checksum file, if there is one.

    Args:
        path: the file.
        digest: `file_sha256` of the file.
        checksum_file: the checksum file, in the same folder; `checksum_path(path)` when absent.

    Raises:
        UserError: the file or its checksum file is damaged.
    """
    checksum_file = checksum_file or checksum_path(path)
    recorded = recorded_checksum(path, checksum_file)
    if recorded is None and os.path.lexists(checksum_file):
        raise _without_checksum(path, checksum_file)
    if recorded not in (None, digest):
        problem = "is damaged: its content does not have the checksum it was written with"
        raise to_recompute(path, problem)


def _without_checksum(path: Path, checksum_file: Path) -> UserError:
    return to_recompute(path, f"its checksum {checksum_file.name} is missing or damaged")


def to_recompute(path: Path, problem: str, condition: str = "") -> UserError:
    """An error about an output of the workflow, with the command that computes it again.

    `condition` is an alternative that precedes the command, as in "put it where it belongs, or ".
    """
    remedy = f"add --forcerun {path} to the snakemake command that made it"
    remedy = f"{condition}{remedy}, and it is computed again"
    return UserError(problem, file=path, remedy=remedy)


def check_file(path: Path) -> None:
    """Compares the content of a result file with its checksum file, if there is one.

    Raises:
        UserError: the file is damaged or cannot be read.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            digest, age = file_sha256(path), time.time() - path.stat().st_ctime
        except OSError as error:
            raise UserError(
                f"cannot be read ({error.strerror})", file=path, remedy="check its permissions"
            ) from error
        # a writer replaces first the file and then its checksum file: wait for the second
        fresh = abs(age) < PATIENCE and time.monotonic() < deadline
        if not fresh or recorded_checksum(path) in (None, digest):
            return check_checksum(path, digest)
        time.sleep(PAUSE)
