"""Cells of a results folder: reading, selecting, and messages."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from neuralrace.claims.table import claims_table
from neuralrace.config.cell import Cell
from neuralrace.errors import UserError
from neuralrace.results import cells
from neuralrace.results.analysis import combine, open_tree, to_frame
from neuralrace.results.cells import CellResults, Results, open_results
from neuralrace.results.checksums import fingerprint
from neuralrace.results.files import read_result, write_result
from neuralrace.results.trajectory import trajectory_dataset
from warm_python import PYTHON

CELLS = ("alpha/first/a", "alpha/first/b", "beta/second/main")


@pytest.fixture
def folder(ensemble, trajectory, tmp_path):
    """Three cells, the second with another learning rate, and a cell of the smoke run."""
    for cell_id in (*CELLS, "smoke/alpha/first/a"):
        own = ensemble
        if cell_id == CELLS[1]:
            training = ensemble.training.model_copy(update={"learning_rate": 0.025})
            own = ensemble.model_copy(update={"training": training})
        written = trajectory_dataset(cell_id.removeprefix("smoke/"), own, trajectory)
        write_result(written[["loss", "diverged_at"]], tmp_path / cell_id / "trajectory.nc")
    return tmp_path


def test_table_has_a_row_for_every_cell_outside_the_smoke_run(folder):
    results = open_results(folder)
    assert list(results) == list(CELLS)
    columns = results.table[["paper", "experiment", "cell"]]
    assert ["/".join(row) for row in columns.itertuples(index=False)] == list(CELLS)
    assert results.table["folder"].tolist() == [str(folder / cell) for cell in CELLS]


def test_table_has_columns_of_dotted_keys(folder):
    table = open_results(folder).table
    assert table["training.learning_rate"].tolist() == [0.05, 0.025, 0.05]
    assert table["dataset.name"].tolist() == ["modes"] * 3
    assert table["network.bias"].tolist() == [True] * 3
    assert table["network.hidden"].tolist() == [[5]] * 3


def test_selection_is_a_part_and_leaves_the_whole(folder):
    results = open_results(folder)
    alpha = results.select(paper="alpha")
    assert alpha.table["cell"].tolist() == ["a", "b"]
    assert alpha.select(training__learning_rate=0.025).table["cell"].tolist() == ["b"]
    assert results.select(paper="alpha", cell="main").table.empty
    both = results.select(network__hidden=[5], training__learning_rate=0.05)
    assert both.table.index.tolist() == [0, 1]
    assert len(results) == 3


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("alpha/frist", r"did you mean alpha/first\? list\(results\) has the names of all"),
        ("alhpa", r"did you mean alpha\? "),
        ("/", r"list\(results\) has the names"),
        ("alpha/first/c", r"did you mean alpha/first/[ab] or .*list\(results\) has the names"),
        ("gamma", r"list\(results\) has the names of all"),
    ],
)
def test_names_that_no_cell_has_are_refused(folder, name, remedy):
    results = open_results(folder)
    with pytest.raises(UserError, match=rf"results: .*: is no cell .*; {remedy}"):
        results[name]
    assert name not in results  # as in any mapping
    assert results.get(name) is None


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("training__learning_rates", "did you mean training.learning_rate or "),
        ("training_learning_rat", "did you mean training.learning_rate? "),
        ("learning_rate", "did you mean training.learning_rate? "),
        ("colour", "results.table.columns"),
    ],
)
def test_unknown_column_is_refused_with_near_names(folder, name, close):
    with pytest.raises(UserError, match=rf"^{name.replace('__', '.')}: is no column;") as error:
        open_results(folder).select(**{name: 1})
    assert error.value.remedy.startswith(close)
    assert len(str(error.value)) < 200


def test_keys_are_selected_with_dots_or_underscores(folder):
    results = open_results(folder)
    for name in ("training.learning_rate", "training__learning_rate", "training_learning_rate"):
        assert list(results.select(**{name: 0.025})) == [CELLS[1]]
    # both are spelled the same with single underscores
    results.table["training.learning.rate"] = 1
    assert list(results.select(**{"training.learning.rate": 1})) == list(CELLS)
    with pytest.raises(UserError, match=r"stands for several columns; write training__learning_ra"):
        results.select(training_learning_rate=1)


def test_experiments_and_papers_are_parts_of_results(folder):
    results = open_results(folder)
    for name in ("alpha", "alpha/", "alpha/first"):
        assert isinstance(results[name], Results)
        assert list(results[name]) == list(CELLS[:2])


def test_empty_selection_can_be_narrowed(folder):
    nothing = open_results(folder).select(paper="alpha", cell="main")
    assert not nothing.select(cell="a")
    assert repr(nothing).startswith("<Results: 0 cells>")


@pytest.mark.parametrize(
    ("selection", "key", "value", "remedy"),
    [
        ({"paper": "alhpa"}, "paper", "'alhpa'", "did you mean alpha?"),
        ({"training__learning_rate": 1}, "training.learning_rate", "1", "there is 0.05, 0.025"),
        ({"paper": ["alpha", "beta"]}, "paper", "['alpha', 'beta']", "there is alpha, beta"),
    ],
)
def test_value_that_no_cell_has_is_refused(folder, selection, key, value, remedy):
    with pytest.raises(UserError, match="no cell has it") as error:
        open_results(folder).select(**selection)
    assert (error.value.key, error.value.value) == (key, value)
    assert remedy in error.value.remedy


def test_tuples_and_arrays_select_lists(folder):
    results = open_results(folder)
    assert len(results.select(network__hidden=(5,))) == 3
    assert len(results.select(network__hidden=np.array([5]))) == 3


def test_selecting_by_paper_reads_no_file(folder):
    (folder / CELLS[2] / "trajectory.nc").write_bytes(b"nothing")
    assert list(open_results(folder).select(paper="alpha")) == list(CELLS[:2])


def test_results_are_printed_with_counts_of_cells(folder):
    results = open_results(folder)
    lines = repr(results).splitlines()
    assert lines[0] == "<Results: 3 cells>"
    assert [line.split() for line in lines[1:]] == [
        ["paper", "experiment", "cells"], ["alpha", "first", "2"], ["beta", "second", "1"],
    ]  # fmt: skip
    assert "<td>first</td>" in results._repr_html_()
    many = Results(CellResults(f"p/{n}/{cell}", folder) for n in range(30) for cell in "ab")
    assert [line.split() for line in repr(many).splitlines()[1:]] == [
        ["paper", "experiments", "cells"], ["p", "30", "60"],
    ]  # fmt: skip
    papers = Results(CellResults(f"p{n}/e/c", folder) for n in range(30))
    assert len(repr(papers).splitlines()) <= 20
    assert repr(results[CELLS[0]]) == "<CellResults alpha/first/a: trajectory>"
    assert repr(CellResults("a/b/c", folder / "gone")) == "<CellResults a/b/c: no result files>"


def test_cell_reads_a_file_once_and_at_its_first_use(folder, ensemble):
    cell = open_results(folder, [CELLS[1]])[CELLS[1]]
    xr.testing.assert_identical(cell.trajectory, read_result(folder / CELLS[1] / "trajectory.nc"))
    assert cell.trajectory is cell.trajectory
    assert cell.spec.training.learning_rate == 0.025
    assert cell.spec.dataset == ensemble.dataset
    assert cell.theory.sizes == {}, "no solution is configured"
    with pytest.raises(UserError, match=r"metrics\.nc: result file not found"):
        _ = cell.metrics
    with pytest.raises(UserError, match=r"gone/e/a: no result files; run the workflow"):
        _ = open_results(folder, ["gone/e/a"])["gone/e/a"].spec


def test_datasets_in_memory_replace_files(ensemble, dataset):
    spec = Cell.model_validate_json(ensemble.canonical())
    theory = xr.Dataset({"loss": ("solution", [0.0])}, {"solution": ["flow"]})
    cell = CellResults("paper/experiment/main", Path("nowhere"), spec, dataset, theory)
    assert cell.spec is spec
    assert cell.trajectory is dataset
    assert cell.get("theory", "loss", solution="flow") == 0
    with pytest.raises(UserError, match=r"has no solution 'exact'; there is flow"):
        cell.get("theory", "loss", solution="exact")
    assert len(cell.weights()) == 2
    xr.testing.assert_identical(cell.get("trajectory", "loss"), dataset["loss"])


@pytest.mark.parametrize(
    ("kind", "variable", "remedy"),
    [
        ("trajectory", "gram", "run it again"),  # is configured
        ("theory", "initial_mode", "add aligned_modes or .* to its solutions"),
        ("metrics", "nothing", "nothing in metrics gives it"),
    ],
)
def test_missing_variable_is_refused_with_a_remedy(folder, kind, variable, remedy):
    cell = CellResults(CELLS[0], folder / CELLS[0], metrics=xr.Dataset())
    with pytest.raises(UserError, match=rf"{CELLS[0]}: {kind} has no '{variable}'; {remedy}"):
        cell.get(kind, variable)


def test_experiments_have_one_or_several_cells(folder):
    results = open_results(folder)
    assert [cell.name for cell in results.cells("first")] == list(CELLS[:2])
    assert results.cell("second") is results[CELLS[2]]
    with pytest.raises(UserError, match=r"'first' must have one cell here, but it has 2"):
        results.cell("first")
    with pytest.raises(UserError, match=r"no cell of 'third'; add it to experiments in config/"):
        results.cells("third")


def test_variants_have_a_folder_between_experiment_and_label(folder):
    (cell,) = open_results(folder, ["alpha/first/a"], "fresh").values()
    assert cell.name == "alpha/first/a"
    assert cell.path("metrics") == folder / "alpha/first/fresh/a/metrics.nc"


def test_folder_without_results_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"no results found; run `neuralrace"):
        open_results(tmp_path)


def test_damaged_file_is_named(folder):
    damaged = folder / CELLS[1] / "trajectory.nc"
    damaged.write_bytes(damaged.read_bytes()[:-7])
    with pytest.raises(UserError, match=r"alpha/first/b/trajectory\.nc: is damaged"):
        _ = open_results(folder).table


def test_folder_that_cannot_be_read_is_named(folder, monkeypatch):
    closed = next(folder.glob("*/*"))
    iterdir = Path.iterdir

    def refused(path):
        if path == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(UserError, match=r"cannot be read .Permission denied") as error:
        open_results(folder)
    assert error.value.file == str(closed)


def test_specification_of_another_version_is_refused(ensemble, dataset, tmp_path):
    spec = json.loads(dataset.attrs["spec"])
    changed = json.dumps(spec | {"momentum": 0.9})
    other = dataset.assign_attrs(spec=changed, spec_sha256=fingerprint(changed))
    cell = CellResults("a/b/main", tmp_path, trajectory=other)
    (tmp_path / "trajectory.nc").touch()
    with pytest.raises(UserError, match=r"trajectory\.nc: its specification does not fit this"):
        cell.spec  # noqa: B018


def test_file_of_another_cell_is_refused(dataset, tmp_path):
    for name in ("main", "other"):
        write_result(dataset, tmp_path / f"paper/experiment/{name}/trajectory.nc")
    cells = open_results(tmp_path)
    assert cells["paper/experiment/main"].trajectory.sizes == dataset.sizes
    problem = r"other.trajectory\.nc: is the trajectory of paper/experiment/main, not of .*/other"
    with pytest.raises(UserError, match=problem):
        cells["paper/experiment/other"].get("trajectory", "loss")


NO_PATHS = """
import neuralrace as nr
for read in (nr.open_results, nr.open_tree, nr.claims_table):
    for folder in (None, 3, b"results", "a\\0b", ["results"]):
        try:
            read(folder)
        except nr.errors.UserError as error:
            print(error)
"""


def test_value_that_is_no_path_is_refused():
    """In a process of its own, as the tests check types before the functions do."""
    done = PYTHON.run(["-c", "import neuralrace.errors\n" + NO_PATHS])
    assert done.stdout.count(": give the path of a results folder\n") == 15, done.stderr
    assert "folder: None: give" in done.stdout


@pytest.mark.parametrize("read", [open_results, open_tree, to_frame, combine])
def test_folder_that_holds_other_things_ends_in_one_message(read, tmp_path, monkeypatch):
    (tmp_path / "one/two").mkdir(parents=True)
    for number in range(6):
        (tmp_path / f"one/two/{number}").mkdir()
    monkeypatch.setattr(cells, "MOST_CELLS", 5)
    with pytest.raises(UserError, match="has more than 5 folders in it; name a results folder"):
        read(str(tmp_path))
    with pytest.raises(UserError):
        read("x" * 5000)

    def refused(path):  # as for /proc/1/cwd, whose name may not even be looked at
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refused)
    with pytest.raises(UserError, match=r"cannot be read .Permission denied"):
        read(str(tmp_path))


@pytest.mark.usefixtures("folder")
def test_home_folder_may_be_abbreviated(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert list(open_results("~")) == list(CELLS)
    assert list(open_tree("~/").children) == ["alpha", "beta"]
    with pytest.raises(UserError) as told:
        claims_table("~")
    assert told.value.file == str(tmp_path / "claims.json")
