"""Merging of results of several people or machines into one folder.

Each cell is copied as a whole from one source, as its trajectory, theory and metrics belong
together. Files that several sources contain must be equal to the byte. Otherwise all conflicts are
listed, and nothing is written.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from neuralrace.cli.archive import Archive, open_archive
from neuralrace.config.cell import flatten_keys
from neuralrace.config.variables import REGISTRIES, FileKind
from neuralrace.errors import UserError, counted
from neuralrace.results.atomic import replacing, replacing_together, write_text
from neuralrace.results.cells import cell_name, open_results
from neuralrace.results.checksums import checksum_path, file_sha256, read_checksums
from neuralrace.results.files import read_attributes
from neuralrace.results.lock import locked

ENVIRONMENT = ("versions", "device", "xla_flags", "blas", "cpu_features")
"""Attributes of a file that may explain why its values differ."""
SHORT = 12
"""Digits of a digest in messages."""
Report = Callable[[str, int, int], None]
"""Function that takes an action ("checked" or "copied"), the number of bytes so far, and their
total."""


@dataclass(frozen=True)
class Folder:
    """A results folder as a source, with the interface of `neuralrace.cli.archive.Archive`.

    Attributes:
        path: path of the folder.
        sizes: size of each finished result file in bytes, by `paper/experiment/label/kind.nc`.
    """

    path: Path
    sizes: dict[str, int]

    def file(self, name: str) -> AbstractContextManager[Path]:
        """A result file, with its checksum file beside it."""
        return nullcontext(self.path / name)


class File(NamedTuple):
    """Identity and provenance of a file of a cell in one source."""

    digest: str
    fingerprint: str
    inputs: Mapping[str, str]
    attrs: Mapping[str, Any]


class Conflict(NamedTuple):
    """A difference between the sources' versions of a cell."""

    message: str
    values_only: bool = False


Source = Folder | Archive
Files = dict[FileKind, File]
"""Files of one cell."""


def merge(
    sources: Sequence[Path],
    into: Path,
    prefer: Sequence[Path] = (),
    report: Report = lambda what, done, total: None,
) -> dict[Path, int]:
    """Merges finished results into one folder, or refuses all of them and writes nothing.

    Every file is compared with its checksum file, and both are copied. The files in the folder are
    a source too, and stay. Tables of claims and metrics are not merged: the workflow makes them
    again from the metrics.

    Args:
        sources: results folders, or archives of `neuralrace.cli.export`.
        into: the folder to write to.
        prefer: sources whose cells are used where only values differ; the first that has the cell.
        report: function that takes the progress.

    Returns:
        Number of cells from each source, including those that the folder already had.

    Raises:
        UserError: a source has no results; files are damaged, or of another cell or version;
            sources have the same cell with another specification or code, or, unless a source is
            preferred, other values; the folder has a file that is no result; the disk is full, the
            folder cannot be written to, or a run is at work in it.
    """
    if unknown := [path for path in prefer if path not in (into, *sources)]:
        problem = "is none of the sources"
        raise UserError(problem, key=f"--prefer {unknown[0]}", remedy="name one of them")
    others = [path for path in sources if path.resolve() != into.resolve()]
    own = [_folder(into)] if any(into.glob("*/*/*/*.nc")) else []
    read = [*(source for source in own if source.sizes), *map(_open, others)]
    cells = _check(read, report)
    chosen = _choose(cells, into, prefer)
    existing = cells.get(into, {})
    copies = [
        (source, f"{cell}/{kind}.nc", file)
        for source in read
        for cell, files in cells[source.path].items()
        if chosen[cell] == source.path
        # metrics last: for Snakemake, a file that is older than its inputs is stale
        for kind, file in sorted(files.items(), reverse=True)
        if kind not in existing.get(cell, {})
    ]
    for _, name, file in copies:
        if (into / name).exists() and file_sha256(into / name) != file.digest:
            raise UserError(
                "exists already without a sound checksum file; nothing was written",
                file=into / name,
                remedy="move it elsewhere, or name another folder by --into",
            )
    with locked(into):
        _copy(copies, into, report)
    return {path: list(chosen.values()).count(path) for path in (into, *others)}


def _open(path: Path) -> Source:
    if not path.is_dir():
        return open_archive(path)
    folder = _folder(path)
    if not folder.sizes:
        raise UserError(
            "nothing in it is finished", file=path, remedy="run the workflow to its end"
        )
    return folder


def _folder(path: Path) -> Folder:
    sizes = {
        f"{name}/{kind}.nc": cell.path(kind).stat().st_size
        for name, cell in open_results(path).items()
        for kind in REGISTRIES
        if cell.path(kind).is_file() and checksum_path(cell.path(kind)).is_file()
    }
    return Folder(path, sizes)


def _check(sources: Sequence[Source], report: Report) -> dict[Path, dict[str, Files]]:
    """Reads every file and compares it with its checksum file.

    Returns:
        The cells of each source.

    Raises:
        UserError: files are damaged, of another cell or version, or computed from other files than
            the source has; with a line for each.
    """
    total, done = sum(sum(source.sizes.values()) for source in sources), 0
    cells: dict[Path, dict[str, Files]] = {}
    problems: list[str] = []
    for source in sources:
        own = cells.setdefault(source.path, {})
        for name, size in source.sizes.items():
            cell, _, file = name.rpartition("/")
            kind: FileKind = file.removesuffix(".nc")  # pyright: ignore[reportAssignmentType]
            with source.file(name) as path:
                try:
                    own.setdefault(cell, {})[kind] = _read(path, cell, kind)
                except UserError as error:
                    # its remedy is to run the workflow, which the user of a source cannot do
                    problems.append(f"- {source.path}: {name}: {error.problem}")
            done += size
            report("checked", done, total)
        problems += [
            f"- {source.path}: {cell}/{kind}.nc: was made from another {other}.nc than it has"
            for cell, files in own.items()
            for kind, file in files.items()
            for other, used in files.items()
            if file.inputs.get(f"{cell}/{other}.nc", used.digest) != used.digest
        ]
    if problems:
        count = f"{counted(len(problems), 'unusable file')}; nothing was written"
        advice = "Make them again where they come from, or ask for them again."
        raise UserError("\n".join([count, *problems, advice]))
    return cells


def _read(path: Path, cell: str, kind: FileKind) -> File:
    attrs = read_attributes(path, kind)
    if (name := cell_name(attrs)) != cell:
        raise UserError(f"is a file of {name}")
    checksums = read_checksums(checksum_path(path))
    if checksums is None or path.name not in checksums.files:
        raise UserError("its checksum file is damaged")
    return File(checksums.files[path.name], checksums.fingerprint, checksums.inputs, attrs)


def _choose(
    cells: Mapping[Path, Mapping[str, Files]], into: Path, prefer: Sequence[Path]
) -> dict[str, Path]:
    """Chooses a source for each cell: among those that agree, the one with most files of it.

    Raises:
        UserError: sources conflict; with a line for each conflict.
    """
    chosen: dict[str, Path] = {}
    conflicts: list[Conflict] = []
    for cell in sorted({cell for own in cells.values() for cell in own}):
        versions = {path: own[cell] for path, own in cells.items() if cell in own}
        differences = [each for kind in REGISTRIES for each in _conflicts(cell, kind, versions)]
        preferred = [path for path in prefer if path in versions][:1]
        if differences and not (preferred and all(each.values_only for each in differences)):
            conflicts += differences
            continue
        # files in the folder stay, so that only a source with the same files can add to them
        existing = _digests(versions.get(into, {})).items()
        candidates = [
            path
            for path in (preferred if differences else versions)
            if existing <= _digests(versions[path]).items()
        ]
        if candidates:
            chosen[cell] = max(candidates, key=lambda path: len(versions[path]))
        else:
            message = f"{cell}: {into} has it with other values; name a new folder by --into"
            conflicts.append(Conflict(message))
    if conflicts:
        count = f"{counted(len(conflicts), 'conflict')}; nothing was written"
        advice = (
            "Another specification or code means another result: leave a source out, or make its "
            "cell again. Where values alone differ, --prefer SOURCE says whose cells count."
        )
        raise UserError("\n".join([count, *(f"- {each.message}" for each in conflicts), advice]))
    return chosen


def _digests(files: Files) -> dict[FileKind, str]:
    return {kind: file.digest for kind, file in files.items()}


def _conflicts(cell: str, kind: FileKind, versions: Mapping[Path, Files]) -> list[Conflict]:
    """Differences between files of one kind: in the specification, else the code, else values."""
    files = {path: version[kind] for path, version in versions.items() if kind in version}

    def compare(
        subject: str, value: Callable[[File], str], values_only: bool = False
    ) -> list[Conflict]:
        paths: dict[str, list[str]] = {}
        for path, file in files.items():
            paths.setdefault(value(file), []).append(str(path))
        values = "; ".join(f"{each} in {', '.join(having)}" for each, having in paths.items())
        message = f"{cell}: {kind}: {subject}: {values}"
        return [Conflict(message, values_only)] if len(paths) > 1 else []

    def specification(file: File) -> dict[str, str]:
        entries = flatten_keys(json.loads(file.attrs["spec"])).items()
        return {key: json.dumps(value) for key, value in entries}

    def environment(file: File) -> str:
        return ", ".join(str(file.attrs[name]) for name in ENVIRONMENT if file.attrs.get(name))

    return (
        [
            conflict
            for key in sorted({key for file in files.values() for key in specification(file)})
            for conflict in compare(key, lambda f, key=key: specification(f).get(key, "absent"))
        ]
        or compare("code", lambda file: file.attrs["code_sha256"][:SHORT])
        or compare("made from", lambda file: file.fingerprint[:SHORT] or "nothing known")
        or compare("values alone", lambda f: f"{f.digest[:SHORT]} ({environment(f)})", True)
    )


def _copy(copies: Sequence[tuple[Source, str, File]], into: Path, report: Report) -> None:
    """Copies files with their checksum files, each atomically.

    Raises:
        UserError: the disk is full, a file changed since it was checked, or the folder cannot be
            written to.
    """
    total, done = sum(source.sizes[name] for source, name, _ in copies), 0
    parent = next(folder for folder in (into, *into.resolve().parents) if folder.exists())
    if total > (free := shutil.disk_usage(parent).free):
        raise UserError(
            f"needs {total / 1e6:.0f} MB, and its disk has {free / 1e6:.0f} MB; nothing was "
            "written",
            file=into,
            remedy="make room, or name another folder by --into",
        )
    for source, name, file in copies:
        with source.file(name) as path:
            target, checksum_file = into / name, checksum_path(into / name)
            with replacing_together([target, checksum_file]):
                with replacing(target) as temporary:
                    shutil.copyfile(path, temporary)
                    if file_sha256(temporary) != file.digest:
                        problem = f"{name}: has changed meanwhile"
                        raise UserError(problem, file=source.path, remedy="merge again")
                write_text(checksum_path(path).read_text(encoding="utf-8"), checksum_file)
        done += source.sizes[name]
        report("copied", done, total)
