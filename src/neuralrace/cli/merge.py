"""Results of several people or machines, put together in one folder.

A cell is taken whole from one source, as its trajectory, theory and metrics belong together. What
two sources have in common must be the same to the byte; all that is not is told before anything is
written.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from neuralrace.cli.archive import Archive, opened
from neuralrace.config.cell import flatten_keys
from neuralrace.config.variables import REGISTRIES, FileKind
from neuralrace.errors import UserError
from neuralrace.results.atomic import replacing, write_text
from neuralrace.results.cells import named, open_results
from neuralrace.results.checksums import checksum_path, file_sha256, read_checksums
from neuralrace.results.files import read_attributes
from neuralrace.results.lock import locked

MADE_WITH = ("versions", "device", "xla_flags", "blas", "cpu_features")
"""Attributes of a file that may tell why it has other values."""
SHOWN = 12
"""Digits of a digest that tell it from another one."""

Report = Callable[[str, int, int], None]
"""Takes what is being done, the bytes that are done, and all that there are."""


@dataclass(frozen=True)
class Folder:
    """A results folder as a source, beside `neuralrace.cli.archive.Archive`.

    Attributes:
        path: of the folder.
        sizes: bytes of each sealed result file, by `paper/experiment/label/kind.nc`.
    """

    path: Path
    sizes: dict[str, int]

    def file(self, name: str) -> AbstractContextManager[Path]:
        """A result file, its seal beside it."""
        return nullcontext(self.path / name)


class Held(NamedTuple):
    """A file of a cell, as a source has it: what its seal says, and its attributes."""

    digest: str
    key: str
    inputs: Mapping[str, str]
    attrs: Mapping[str, Any]


class Conflict(NamedTuple):
    """What sets apart the files of one kind that sources have of a cell."""

    told: str
    values_alone: bool = False


Source = Folder | Archive
Cell = dict[FileKind, Held]


def merge(
    sources: Sequence[Path],
    into: Path,
    prefer: Sequence[Path] = (),
    report: Report = lambda what, done, total: None,
) -> dict[Path, int]:
    """Puts finished results together, or refuses all of them and writes nothing.

    Every file is compared with its seal, and seals are copied as they are. What the folder has
    already is a source too, and stays. Tables of claims and metrics are not merged: they follow
    from metrics and are made again by the workflow.

    Args:
        sources: results folders, or archives of `neuralrace.cli.export`.
        into: the folder to write to.
        prefer: sources whose cells count where values alone differ; the first that has the cell.
        report: is told of progress.

    Returns:
        How many cells are from each source, and how many the folder had already.

    Raises:
        UserError: a source that is none; files that are damaged, or of another cell or version; the
            same cell with another specification, code, or, where no source is preferred, other
            values; a file in the folder that is no result; no room, a folder that cannot be written
            to, or in which a run is at work.
    """
    if unknown := [path for path in prefer if path not in (into, *sources)]:
        raise UserError(f"--prefer {unknown[0]}: is none of the sources; name one of them")
    others = [path for path in sources if path.resolve() != into.resolve()]
    here = [_folder(into)] if any(into.glob("*/*/*/*.nc")) else []
    found = [*(each for each in here if each.sizes), *map(_source, others)]
    held = _checked(found, report)
    chosen = _chosen(held, into, prefer)
    had = held.get(into, {})
    files = [
        (source, f"{cell}/{kind}.nc", file)
        for source in found
        for cell, kinds in held[source.path].items()
        if chosen[cell] == source.path
        # metrics last: Snakemake takes what is older than its inputs for stale
        for kind, file in sorted(kinds.items(), reverse=True)
        if kind not in had.get(cell, {})
    ]
    _refuse_unknown(files, into)
    with locked(into):
        _copy(files, into, report)
    return {path: list(chosen.values()).count(path) for path in (into, *others)}


def _source(path: Path) -> Source:
    if not path.is_dir():
        return opened(path)
    folder = _folder(path)
    if not folder.sizes:
        raise UserError(f"{path}: nothing in it is finished; run the workflow to its end")
    return folder


def _folder(path: Path) -> Folder:
    sizes = {
        f"{name}/{kind}.nc": cell.path(kind).stat().st_size
        for name, cell in open_results(path).items()
        for kind in REGISTRIES
        if cell.path(kind).is_file() and checksum_path(cell.path(kind)).is_file()
    }
    return Folder(path, sizes)


def _checked(sources: Sequence[Source], report: Report) -> dict[Path, dict[str, Cell]]:
    """The cells of each source, every file of them read and compared with its seal.

    Raises:
        UserError: files that are damaged, of another cell or version, or made from others than the
            source has, a line each.
    """
    total, done = sum(sum(source.sizes.values()) for source in sources), 0
    found: dict[Path, dict[str, Cell]] = {}
    wrong: list[str] = []
    for source in sources:
        cells = found.setdefault(source.path, {})
        for name, size in source.sizes.items():
            cell, _, file = name.rpartition("/")
            kind: FileKind = file.removesuffix(".nc")  # pyright: ignore[reportAssignmentType]
            with source.file(name) as path:
                try:
                    cells.setdefault(cell, {})[kind] = _held(path, cell, kind)
                except UserError as error:
                    # without the remedy, which is for results of one's own
                    told = str(error).removeprefix(f"{path}: ").partition(". ")[0]
                    wrong.append(f"- {source.path}: {name}: {told}")
            done += size
            report("checked", done, total)
        wrong += [
            f"- {source.path}: {cell}/{kind}.nc: was made from another {other}.nc than it has"
            for cell, files in cells.items()
            for kind, file in files.items()
            for other, each in files.items()
            if file.inputs.get(f"{cell}/{other}.nc", each.digest) != each.digest
        ]
    if wrong:
        head = f"{len(wrong)} files that cannot be used; nothing was written"
        advice = "Make them again where they come from, or ask for them again."
        raise UserError("\n".join([head, *wrong, advice]))
    return found


def _held(path: Path, cell: str, kind: FileKind) -> Held:
    attrs = read_attributes(path, kind)
    if (found := named(attrs)) != cell:
        raise UserError(f"it is a file of {found}")
    sealed = read_checksums(checksum_path(path))
    if sealed is None or path.name not in sealed.files:
        raise UserError("its seal is damaged")
    return Held(sealed.files[path.name], sealed.fingerprint, sealed.inputs, attrs)


def _chosen(
    held: Mapping[Path, Mapping[str, Cell]], into: Path, prefer: Sequence[Path]
) -> dict[str, Path]:
    """Which source each cell is taken from: of those that agree the one with most files of it.

    Raises:
        UserError: all conflicts, a line each.
    """
    chosen: dict[str, Path] = {}
    conflicts: list[Conflict] = []
    for cell in sorted({cell for cells in held.values() for cell in cells}):
        having = {path: cells[cell] for path, cells in held.items() if cell in cells}
        found = [each for kind in REGISTRIES for each in _conflicts(cell, kind, having)]
        favoured = [path for path in prefer if path in having][:1]
        if found and not (favoured and all(each.values_alone for each in found)):
            conflicts += found
            continue
        # what is in the folder stays, so that only a source with the same files can add to it
        there = {kind: file.digest for kind, file in having.get(into, {}).items()}
        adding = [
            path
            for path in (favoured if found else having)
            if there.items() <= {kind: file.digest for kind, file in having[path].items()}.items()
        ]
        if adding:
            chosen[cell] = max(adding, key=lambda path: len(having[path]))
        else:
            told = f"{cell}: {into} has it with other values; name a new folder by --into"
            conflicts.append(Conflict(told))
    if conflicts:
        head = f"{len(conflicts)} conflicts; nothing was written"
        advice = (
            "Of another specification or code is another result: leave a source out, or make its "
            "cell again. Where values alone differ, --prefer SOURCE says whose cells count."
        )
        raise UserError("\n".join([head, *(f"- {each.told}" for each in conflicts), advice]))
    return chosen


def _conflicts(cell: str, kind: FileKind, having: Mapping[Path, Cell]) -> list[Conflict]:
    """What sets apart the files of one kind: specification, else code, else values."""
    files = {path: cells[kind] for path, cells in having.items() if kind in cells}

    def differing(what: str, value: Callable[[Held], str], alone: bool = False) -> list[Conflict]:
        having: dict[str, list[str]] = {}
        for path, file in files.items():
            having.setdefault(value(file), []).append(str(path))
        told = "; ".join(f"{each} in {', '.join(paths)}" for each, paths in having.items())
        return [Conflict(f"{cell}: {kind}: {what}: {told}", alone)] if len(having) > 1 else []

    def specified(file: Held) -> dict[str, str]:
        return {k: json.dumps(v) for k, v in flatten_keys(json.loads(file.attrs["spec"])).items()}

    def made_with(file: Held) -> str:
        return ", ".join(str(file.attrs[name]) for name in MADE_WITH if file.attrs.get(name))

    return (
        [
            conflict
            for key in sorted({key for file in files.values() for key in specified(file)})
            for conflict in differing(key, lambda file, key=key: specified(file).get(key, "absent"))
        ]
        or differing("code", lambda file: file.attrs["code_sha256"][:SHOWN])
        or differing("made from", lambda file: file.key[:SHOWN] or "nothing known")
        or differing("values alone", lambda f: f"{f.digest[:SHOWN]} ({made_with(f)})", True)
    )


def _refuse_unknown(files: Sequence[tuple[Source, str, Held]], into: Path) -> None:
    """Refuses to replace a file of which no checksum file says that it is a result.

    Raises:
        UserError: there is one, and it is no copy of what would replace it.
    """
    for _, name, held in files:
        path = into / name
        if path.exists() and file_sha256(path) != held.digest:
            raise UserError(
                f"{path}: is there already, without a sound checksum file beside it; nothing was "
                "written. Move it elsewhere, or name another folder by --into."
            )


def _copy(files: Sequence[tuple[Source, str, Held]], into: Path, report: Report) -> None:
    """Copies files with their seals, each whole or not at all.

    Raises:
        UserError: no room, a file that changed since it was checked, or a folder that cannot be
            written to.
    """
    total, done = sum(source.sizes[name] for source, name, _ in files), 0
    above = next(folder for folder in (into, *into.resolve().parents) if folder.exists())
    if total > (free := shutil.disk_usage(above).free):
        raise UserError(
            f"{into}: needs {total / 1e6:.0f} MB, and its disk has {free / 1e6:.0f} MB; nothing "
            "was written. Make room, or name another folder by --into."
        )
    for source, name, held in files:
        with source.file(name) as path:
            with replacing(into / name) as temporary:
                shutil.copyfile(path, temporary)
                if file_sha256(temporary) != held.digest:
                    raise UserError(f"{source.path}: {name}: has changed meanwhile; merge again")
            write_text(checksum_path(path).read_text(encoding="utf-8"), checksum_path(into / name))
        done += source.sizes[name]
        report("copied", done, total)
