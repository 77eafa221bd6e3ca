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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from neuralrace.errors import UserError
from neuralrace.results.atomic import replacing_together, temporaries, write_text

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
MISSING = (errno.ENOENT, errno.ENOTDIR, errno.EINVAL)
"""Errors of a file that is not there, or in whose place is something else; see `file_sha256`."""
LONGEST = 1 << 24
"""Largest size of a checksum file in bytes: those of tables have a line for each cell."""


class UnreadableError(UserError):
    """A file that cannot be read although nothing says that its content is wrong."""


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


def pending_checksums(checksum_file: Path) -> list[Checksums]:
    """Complete checksum files that are about to get their name.

    A writer replaces first a file and then its checksum file. Between both, or for ever if it is
    killed there, the temporary checksum file describes the file; see `replacing_together`.
    """
    read = (read_checksums(temporary) for temporary, _, _ in temporaries([checksum_file]))
    return [checksums for checksums in read if checksums]


def finish_replacements(paths: Iterable[Path]) -> None:
    """Replaces the rest of the files that a killed process had begun to replace together.

    No other process may be writing these files: see `neuralrace.results.lock`.

    Args:
        paths: files with their checksum files. A checksum file that was written, but not yet
            renamed, is renamed if all its files are there, with those that wait with it.
    """
    waiting = {(path, process): temporary for temporary, path, process in temporaries(paths)}
    for (checksum_file, process), temporary in waiting.items():
        checksums = read_checksums(temporary)
        if checksums is None:  # no checksum file, or an incomplete one
            continue
        files = {checksum_file.parent / name: digest for name, digest in checksums.files.items()}
        sources = {path: waiting.get((path, process), path) for path in files}
        with suppress(OSError):  # a file that is not there, or cannot be replaced
            if all(file_sha256(sources[path]) == digest for path, digest in files.items()):
                for path, source in sources.items():
                    os.replace(source, path)
                os.replace(temporary, checksum_file)


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
        checksum_file: the checksum file; `checksum_path(path)` when absent.
    """
    checksum_file = checksum_file or checksum_path(path)
    checksums = read_checksums(checksum_file)
    return checksums.files.get(_name(path, checksum_file)) if checksums else None


def _name(path: Path, checksum_file: Path) -> str:
    """The name of a file in its checksum file."""
    return os.path.relpath(path, checksum_file.parent)


def recorded_checksums(root: Path, names: Iterable[str]) -> dict[str, str]:
    """The checksums of those result files that have a checksum file, by path in the folder."""
    checksums = {name: recorded_checksum(root / name) for name in names}
    return {name: digest for name, digest in checksums.items() if digest is not None}


def is_intact(checksum_file: Path) -> bool:
    """Whether a checksum file exists, and all its files exist and have the recorded content."""
    checksums = read_checksums(checksum_file)
    return checksums is not None and _are_intact(checksum_file.parent, checksums)


def _are_intact(folder: Path, checksums: Checksums) -> bool:
    """Whether all files that checksums name exist in a folder and have the recorded content."""
    try:
        return all(file_sha256(folder / name) == sha for name, sha in checksums.files.items())
    except OSError:
        return False


def present_checksums(checksum_file: Path) -> Checksums | None:
    """The content of a checksum file, or of a pending one whose files have been replaced already.

    None if there is neither.
    """
    for pending in pending_checksums(checksum_file):
        if _are_intact(checksum_file.parent, pending):
            return pending
    return read_checksums(checksum_file)


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

    The files and the checksum file are replaced together at the end, or not at all.

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
    paths = {_name(path, checksum_file): path for path in map(Path, files)}
    with replacing_together([*paths.values(), checksum_file]) as written:
        with unchanged_inputs(root, map(Path, inputs)) as checksums:
            yield
        guard()
        names = {name: file_sha256(written.get(path, path)) for name, path in paths.items()}
        Checksums(fingerprint(*computed_from), names, checksums).write(checksum_file)


def is_as_recorded(path: Path, checksum_file: Path) -> bool | None:
    """Whether a file has its checksum; None if its checksum file is missing or does not name it.

    A file that a writer replaces meanwhile counts as what the writer makes of it.

    Raises:
        OSError: as `file_sha256`.
    """
    name = _name(path, checksum_file)
    while True:
        before = _state(path)
        digest = file_sha256(path)
        # pending files before the checksum file that they become
        pending = [each.files.get(name) for each in pending_checksums(checksum_file)]
        recorded = recorded_checksum(path, checksum_file)
        if digest in (recorded, *pending):
            return True
        if recorded is None:
            return None
        if _state(path) == before:
            return False


def check_file(path: Path, checksum_file: Path | None = None) -> bool:
    """Compares the content of a file with its checksum file, if there is one.

    Args:
        path: the file.
        checksum_file: the checksum file; `checksum_path(path)` when absent.

    Returns:
        Whether there is a checksum file.

    Raises:
        UserError: the file or its checksum file is damaged or cannot be read.
    """
    checksum_file = checksum_file or checksum_path(path)
    try:
        intact = is_as_recorded(path, checksum_file)
    except OSError as error:
        raise unreadable(path, error) from error
    if intact is None and os.path.lexists(checksum_file):
        raise _without_checksum(path, checksum_file)
    if intact is False:
        problem = "is damaged: its content does not have the checksum it was written with"
        raise to_recompute(path, problem)
    return bool(intact)


def _state(path: Path) -> tuple[int, ...]:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def unreadable(path: Path, error: OSError) -> UserError:
    """An error about a file that cannot be read; unless it is missing, its content may be sound."""
    kind = UserError if error.errno in MISSING else UnreadableError
    problem = f"cannot be read ({error.strerror})"
    return kind(problem, file=path, remedy="check its permissions")


def _without_checksum(path: Path, checksum_file: Path) -> UserError:
    try:
        if checksum_file.is_file():
            checksum_file.open("rb").close()
    except OSError as error:
        return unreadable(checksum_file, error)
    return to_recompute(path, f"its checksum {checksum_file.name} is missing or damaged")


def to_recompute(path: Path, problem: str, condition: str = "") -> UserError:
    """An error about an output of the workflow, with the command that computes it again.

    `condition` is an alternative that precedes the command, as in "put it where it belongs, or ".
    """
    remedy = f"add --forcerun {path} to the snakemake command that made it"
    remedy = f"{condition}{remedy}, and it is computed again"
    return UserError(problem, file=path, remedy=remedy)
