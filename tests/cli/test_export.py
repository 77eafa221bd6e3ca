"""Export of results: content of the archive, opening it elsewhere, and refusals."""

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from claims_folder import ClaimsFolder, claim, finding, measure, unassessed
from neuralrace.claims.judge import judge_papers
from neuralrace.claims.table import read_tables, write_tables
from neuralrace.cli.archive import open_archive
from neuralrace.cli.export import export
from neuralrace.cli.main import main
from neuralrace.errors import UserError
from neuralrace.results.analysis import to_frame
from neuralrace.results.cells import open_results
from neuralrace.results.checksums import (
    Checksums,
    checksum_path,
    file_sha256,
    read_checksums,
    recorded_checksums,
)

CELLS = ("deep_linear/e/main", "deep_linear/f/seeds-1", "deep_linear/f/seeds-2", "other/e/main")
TABLES = {f"results/{name}" for name in ("claims.json", "claims.md", "claims.csv", "findings.json")}
TABLES |= {f"results/{name}" for name in ("findings.md", "findings.csv", "metrics.csv")}
TABLES |= {f"results/{name}" for name in ("claims.svg", "claims/deep_linear.md")}
CHECKSUMS = {f"results/{name}" for name in ("claims.sha256", "metrics.csv.sha256")}


def packed_files(cells):
    """Names of the result files of cells in an archive, with their checksum files."""
    return {f"results/{cell}/metrics.nc{end}" for cell in cells for end in ("", ".sha256")}


def read(archive):
    """Content of an archive by name."""
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A results folder with four cells, judged claims, a table, and files that are not packed."""
    monkeypatch.chdir(tmp_path)
    place = ClaimsFolder(tmp_path)
    for number, cell in enumerate(CELLS):
        place.per_seed(cell, np.arange(1.0, 4.0) + number, {"precision": "float64", "n": number})
    file = place.write(
        claim(measure=measure("deep_linear/e/*"), value=2.0, tolerance=3.0),
        unassessed(id="not-assessed"),
        findings=[finding(id="two", measure=measure("deep_linear/f/*", reduce="mean"))],
    )
    write_tables(*judge_papers([file], place.results, place.cells), place.results)
    to_frame(place.results).to_csv(place.results / "metrics.csv", index=False)
    inputs = recorded_checksums(place.results, [f"{cell}/metrics.nc" for cell in CELLS])
    for name in ("claims.sha256", "metrics.csv.sha256"):
        tables = [
            table.removeprefix("results/")
            for table in TABLES
            if ("metrics" in table) == ("metrics" in name)
        ]
        digests = {table: file_sha256(place.results / table) for table in tables}
        Checksums("fingerprint", digests, inputs).write(place.results / name)
    for left in (
        "logs/a.log",
        "checkpoints/a/b/c/whole.npz",
        "variants/blind/a/b/fresh/c/metrics.nc",
    ):
        path = place.results / left
        path.parent.mkdir(parents=True)
        path.write_text("left behind")
    return Path("results")


def test_all_finished_files_are_packed(results):
    assert export(results, Path("all.zip")) == (CELLS, ())
    files = read("all.zip")
    assert list(files) == sorted(files)
    assert set(files) == packed_files(CELLS) | TABLES | CHECKSUMS | {"results/README.md"}
    for name in packed_files(CELLS) | TABLES | CHECKSUMS:
        assert files[name] == Path(name).read_bytes()
    about = files["results/README.md"].decode()
    assert ": 4 of deep_linear, other." in about
    assert 'results["deep_linear/e/main"].metrics' in about
    with zipfile.ZipFile("all.zip") as opened:
        stored = {e.filename for e in opened.infolist() if e.compress_type == zipfile.ZIP_STORED}
    assert stored == {name for name in files if name.endswith(".nc")}


def test_the_same_results_give_the_same_bytes(results):
    export(results, Path("one.zip"))
    for path in results.rglob("*"):
        path.touch()
    export(results, Path("other.zip"))
    assert Path("one.zip").read_bytes() == Path("other.zip").read_bytes()


def test_archive_opens_elsewhere(results, tmp_path, monkeypatch, capsys):
    here = open_results(results)["deep_linear/e/main"].metrics
    assert main(["export", "to/all.zip"]) == 0
    assert capsys.readouterr().out.startswith("to/all.zip holds 4 cells, 0 figures, 0.")
    elsewhere = tmp_path / "elsewhere"
    with zipfile.ZipFile("to/all.zip") as archive:
        archive.extractall(elsewhere)
    monkeypatch.chdir(elsewhere)
    xr.testing.assert_identical(open_results()["deep_linear/e/main"].metrics, here)
    for command in (
        ["verify"],
        ["claims", "a-claim"],
        ["compare", "results", str(tmp_path / results)],
    ):
        assert main(command) == 0
    printed = capsys.readouterr().out
    assert "4 files of cells and 2 of figures and tables verified" in printed
    assert "statement: Something is so." in printed
    assert "4 metrics of 4 cells: 4 equal to the bit" in printed


@pytest.mark.parametrize(
    ("only", "cells", "statements"),
    [
        (["deep_linear"], CELLS[:3], ["a-claim", "not-assessed", "two"]),
        (["deep_linear/f"], CELLS[1:3], ["not-assessed", "two"]),
        (["deep_linear/f/seeds-2", "deep_linear/e"], CELLS[::2], ["a-claim", "not-assessed"]),
        (["other"], CELLS[3:], []),
    ],
)
def test_tables_of_a_part_are_about_its_cells_only(results, tmp_path, only, cells, statements):
    assert export(results, Path("part.zip"), only)[0] == tuple(c for c in CELLS if c in cells)
    files = read("part.zip")
    assert packed_files(CELLS) & set(files) == packed_files(cells)
    with zipfile.ZipFile("part.zip") as archive:
        archive.extractall("part")
    assert main(["verify", "part/results"]) == 0
    ids = [row.id for rows in read_tables(Path("part/results")) for row in rows]
    assert sorted(ids) == statements
    table = to_frame(Path("part/results"))
    lines = Path("part/results/metrics.csv").read_text().splitlines()
    assert len(lines) == 1 + len(table) == 1 + 3 * len(cells)


def test_unfinished_files_are_left_out(results):
    checksum_path(results / CELLS[0] / "metrics.nc").unlink()
    for name in TABLES | CHECKSUMS:
        Path(name).unlink()
    assert export(results, Path("all.zip")) == (CELLS[1:], ())
    assert set(read("all.zip")) == packed_files(CELLS[1:]) | {"results/README.md"}


PICTURES = ("paper/one.png", "paper/one.pdf", "slim/paper/one.png")


def draw(gallery, cells):
    """Writes a figure with a checksum file, as drawn from the metrics of some cells."""
    for name in PICTURES:
        (gallery / name).parent.mkdir(parents=True, exist_ok=True)
        (gallery / name).write_bytes(b"a picture")
    digest = file_sha256(gallery / PICTURES[0])
    names = ("one.png", "one.pdf", "../slim/paper/one.png")
    inputs = recorded_checksums(Path("results"), [f"{cell}/metrics.nc" for cell in cells])
    Checksums("fingerprint", dict.fromkeys(names, digest), inputs).write(
        gallery / "paper/one.sha256"
    )


@pytest.mark.parametrize("gallery", [Path("figures"), Path("results/figures")])
def test_figures_of_packed_cells_are_packed(results, gallery):
    draw(gallery, CELLS[:2])
    packed = {f"results/figures/{name}" for name in (*PICTURES, "paper/one.sha256")}
    assert export(results, Path("all.zip"))[1] == ("paper/one",)
    assert packed <= set(read("all.zip"))
    open_archive(Path("all.zip"))
    with zipfile.ZipFile("all.zip") as archive:
        archive.extractall("elsewhere")
    assert main(["verify", "elsewhere/results"]) == 0
    assert export(results, Path("part.zip"), ["deep_linear/e"])[1] == ()
    assert not packed & set(read("part.zip"))
    (gallery / "slim/paper/one.png").write_bytes(b"edited")
    assert export(results, Path("edited.zip"))[1] == ()


def test_part_of_a_table_has_a_new_checksum_file(results):
    export(results, Path("part.zip"), ["deep_linear"])
    packed = read("part.zip")
    with zipfile.ZipFile("part.zip") as archive:
        archive.extractall("part")
    for name in CHECKSUMS:
        assert packed[name] != Path(name).read_bytes()
        part = read_checksums(Path("part", name))
        whole = read_checksums(Path(name))
        assert set(part.files) == set(whole.files)
        assert part.inputs.items() < whole.inputs.items()


@pytest.mark.parametrize("name", ["claims.json", "findings.json", "metrics.csv"])
def test_edited_table_is_refused(results, name):
    text = (results / name).read_text()
    (results / name).write_text(text.replace("1", "2", 1))
    with pytest.raises(UserError, match=f"^results/{name}: is damaged"):
        export(results, Path("all.zip"))
    assert not Path("all.zip").exists()


def test_cell_in_the_folder_of_another_is_refused(results):
    shutil.copytree(results / CELLS[1], results / CELLS[2], dirs_exist_ok=True)
    with pytest.raises(UserError, match=f"is the metrics of {CELLS[1]}, not of {CELLS[2]}"):
        export(results, Path("all.zip"))


def test_existing_file_is_replaced_only_with_force(results):
    Path("all.zip").write_text("mine")
    with pytest.raises(UserError, match=r"^all.zip: exists already; use another name, or --force"):
        export(results, Path("all.zip"))
    assert Path("all.zip").read_text() == "mine"
    assert main(["export", str(results), "all.zip", "--force"]) == 0
    assert zipfile.is_zipfile("all.zip")


def test_progress_is_reported(results):
    reported = []
    export(results, Path("all.zip"), report=lambda *counts: reported.append(counts))
    done, total = zip(*reported, strict=True)
    assert list(done) == sorted(done)
    assert set(total) == {done[-1]}


def damage(results):
    with (results / CELLS[0] / "metrics.nc").open("ab") as file:
        file.write(b"more")


def link(path):
    outside = Path("outside")
    path.rename(outside)
    path.symlink_to(outside.resolve())


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (damage, "metrics.nc: is damaged: its content does not have the checksum"),
        (
            lambda r: [checksum_path(r / c / "metrics.nc").unlink() for c in CELLS],
            "is finished; run",
        ),
        (lambda r: link(r / CELLS[0] / "metrics.nc"), "metrics.nc: is a link out of results; put"),
        (lambda r: link(r / "deep_linear"), "metrics.nc: is a link out of results; put"),
        (lambda r: link(r / "claims.json"), "claims.json: is a link out of results; put"),
        (lambda r: (r / "claims.json").write_text("["), "claims.json: is damaged"),
    ],
)
def test_refused_export_leaves_no_archive(results, spoil, problem):
    spoil(results)
    with pytest.raises(UserError, match=problem):
        export(results, Path("all.zip"))
    assert list(Path().glob("*all.zip*")) == []
