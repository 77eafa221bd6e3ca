"""One file of everything that is finished in a results folder, to pass on.

A zip archive with one folder, `results`, that opens elsewhere like any results folder. The same
results give the same bytes: names are sorted and dates are fixed.
"""

import csv
import zipfile
from collections.abc import Callable, Collection, Mapping
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from neuralrace.claims.judge import Row
from neuralrace.claims.table import read_tables, write_tables
from neuralrace.cli.archive import NAME, add
from neuralrace.config.variables import REGISTRIES
from neuralrace.errors import UserError, did_you_mean
from neuralrace.results.atomic import replacing
from neuralrace.results.cells import figures_folder, open_results
from neuralrace.results.checksums import (
    Checksums,
    check_checksum,
    checksum_path,
    file_sha256,
    is_intact,
    read_checksums,
    recorded_checksum,
    recorded_checksums,
)

R = TypeVar("R", bound=Row)
README = """\
# Results of neuralrace {version}

Cells, in `<paper>/<experiment>/<cell>/`: {count} of {papers}.

Each has up to three NetCDF files: `trajectory.nc`, what training recorded; `theory.nc`, what was
solved for the same runs; `metrics.nc`, what was measured in both. Every file names its
specification and the versions that it was made with. `claims.md` and `findings.md` tell what came
out, where that was judged; `figures` has the figures that were drawn from these cells alone.

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
| compare with results of your own | `neuralrace compare {name} FOLDER` |
| put together with results of your own | `neuralrace merge {name} --into FOLDER` |
"""


def export(
    folder: Path,
    file: Path,
    only: Collection[str] = (),
    force: bool = False,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Packs what is finished in a results folder into one archive, which is whole or absent.

    A result file is finished once it is sealed. Tables of claims, findings and metrics tell of the
    packed cells alone, and figures go along that were drawn from these, as their seals say. Logs,
    checkpoints, robustness runs and smoke runs are left out.

    Args:
        folder: of results.
        file: the archive to write, `.zip`.
        only: papers, experiments `paper/experiment` or cells; everything when empty.
        force: whether to replace a file that is there.
        report: takes bytes that are done, and all that there are.

    Returns:
        Identifiers of the packed cells, and names of the packed figures, sorted.

    Raises:
        UserError: nothing is finished, an unknown name, a damaged file or one of another cell, a
            link out of the folder, or a file that cannot be written or is there already.
    """
    if file.suffix != ".zip":
        raise UserError(f"{file}: is no name of an archive; end it in .zip")
    if file.is_dir():
        raise UserError(f"{file}: is a folder; name a file to write")
    if file.exists() and not force:
        raise UserError(f"{file}: is there already; use another name, or --force to replace it")
    cells, files = _finished(folder, only)
    sources = {
        path.relative_to(folder): path for each in files for path in (each, checksum_path(each))
    }
    packed = recorded_checksums(folder, (path.relative_to(folder).as_posix() for path in files))
    figures, pictures = _figures(folder, packed)
    sources |= pictures
    with TemporaryDirectory() as made:
        _tell(folder, cells, files[0].stem, Path(made))
        _seal(folder, packed, Path(made))
        sources |= {path.relative_to(made): path for path in Path(made).iterdir()}
        total, done = sum(path.stat().st_size for path in sources.values()), 0
        with replacing(file) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            for name, path in sorted(sources.items()):
                for size in add(path, name.as_posix(), archive):
                    done += size
                    report(done, total)
    return cells, figures


def _finished(folder: Path, only: Collection[str]) -> tuple[tuple[str, ...], list[Path]]:
    """Cells with sealed result files, and these files, sorted."""
    results = dict(sorted(open_results(folder).items()))
    known = {"/".join(name.split("/")[:depth]) for name in results for depth in (1, 2, 3)}
    for name in only:
        if name not in known:
            told = did_you_mean(name, known) or "name a paper, experiment or cell of it"
            raise UserError(f"--only: {name!r}: {folder} has nothing of that name; {told}")
    chosen = [
        (name, cell.path(kind))
        for name, cell in results.items()
        if not only or any(f"{name}/".startswith(f"{each}/") for each in only)
        for kind in reversed(REGISTRIES)
    ]
    found = [(name, path) for name, path in chosen if path.is_file() and recorded_checksum(path)]
    if not found:
        raise UserError(f"{folder}: nothing in it is finished; run the workflow to its end")
    for name, path in found:
        _refuse_link(path, folder)
        _refuse_link(checksum_path(path), folder)
        results[name].attributes(path.stem)  # pyright: ignore[reportArgumentType]
    return tuple(dict.fromkeys(name for name, _ in found)), [path for _, path in found]


def _refuse_link(path: Path, folder: Path) -> None:
    if not path.resolve().is_relative_to(folder.resolve()):
        raise UserError(f"{path}: is a link out of {folder}; put the file itself there")


def _figures(folder: Path, packed: Mapping[str, str]) -> tuple[tuple[str, ...], dict[Path, Path]]:
    """Figures as they were drawn from what is packed, and their files by name in the archive.

    Args:
        folder: of results; its figures are in it, or beside it.
        packed: checksums of the result files, by their paths in the folder.

    Raises:
        UserError: a picture is a link to elsewhere.
    """
    drawn_in = figures_folder(folder)
    names, files = [], {}
    for place in sorted(drawn_in.rglob("*.sha256")):
        drawn = read_checksums(place)
        if drawn and drawn.inputs.items() <= packed.items() and is_intact(place):
            names.append(place.relative_to(drawn_in).with_suffix("").as_posix())
            for path in (place, *(place.parent / name for name in drawn.files)):
                _refuse_link(path, drawn_in)
                files["figures" / path.resolve().relative_to(drawn_in.resolve())] = path
    return tuple(names), files


def _seal(folder: Path, packed: Mapping[str, str], made: Path) -> None:
    """Writes the checksum files of the tables that go along, with those inputs that do.

    A table of which nothing was left out keeps its checksum file.
    """
    for place in (folder / "claims.sha256", folder / "metrics.csv.sha256"):
        table = read_checksums(place)
        if table is None:
            continue
        files = {name: file_sha256(made / name) for name in table.files if (made / name).is_file()}
        inputs = {name: digest for name, digest in table.inputs.items() if name in packed}
        if files == table.files and inputs == table.inputs:
            made.joinpath(place.name).write_bytes(place.read_bytes())
        elif files:
            Checksums("", files, inputs).write(made / place.name)


def _tell(folder: Path, cells: Collection[str], kind: str, made: Path) -> None:
    """Writes what is told of some cells: tables, where there are any, and what the archive is.

    Raises:
        UserError: a table that is not as it was written, or a link to elsewhere.
    """
    papers = sorted({cell.partition("/")[0] for cell in cells})
    for name in ("claims.json", "findings.json", "metrics.csv"):
        _refuse_link(folder / name, folder)
    if folder.joinpath("claims.json").exists():
        claims, findings = read_tables(folder)
        write_tables(_about(claims, cells, papers), _about(findings, cells, papers), made)
    if (metrics := folder / "metrics.csv").exists():
        check_checksum(metrics, file_sha256(metrics))
        places = {tuple(cell.split("/")) for cell in cells}
        with (
            metrics.open(encoding="utf-8", newline="") as table,
            made.joinpath("metrics.csv").open("w", encoding="utf-8", newline="") as part,
        ):
            writer, lines = csv.writer(part, lineterminator="\n"), csv.reader(table)
            writer.writerow(next(lines))
            writer.writerows(line for line in lines if tuple(line[:3]) in places)
    about = README.format(
        version=version("neuralrace"),
        count=len(cells),
        papers=", ".join(papers),
        name=NAME,
        cell=next(iter(cells)),
        kind=kind,
    )
    made.joinpath("README.md").write_text(about, encoding="utf-8")


def _about(rows: list[R], cells: Collection[str], papers: Collection[str]) -> list[R]:
    """Statements that rest on some cells alone; one that rests on none belongs to its paper."""
    return [
        row
        for row in rows
        if row.paper in papers
        and all(cell in cells for measured in row.metrics.values() for cell in measured)
    ]
