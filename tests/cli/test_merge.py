"""Results put together: what is taken from where, and what is refused as a whole."""

import json
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
from neuralrace.results.checksums import checksum_path, fingerprint, recorded_checksums
from neuralrace.results.files import write_result
from neuralrace.results.lock import LOCK, locked
from neuralrace.results.schema import SCHEMA_VERSION

KINDS = ("trajectory", "theory", "metrics")
A, B, C = "paper/one/main", "paper/two/rate-0.1", "paper/two/rate-0.2"


def cell(folder, name, kinds=KINDS, place="", value=1.0, code="c" * 64, device="cpu", **spec):
    """Small files of a cell, as if from a specification, code and device."""
    parts = zip(("paper", "experiment", "cell"), name.split("/"), strict=True)
    attrs = dict(parts) | {"spec": json.dumps({"steps": 400, "training": spec}, sort_keys=True)}
    attrs |= {"spec_sha256": fingerprint(attrs["spec"]), "code_sha256": code}
    attrs |= {"versions": "python 3.11"}
    attrs |= {"device": device, "schema": SCHEMA_VERSION}
    values = (("init_scale", "seed", "time"), np.full((1, 2, 3), value))
    for kind in kinds:
        described = {"long_name": f"loss of {kind}", "units": "1"}
        dataset = xr.Dataset({"loss": (*values, described)}, attrs=attrs | {"kind": kind})
        path = Path(folder, place or name, f"{kind}.nc")
        others = [path.with_name(f"{other}.nc") for other in KINDS[:-1] if kind == "metrics"]
        inputs = recorded_checksums(
            Path(folder), [f"{place or name}/{other.name}" for other in others]
        )
        write_result(dataset, path, fingerprint(name, attrs["spec_sha256"], code), inputs)


def files(folder):
    """Content of all files of a folder but its lock, by name."""
    found = (path for path in Path(folder).rglob("*") if path.is_file() and path.name != LOCK)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def two():
    """Two folders that share a cell."""
    cell("anna", A)
    cell("anna", B)
    cell("ben", B)
    cell("ben", C, device="gpu")
    return [Path("anna"), Path("ben")]


def refused(sources, into="all", **more):
    """The lines of a refusal, after which there is what was there before."""
    before = files(".")
    with pytest.raises(UserError) as told:
        merge([Path(each) for each in sources], Path(into), **more)
    assert files(".") == before
    return str(told.value).splitlines()


@pytest.mark.parametrize("packed", [(), ("anna",), ("anna", "ben")])
def test_cells_of_all_sources_are_there_afterwards(two, packed):
    wanted = files("anna") | files("ben")
    for name in packed:
        export(Path(name), Path(f"{name}.zip"))
        shutil.rmtree(name)
    sources = [Path(f"{each}.zip") if each.name in packed else each for each in two]
    assert merge(sources, Path("all")) == {Path("all"): 0, sources[0]: 2, sources[1]: 1}
    assert files("all") == wanted
    assert main(["verify", "all"]) == 0
    assert list(open_results("all")) == [A, B, C]


def test_what_is_there_stays_and_is_added_to(two):
    merge([Path("anna")], Path("all"))
    dates = {path: path.stat().st_mtime_ns for path in Path("all").rglob("*.nc")}
    assert merge(two, Path("all")) == {Path("all"): 2, Path("anna"): 0, Path("ben"): 1}
    assert files("all") == files("anna") | files("ben")
    assert dates.items() <= {p: p.stat().st_mtime_ns for p in Path("all").rglob("*.nc")}.items()
    assert merge([Path("ben"), Path("all")], Path("all")) == {Path("all"): 3, Path("ben"): 0}


def test_the_fullest_copy_counts():
    cell("anna", A, KINDS[:1])
    cell("ben", A)
    merge([Path("anna"), Path("ben")], Path("all"))
    assert files("all") == files("ben")
    assert merge([Path("ben")], Path("anna")) == {Path("anna"): 0, Path("ben"): 1}
    assert files("anna") == files("ben")


def test_files_of_two_sources_are_never_put_beside_each_other():
    cell("anna", A, ("trajectory", "theory"))
    cell("ben", A, ("trajectory", "metrics"))
    merge([Path("ben")], Path("anna"))
    assert {path.stem for path in Path("anna", A).glob("*.nc")} == {"trajectory", "theory"}


def test_what_is_unfinished_is_left_out_and_made_good(two):
    unsealed = Path("ben", C, "metrics.nc")
    checksum_path(unsealed).unlink()
    merge(two, Path("all"))
    assert not Path("all", C, "metrics.nc").exists()
    torn = Path("all", A, "metrics.nc")
    checksum_path(torn).unlink()  # as after a kill between the two
    merge(two, Path("all"))
    assert torn.read_bytes() == Path("anna", A, "metrics.nc").read_bytes()
    assert checksum_path(torn).is_file()


def test_a_file_that_is_no_result_is_not_replaced(two):
    path = Path("all", A, "metrics.nc")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"of somebody else")
    (told,) = refused(two)
    assert told.startswith(f"{path}: is there already, without a sound checksum file beside it")


def test_a_folder_in_which_a_run_is_at_work_is_refused(two):
    with locked(Path("all")):
        before = files(".")
        with pytest.raises(UserError, match="another run is at work in this folder"):
            merge(two, Path("all"))
        assert files(".") == before


def test_conflicts_are_refused_with_a_list(two):
    cell("carl", A, steps=1, batch=5)
    cell("carl", B, code="d" * 64)
    cell("carl", C, value=2.0)
    told = refused([*two, "carl"])
    assert told[0] == "12 conflicts; nothing was written"
    assert told[1:3] == [
        f"- {A}: trajectory: training.batch: absent in anna; 5 in carl",
        f"- {A}: trajectory: training.steps: absent in anna; 1 in carl",
    ]
    assert f"- {B}: metrics: code: {'c' * 12} in anna, ben; {'d' * 12} in carl" in told
    values = [line for line in told if line.startswith(f"- {C}: metrics: values alone: ")]
    assert "(python 3.11, gpu) in ben; " in values[0]
    assert "(python 3.11, cpu) in carl" in values[0]
    assert told[-1].endswith("--prefer SOURCE says whose cells count.")


def test_a_conflict_with_what_is_there_is_refused(two):
    cell("all", A, steps=1)
    assert refused(two)[1] == f"- {A}: trajectory: training.steps: 1 in all; absent in anna"


def test_where_values_alone_differ_a_source_can_be_preferred(two):
    cell("carl", C, value=2.0)
    for path in Path("carl", C).glob("theory*"):
        path.unlink()
    cell("carl", A)
    counts = merge([*two, Path("carl")], Path("all"), [Path("carl")])
    assert counts == {Path("all"): 0, Path("anna"): 2, Path("ben"): 0, Path("carl"): 1}
    assert {path.stem for path in Path("all", C).glob("*.nc")} == {"trajectory", "metrics"}
    assert files("all").items() >= {n: c for n, c in files("carl").items() if C in n}.items()
    # once more, as after a merge that was stopped
    Path("all", C, "metrics.nc.sha256").unlink()
    assert merge([*two, Path("carl")], Path("all"), [Path("carl")])[Path("carl")] == 1
    assert refused([*two, "carl"], prefer=[Path("anna")])[0].startswith("2 conflicts")
    assert "--into" in refused([*two, "carl"], prefer=[Path("ben")])[1]
    assert merge([*two, Path("carl")], Path("all"), [Path("all")])[Path("all")] == 3


def test_a_preference_does_not_count_for_specifications(two):
    cell("carl", A, steps=1)
    assert refused([*two, "carl"], prefer=[Path("carl")])[0].startswith("3 conflicts")
    assert refused(two, prefer=[Path("carl")])[0].startswith("--prefer carl: is none of the so")


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda: flip(Path("ben", C, "theory.nc")), f"{C}/theory.nc: is damaged: its content"),
        (lambda: cell("ben", A, KINDS[:1], place=C), f"{C}/trajectory.nc: it is a file of {A}"),
        (
            lambda: shutil.copy(Path("ben", C, "theory.nc"), Path("ben", C, "metrics.nc")),
            "checksum",
        ),
        (
            lambda: cell("ben", C, KINDS[:1], value=2.0),
            f"{C}/metrics.nc: was made from another trajectory.nc than it has",
        ),
        (
            lambda: checksum_path(Path("ben", C, "theory.nc")).write_text("?"),
            "its checksum theory.nc.sha256 is missing",
        ),
    ],
)
def test_files_that_cannot_be_used_are_named(two, spoil, said):
    spoil()
    told = refused(two)
    assert told[0] == "1 files that cannot be used; nothing was written"
    assert told[1].startswith("- ben: ")
    assert said in told[1]


def test_results_of_another_version_are_named(two, monkeypatch):
    monkeypatch.setattr("neuralrace.results.schema.SCHEMA_VERSION", "4")
    told = refused(two)
    assert told[0].startswith("12 files")
    assert told[1] == f"- anna: {A}/trajectory.nc: has schema '3', this version reads '4'"


def test_no_room_is_told_before_anything_is_written(two, monkeypatch):
    usage = shutil.disk_usage(".")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert refused(two)[0].startswith("all: needs 0 MB, and its disk has 0 MB; nothing was written")


def test_a_file_that_changes_meanwhile_is_refused(two):
    def report(what, done, total):
        if what == "checked" and done == total:
            flip(Path("ben", C, "metrics.nc"))

    with pytest.raises(UserError, match=r"ben: .*metrics.nc: has changed meanwhile; merge again"):
        merge(two, Path("all"), report=report)
    assert not Path("all", C, "metrics.nc").exists()


def test_progress_is_told(two):
    told = []
    merge(two, Path("all"), report=lambda *line: told.append(line))
    for what in ("checked", "copied"):
        done, total = zip(*(line[1:] for line in told if line[0] == what), strict=True)
        assert list(done) == sorted(done)
        assert set(total) == {done[-1]}


def test_the_command_tells_what_is_from_where(two, capsys):
    assert main(["merge", "anna", "ben", "--into", "all"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("all holds 3 cells: 2 from anna, 1 from ben, 0 were there\n")
    assert "snakemake --cores all claims metrics" in said
    cell("carl", C, value=2.0)
    assert main(["merge", "carl", "--into", "all"]) == 1
    assert capsys.readouterr().err.startswith("error: 3 conflicts; nothing was written\n- ")
