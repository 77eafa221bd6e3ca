"""The results folder as a table of cells."""

import pytest
import xarray as xr

import neuralrace
from neuralrace.errors import UserError
from neuralrace.records.catalogue import open_results
from neuralrace.records.files import read, write
from neuralrace.records.trajectory import trajectory_dataset

CELLS = ("alpha/first/a", "alpha/first/b", "beta/second/main")


@pytest.fixture
def folder(run, trajectory, tmp_path):
    """Three cells, the middle one of another learning rate, and a cell of the smoke run."""
    for cell_id in (*CELLS, "smoke/first/a"):
        own = run
        if cell_id == CELLS[1]:
            training = run.training.model_copy(update={"learning_rate": 0.025})
            own = run.model_copy(update={"training": training})
        written = trajectory_dataset(cell_id, own, trajectory)
        write(written[["loss", "diverged_at"]], tmp_path / cell_id / "trajectory.nc")
    return tmp_path


def test_a_row_for_every_cell_but_those_of_the_smoke_run(folder):
    results = open_results(folder)
    assert len(results) == len(results.table) == 3
    columns = results.table[["paper", "experiment", "cell"]]
    assert ["/".join(row) for row in columns.itertuples(index=False)] == list(CELLS)
    assert results.table["folder"].tolist() == [str(folder / cell) for cell in CELLS]


def test_entries_of_the_specification_have_dotted_keys(folder):
    table = open_results(folder).table
    assert table["training.learning_rate"].tolist() == [0.05, 0.025, 0.05]
    assert table["dataset.name"].tolist() == ["modes"] * 3
    assert table["network.bias"].tolist() == [True] * 3
    assert table["network.hidden"].tolist() == [[5]] * 3


def test_selecting_narrows_and_keeps_the_whole(folder):
    results = open_results(folder)
    alpha = results.select(paper="alpha")
    assert alpha.table["cell"].tolist() == ["a", "b"]
    assert alpha.select(training__learning_rate=0.025).table["cell"].tolist() == ["b"]
    assert results.select(paper="alpha", cell="main").table.empty
    both = results.select(network__hidden=[5], training__learning_rate=0.05)
    assert both.table.index.tolist() == [0, 1]
    assert len(results) == 3


def test_selecting_by_an_unknown_column_names_the_columns(folder):
    with pytest.raises(UserError, match=r"'training.speed' is no column; .*dataset\.name"):
        open_results(folder).select(training__speed=1)


def test_opening_gives_the_datasets_that_exist(folder):
    results = open_results(folder)
    opened = dict(results.open())
    assert list(opened) == list(CELLS)
    for cell, dataset in opened.items():
        xr.testing.assert_identical(dataset, read(folder / cell / "trajectory.nc"))
    assert list(results.open("theory")) == []
    assert list(results.select(cell="main", paper="alpha").open()) == []


def test_a_folder_without_results_says_what_to_run(tmp_path):
    with pytest.raises(UserError, match=r"no results found\. Run `snakemake"):
        open_results(tmp_path)


def test_a_damaged_file_is_named(folder):
    damaged = folder / CELLS[1] / "trajectory.nc"
    damaged.write_bytes(damaged.read_bytes()[:-7])
    with pytest.raises(UserError, match=r"alpha/first/b/trajectory\.nc: .* is damaged"):
        open_results(folder)


def test_results_open_from_the_top_of_the_library(folder):
    assert len(neuralrace.open_results(folder)) == 3
