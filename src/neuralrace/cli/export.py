"""Export of finished results to one archive, to share them.

The archive is a zip file of one results folder. The same results give the same bytes: names are
sorted and dates are fixed.
"""

import csv
import shutil
import zipfile
from collections.abc import Callable, Collection, Mapping
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from neuralrace.claims.judge import Row
from neuralrace.claims.table import read_tables, write_tables
from neuralrace.cli.archive import NAME
from neuralrace.config.variables import REGISTRIES
from neuralrace.errors import UserError, did_you_mean
from neuralrace.results.atomic import replacing
from neuralrace.results.cells import figures_folder, open_results
from neuralrace.results.checksums import (
    Checksums,
    check_file,
    checksum_path,
    file_sha256,
    is_intact,
    pending_checksums,
    read_checksums,
    recorded_checksum,
    recorded_checksums,
)

R = TypeVar("R", bound=Row)
README = """\
# Results of neuralrace {version}

Cells, in `<paper>/<experiment>/<cell>/`: {count} of {papers}.

Each has up to three NetCDF files: `trajectory.nc`, recorded in training; `theory.nc`, solved for
the same runs; `metrics.nc`, computed from both. Every file contains its specification and the
versions of all packages. `claims.md` and `findings.md` have the outcomes, if they were judged.
`figures` has the figures that were drawn from these cells only.

To open them, in Python:

    import neuralrace as nr

    results = nr.open_results("{name}")
    print(results["{cell}"].{kind})

Without neuralrace: `xarray.open_dataset("{name}/{cell}/{kind}.nc")`.

| to | type |
|---|---|
| check every file | `neuralrace verify {name}` |
| check those of a cell without neuralrace | `sha256sum --check *.sha256` in its folder |
| read the claims | `neuralrace claims --results {name}` |
| compare with your results | `neuralrace compare {name} FOLDER` |
| merge with your results | `neuralrace merge {name} --into FOLDER` |
"""


def export(
    folder: Path,
    file: Path,
    only: Collection[str] = (),
    force: bool = False,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Packs the finished files of a results folder into one archive.

    A result file is finished once it has a checksum file. Tables of claims, findings and metrics
    are reduced to the packed cells. A figure is packed if it was drawn from packed cells only.
    Logs, checkpoints, variants and smoke runs are left out.

    Args:
        folder: the results folder.
        file: the archive to write, `.zip`.
        only: papers, experiments `paper/experiment` or cells; everything when empty.
        force: whether to replace an existing file.
        report: function that takes the number of packed bytes and their total.

    Returns:
        Identifiers of the packed cells, and names of the packed figures, sorted.

    Raises:
        UserError: nothing is finished, a name is unknown, a file is damaged or of another cell, a
            link leads out of the folder, or the archive cannot be written or exists already.
    """
    if file.suffix != ".zip":
        raise UserError("is no name of an archive", file=file, remedy="end it in .zip")
    if file.is_dir():
        raise UserError("is a folder", file=file, remedy="name a file to write")
    if file.exists() and not force:
        remedy = "use another name, or --force to replace it"
        raise UserError("exists already", file=file, remedy=remedy)
    cells, files = _finished(folder, only)
    sources = {
        path.relative_to(folder): path for each in files for path in (each, checksum_path(each))
    }
    packed = recorded_checksums(folder, (path.relative_to(folder).as_posix() for path in files))
    figures, pictures = _figures(folder, packed)
    sources |= pictures
    with TemporaryDirectory() as temporary:
        tables = Path(temporary)
        _write_tables(folder, cells, tables)
        _write_readme(cells, files[0].stem, tables)
        _write_checksums(folder, packed, tables)
        made = (path for path in tables.rglob("*") if path.is_file())
        sources |= {path.relative_to(tables): path for path in made}
        total, done = sum(path.stat().st_size for path in sources.values()), 0
        with replacing(file) as unfinished, zipfile.ZipFile(unfinished, "w") as archive:
            for name, path in sorted((name.as_posix(), path) for name, path in sources.items()):
                _add(path, f"{NAME}/{name}", archive)
                done += path.stat().st_size
                report(done, total)
    return cells, figures


def _add(path: Path, name: str, archive: zipfile.ZipFile) -> None:
    check_file(path)
    if pending_checksums(checksum_path(path)) and not is_intact(checksum_path(path)):
        remedy = "export when the run in this folder has ended, or run again what was killed"
        raise UserError("is being replaced", file=path, remedy=remedy)
    # the same file gives the same bytes: ZipInfo has the date 1980-01-01, and no owner
    entry = zipfile.ZipInfo(name)
    entry.external_attr = 0o644 << 16
    entry.file_size = path.stat().st_size  # files of more than 4 GB have another header
    # NetCDF files are compressed already
    entry.compress_type = zipfile.ZIP_STORED if path.suffix == ".nc" else zipfile.ZIP_DEFLATED
    with path.open("rb") as source, archive.open(entry, "w") as target:
        shutil.copyfileobj(source, target)


def _finished(folder: Path, only: Collection[str]) -> tuple[tuple[str, ...], list[Path]]:
    """Cells with finished result files, and these files, sorted."""
    results = dict(sorted(open_results(folder).items()))
    known = {"/".join(name.split("/")[:depth]) for name in results for depth in (1, 2, 3)}
    for name in only:
        if name not in known:
            close = did_you_mean(name, known).strip()
            remedy = close or "name a paper, experiment or cell of it"
            problem = f"{folder} has nothing of that name"
            raise UserError(problem, key="--only", value=name, remedy=remedy)
    chosen = [
        (name, cell.path(kind))
        for name, cell in results.items()
        if not only or any(f"{name}/".startswith(f"{each}/") for each in only)
        for kind in reversed(REGISTRIES)
    ]
    finished = [(name, path) for name, path in chosen if path.is_file() and recorded_checksum(path)]
    if not finished:
        raise UserError(
            "nothing in it is finished", file=folder, remedy="run the workflow to its end"
        )
    for name, path in finished:
        _check_link(path, folder)
        _check_link(checksum_path(path), folder)
        results[name].attributes(path.stem)  # pyright: ignore[reportArgumentType]
    return tuple(dict.fromkeys(name for name, _ in finished)), [path for _, path in finished]


def _check_link(path: Path, folder: Path) -> None:
    if not path.resolve().is_relative_to(folder.resolve()):
        raise UserError(f"is a link out of {folder}", file=path, remedy="put the file itself there")


def _figures(folder: Path, packed: Mapping[str, str]) -> tuple[tuple[str, ...], dict[Path, Path]]:
    """Figures that were drawn from packed files only, and their files by name in the archive.

    Args:
        folder: the results folder; its figures are in it, or beside it.
        packed: checksums of the packed result files, by their paths in the folder.

    Raises:
        UserError: a picture is a link out of the folder.
    """
    gallery = figures_folder(folder)
    names, files = [], {}
    for checksum_file in sorted(gallery.rglob("*.sha256")):
        drawn = read_checksums(checksum_file)
        if drawn and drawn.inputs.items() <= packed.items() and is_intact(checksum_file):
            names.append(checksum_file.relative_to(gallery).with_suffix("").as_posix())
            for path in (checksum_file, *(checksum_file.parent / name for name in drawn.files)):
                _check_link(path, gallery)
                files["figures" / path.resolve().relative_to(gallery.resolve())] = path
    return tuple(names), files


def _write_tables(folder: Path, cells: Collection[str], target: Path) -> None:
    """Writes the parts of the tables of claims and metrics about some cells.

    Raises:
        UserError: a table is damaged, or a link out of the folder.
    """
    for name in ("claims.json", "findings.json", "metrics.csv"):
        _check_link(folder / name, folder)
    if folder.joinpath("claims.json").exists():
        claims, findings = read_tables(folder)
        write_tables(_rows_about(claims, cells), _rows_about(findings, cells), target)
    if (metrics := folder / "metrics.csv").exists():
        check_file(metrics)
        identifiers = {tuple(cell.split("/")) for cell in cells}
        with (
            metrics.open(encoding="utf-8", newline="") as table,
            target.joinpath("metrics.csv").open("w", encoding="utf-8", newline="") as part,
        ):
            writer, lines = csv.writer(part, lineterminator="\n"), csv.reader(table)
            writer.writerow(next(lines))
            writer.writerows(line for line in lines if tuple(line[:3]) in identifiers)


def _rows_about(rows: list[R], cells: Collection[str]) -> list[R]:
    """Statements that use these cells only; a statement without cells belongs to its paper."""
    papers = _papers(cells)
    return [
        row
        for row in rows
        if row.paper in papers
        and all(cell in cells for measured in row.metrics.values() for cell in measured)
    ]


def _papers(cells: Collection[str]) -> list[str]:
    return sorted({cell.partition("/")[0] for cell in cells})


def _write_checksums(folder: Path, packed: Mapping[str, str], target: Path) -> None:
    """Writes the checksum files of the packed tables; a complete table keeps the original one."""
    for checksum_file in (folder / "claims.sha256", folder / "metrics.csv.sha256"):
        table = read_checksums(checksum_file)
        if table is None:
            continue
        existing = [name for name in table.files if (target / name).is_file()]
        files = {name: file_sha256(target / name) for name in existing}
        inputs = {name: digest for name, digest in table.inputs.items() if name in packed}
        if files == table.files and inputs == table.inputs:
            shutil.copyfile(checksum_file, target / checksum_file.name)
        elif files:
            Checksums("", files, inputs).write(target / checksum_file.name)


def _write_readme(cells: Collection[str], kind: str, target: Path) -> None:
    about = README.format(
        version=version("neuralrace"),
        count=len(cells),
        papers=", ".join(_papers(cells)),
        name=NAME,
        cell=next(iter(cells)),
        kind=kind,
    )
    target.joinpath("README.md").write_text(about, encoding="utf-8")
