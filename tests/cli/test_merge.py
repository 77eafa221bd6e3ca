"""Merging of results: sources, conflicts, and refusals that leave everything unchanged."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from neuralrace.cli.export import export
from neuralrace.cli.main import main
from neuralrace.cli.merge import merge
from neuralrace.errors import UserError
from neuralrace.results.cells import open_results
from neuralrace.results.checksums import checksum_path, recorded_checksums
from neuralrace.results.files import write_result
from neuralrace.results.lock import LOCK, locked
from result_files import DESCRIBED, file_attributes, file_fingerprint

KINDS = ("trajectory", "theory", "metrics")
A, B, C = "paper/one/main", "paper/two/rate-0.1", "paper/two/rate-0.2"


def write_cell(folder, name, kinds=KINDS, place="", value=1.0, code="c" * 64, device="cpu", **spec):
    """Writes small files of a cell with a certain specification, code and device."""
    values = (("init_scale", "seed", "time"), np.full((1, 2, 3), value), DESCRIBED)
    for kind in kinds:
        full_spec = {"steps": 400, "training": spec}
        attrs = file_attributes(name, kind, full_spec, code_sha256=code, device=device)
        path = Path(folder, place or name, f"{kind}.nc")
        others = [f"{place or name}/{other}.nc" for other in KINDS[:-1] if kind == "metrics"]
        inputs = recorded_checksums(Path(folder), others)
        write_result(
            xr.Dataset({"loss": values}, attrs=attrs), path, file_fingerprint(attrs), inputs
        )


def files(folder):
    """Content of all files of a folder by name, without its lock."""
    paths = (path for path in Path(folder).rglob("*") if path.is_file() and path.name != LOCK)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def two():
    """Two folders, "anna" with cells A and B, "ben" with B and C."""
    write_cell("anna", A)
    write_cell("anna", B)
    write_cell("ben", B)
    write_cell("ben", C, device="gpu")
    return [Path("anna"), Path("ben")]


def refused(sources, into="all", **more):
    """Lines of the message of a refused merge, which leaves all files unchanged."""
    before = files(".")
    with pytest.raises(UserError) as error:
        merge([Path(source) for source in sources], Path(into), **more)
    assert files(".") == before
    return str(error.value).splitlines()


@pytest.mark.parametrize("packed", [(), ("anna",), ("anna", "ben")])
def test_cells_of_all_sources_are_merged(two, packed):
    expected = files("anna") | files("ben")
    for name in packed:
        export(Path(name), Path(f"{name}.zip"))
        shutil.rmtree(name)
    sources = [Path(f"{each}.zip") if each.name in packed else each for each in two]
    assert merge(sources, Path("all")) == {Path("all"): 0, sources[0]: 2, sources[1]: 1}
    assert files("all") == expected
    assert main(["verify", "all"]) == 0
    assert list(open_results("all")) == [A, B, C]


def test_existing_cells_stay(two):
    merge([Path("anna")], Path("all"))
    dates = {path: path.stat().st_mtime_ns for path in Path("all").rglob("*.nc")}
    assert merge(two, Path("all")) == {Path("all"): 2, Path("anna"): 0, Path("ben"): 1}
    assert files("all") == files("anna") | files("ben")
    assert dates.items() <= {p: p.stat().st_mtime_ns for p in Path("all").rglob("*.nc")}.items()
    assert merge([Path("ben"), Path("all")], Path("all")) == {Path("all"): 3, Path("ben"): 0}


def test_most_complete_copy_of_a_cell_is_chosen():
    write_cell("anna", A, KINDS[:1])
    write_cell("ben", A)
    merge([Path("anna"), Path("ben")], Path("all"))
    assert files("all") == files("ben")
    assert merge([Path("ben")], Path("anna")) == {Path("anna"): 0, Path("ben"): 1}
    assert files("anna") == files("ben")


def test_files_of_a_cell_come_from_one_source():
    write_cell("anna", A, ("trajectory", "theory"))
    write_cell("ben", A, ("trajectory", "metrics"))
    merge([Path("ben")], Path("anna"))
    assert {path.stem for path in Path("anna", A).glob("*.nc")} == {"trajectory", "theory"}


def test_unfinished_files_are_left_out_and_replaced(two):
    checksum_path(Path("ben", C, "metrics.nc")).unlink()
    merge(two, Path("all"))
    assert not Path("all", C, "metrics.nc").exists()
    torn = Path("all", A, "metrics.nc")
    checksum_path(torn).unlink()  # as after a kill between the two
    merge(two, Path("all"))
    assert torn.read_bytes() == Path("anna", A, "metrics.nc").read_bytes()
    assert checksum_path(torn).is_file()


def test_file_that_is_no_result_is_not_replaced(two):
    path = Path("all", A, "metrics.nc")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"of somebody else")
    (line,) = refused(two)
    assert line.startswith(f"{path}: exists already without a sound checksum file")


def test_folder_with_a_running_workflow_is_refused(two):
    with locked(Path("all")):
        before = files(".")
        with pytest.raises(UserError, match="another run is at work in this folder"):
            merge(two, Path("all"))
        assert files(".") == before


def test_conflicts_are_listed(two):
    write_cell("carl", A, steps=1, batch=5)
    write_cell("carl", B, code="d" * 64)
    write_cell("carl", C, value=2.0)
    lines = refused([*two, "carl"])
    assert lines[0] == "12 conflicts; nothing was written"
    assert lines[1:3] == [
        f"- {A}: trajectory: training.batch: absent in anna; 5 in carl",
        f"- {A}: trajectory: training.steps: absent in anna; 1 in carl",
    ]
    assert f"- {B}: metrics: code: {'c' * 12} in anna, ben; {'d' * 12} in carl" in lines
    values = [line for line in lines if line.startswith(f"- {C}: metrics: values alone: ")]
    assert "(python 3.11, gpu) in ben; " in values[0]
    assert "(python 3.11, cpu) in carl" in values[0]
    assert lines[-1].endswith("--prefer SOURCE says whose cells count.")


def test_conflict_with_an_existing_cell_is_refused(two):
    write_cell("all", A, steps=1)
    assert refused(two)[1] == f"- {A}: trajectory: training.steps: 1 in all; absent in anna"


def test_preferred_source_is_used_where_only_values_differ(two):
    write_cell("carl", C, value=2.0)
    for path in Path("carl", C).glob("theory*"):
        path.unlink()
    write_cell("carl", A)
    counts = merge([*two, Path("carl")], Path("all"), [Path("carl")])
    assert counts == {Path("all"): 0, Path("anna"): 2, Path("ben"): 0, Path("carl"): 1}
    assert {path.stem for path in Path("all", C).glob("*.nc")} == {"trajectory", "metrics"}
    assert files("all").items() >= {n: c for n, c in files("carl").items() if C in n}.items()
    # again, as after a merge that was stopped
    Path("all", C, "metrics.nc.sha256").unlink()
    assert merge([*two, Path("carl")], Path("all"), [Path("carl")])[Path("carl")] == 1
    assert refused([*two, "carl"], prefer=[Path("anna")])[0].startswith("2 conflicts")
    assert "--into" in refused([*two, "carl"], prefer=[Path("ben")])[1]
    assert merge([*two, Path("carl")], Path("all"), [Path("all")])[Path("all")] == 3


def test_preference_does_not_hide_other_specifications(two):
    write_cell("carl", A, steps=1)
    assert refused([*two, "carl"], prefer=[Path("carl")])[0].startswith("3 conflicts")
    assert refused(two, prefer=[Path("carl")])[0].startswith("--prefer carl: is none of the so")


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda: flip(Path("ben", C, "theory.nc")), f"{C}/theory.nc: is damaged: its content"),
        (lambda: write_cell("ben", A, KINDS[:1], place=C), f"{C}/trajectory.nc: is a file of {A}"),
        (
            lambda: shutil.copy(Path("ben", C, "theory.nc"), Path("ben", C, "metrics.nc")),
            "checksum",
        ),
        (
            lambda: write_cell("ben", C, KINDS[:1], value=2.0),
            f"{C}/metrics.nc: was made from another trajectory.nc than it has",
        ),
        (
            lambda: checksum_path(Path("ben", C, "theory.nc")).write_text("?"),
            "its checksum theory.nc.sha256 is missing",
        ),
    ],
)
def test_unusable_files_are_listed(two, damage, problem):
    damage()
    lines = refused(two)
    assert lines[0] == "1 unusable file; nothing was written"
    assert lines[1].startswith("- ben: ")
    assert problem in lines[1]


def test_results_of_another_version_are_listed(two, monkeypatch):
    monkeypatch.setattr("neuralrace.results.schema.SCHEMA_VERSION", "4")
    lines = refused(two)
    assert lines[0].startswith("12 unusable files")
    assert lines[1] == f"- anna: {A}/trajectory.nc: has schema '3', this version reads '4'"


def test_full_disk_is_noticed_before_anything_is_written(two, monkeypatch):
    usage = shutil.disk_usage(".")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert refused(two)[0].startswith("all: needs 0 MB, and its disk has 0 MB; nothing was written")


def test_file_that_changes_meanwhile_is_refused(two):
    def report(what, done, total):
        if what == "checked" and done == total:
            flip(Path("ben", C, "metrics.nc"))

    with pytest.raises(UserError, match=r"ben: .*metrics.nc: has changed meanwhile; merge again"):
        merge(two, Path("all"), report=report)
    assert not Path("all", C, "metrics.nc").exists()


def test_progress_is_reported(two):
    reports = []
    merge(two, Path("all"), report=lambda *report: reports.append(report))
    for action in ("checked", "copied"):
        done, total = zip(*(report[1:] for report in reports if report[0] == action), strict=True)
        assert list(done) == sorted(done)
        assert set(total) == {done[-1]}


def test_command_prints_the_number_of_cells_from_each_source(two, capsys):
    assert main(["merge", "anna", "ben", "--into", "all"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("all holds 3 cells: 2 from anna, 1 from ben, 0 already there\n")
    assert "snakemake --cores all claims metrics" in printed
    write_cell("carl", C, value=2.0)
    assert main(["merge", "carl", "--into", "all"]) == 1
    assert capsys.readouterr().err.startswith("error: 3 conflicts; nothing was written\n- ")
