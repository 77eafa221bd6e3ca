"""The board: its tasks, their axes, and the forms in which it is written."""

import re
from io import StringIO
from math import log

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from small_tasks import TASKS, planned

from builders import LINEAR, build_cell, results_in_memory
from neuralrace.board.build import BASELINES, VERSION, board
from neuralrace.board.pages import COLUMNS, frame, lines, markdown, where_it_holds
from neuralrace.figures.board import draw_board, draw_map

TASK = LINEAR | {"solutions": ["exact", "flow"], "metrics": ["theory_scores"]}


def scored(cells, error=0.05):
    """Cells with scores that are all the same, without any training."""
    for name, cell in cells.items():
        entries = [*cell.solutions, "other_seeds"]
        coords = {
            "init_scale": list(cell.init_scales),
            "seed": list(cell.seed_numbers),
            "entry": entries,
        }
        values = np.full((len(cell.init_scales), cell.seeds, len(entries)), error)
        metrics = xr.Dataset({"loss_error": (tuple(coords), values)}, coords, {"versions": "none"})
        results = results_in_memory(cell, metrics=metrics)
        results.name = name
        yield results


def axis_of(**changes):
    """The axis of a task, and its values."""
    task = board(scored(planned({"linear_one": TASK | changes})))["linear_one"]
    return task.attrs["axis"], task["value"].values.tolist()


def test_tasks_and_values_have_the_order_of_the_configuration(small_board):
    assert list(small_board.children) == ["summary", *TASKS]
    assert small_board["summary"]["task"].values.tolist() == list(TASKS)
    width = small_board["linear_width"]
    assert width.attrs["axis"] == "network.hidden"
    assert width["value"].values.tolist() == ["10", "3x3", "2"]
    assert width["init_scale"].values.tolist() == TASKS["linear_width"]["init_scales"]
    assert width["loss_error"].dims == ("value", "init_scale", "seed", "entry")
    assert small_board.attrs["version"] == VERSION
    assert "jax" in small_board.attrs["versions"]


def test_cells_of_a_task_may_have_different_solutions(cells, small_board):
    first, second = (cells[f"benchmark/linear_width/hidden-{width}"] for width in ("10", "3x3"))
    assert "exact" in set(first.spec.solutions) - set(second.spec.solutions)
    scores = small_board["linear_width"].dataset
    assert scores["loss_error"].sel(value="3x3", entry="exact").isnull().all()
    assert scores["loss_error"].sel(value="3x3", entry="flow").notnull().all()
    for value, cell in (("10", first), ("3x3", second)):
        own = scores["loss_error"].sel(value=value, entry=cell.metrics["entry"], drop=True)
        xr.testing.assert_equal(own.drop_attrs(), cell.metrics["loss_error"].drop_attrs())


def test_theories_are_sorted_by_their_first_task_and_baselines_come_last(small_board):
    entries = small_board["summary"]["entry"].values.tolist()
    theories = [name for name in entries if name not in BASELINES]
    assert entries[: len(theories)] == theories
    assert entries[-1] in BASELINES
    first = [
        next(n for n, task in enumerate(TASKS) if entry in small_board[task]["entry"])
        for entry in theories
    ]
    assert list(zip(first, theories, strict=True)) == sorted(zip(first, theories, strict=True))


def test_a_task_without_an_axis_has_one_value_without_a_name(small_board):
    alone = small_board["linear_alone_drawn_7"]
    assert (alone.attrs["axis"], alone["value"].values.tolist()) == ("", [""])
    page = markdown(small_board)
    assert "init scales, 0.1 to 1; 3 seeds; held out" in page


def test_families_and_drawn_tasks_are_known_by_their_names(small_board):
    families = {name: small_board[name].attrs["family"] for name in TASKS}
    assert list(families.values()) == ["linear", "relu", "linear"]
    assert [small_board[name].attrs["held_out"] for name in TASKS] == [0, 0, 1]


@pytest.mark.parametrize(
    ("sweep", "axis", "values"),
    [
        ({"training.learning_rate": [0.02, 0.000001]}, "training.learning_rate", ["0.02", "1e-06"]),
        ({"network.activation": ["tanh", "linear"]}, "network.activation", ["tanh", "linear"]),
        (
            {"dataset": [LINEAR["dataset"], {"name": "hierarchy"}]},
            "dataset.name",
            ["modes", "hierarchy"],
        ),
        (
            {"network.hidden": [[3], [2]], "training.learning_rate": [0.02, 0.01]},
            "network.hidden, training.learning_rate",
            ["3, 0.02", "3, 0.01", "2, 0.02", "2, 0.01"],
        ),
        (
            {"network.hidden,training.learning_rate": [[[3], 0.02], [[3], 0.01], [[2], 0.01]]},
            "network.hidden, training.learning_rate",
            ["3, 0.02", "3, 0.01", "2, 0.01"],
        ),
    ],
)
def test_values_of_an_axis_distinguish_the_cells(sweep, axis, values):
    assert axis_of(sweep=sweep, solutions=[]) == (axis, values)


def test_intervals_leave_out_what_cannot_be():
    errors = [[0.001, 0.2], [0.15, 0.001], [0.001, 0.001]]  # by seed and entry
    cells = planned({"linear_one": TASK | {"seeds": 3, "solutions": ["exact"]}})
    summary = board(scored(cells, errors))["summary"].to_dataset().sel(task="linear_one")
    error = summary["loss_error"].sel(entry="exact")
    assert error.values[1] == 0 < error.values[0] < error.values[2]
    share = summary["holds_share"].sel(entry="exact")
    np.testing.assert_allclose(share, [2 / 3, 0, 1])
    row, _ = tables_of(markdown(board(scored(cells, errors))))["linear_one"]
    assert (row["entry"], row["holds at"]) == ("exact", "0.667 [0.000, 1.000]")


def test_a_single_seed_has_no_interval():
    cells = planned({"linear_one": TASK | {"seeds": 1}})
    summary = board(scored(cells))["summary"]["loss_error"].sel(task="linear_one", entry="exact")
    assert summary.values[0] == 0.05
    assert np.isnan(summary.values[1:]).all()


@pytest.mark.parametrize(
    ("error", "held", "words"), [(0.0999, [1, 1], "0.1 to 0.3"), (0.1, [0, 0], "none")]
)
def test_a_theory_holds_where_it_misses_the_loss_by_less_than_a_tenth(error, held, words):
    task = board(scored(planned({"linear_one": TASK}), error))["linear_one"].to_dataset()
    np.testing.assert_equal(task["holds"].sel(entry="exact").values.squeeze(), held)
    assert where_it_holds(task, "exact") == words


NAN = np.nan


@pytest.mark.parametrize(
    ("holds", "words"),
    [
        ([[1, 1, 0], [1, 1, 0]], "0.1 to 0.2"),
        ([[1, 1, 0], [1, 0, 0]], "0.1 to 0.2 (2) / 0.1 (8)"),
        ([[1, 0, 1], [0, 0, 0]], "0.1, 0.4 (2) / none (8)"),
        ([[NAN, NAN, NAN], [1, 1, 1]], "0.1 to 0.4 (8)"),
        ([[0, 0, 0], [0, 0, 0]], "none"),
        ([[NAN, NAN, NAN], [NAN, NAN, NAN]], ""),
    ],
)
def test_scales_are_told_for_each_value_of_the_axis_where_they_differ(holds, words):
    task = xr.Dataset(
        {"holds": (("value", "init_scale", "entry"), np.array(holds, dtype=float)[..., None])},
        {"value": ["2", "8"], "init_scale": [0.1, 0.2, 0.4], "entry": ["mine"]},
    )
    assert where_it_holds(task, "mine") == words


def test_the_table_has_the_numbers_of_the_summary(small_board):
    text = frame(small_board).to_csv(index=False)
    table = pd.read_csv(StringIO(text))
    assert table["task"].drop_duplicates().tolist() == list(TASKS)
    summary = small_board["summary"].to_dataset()
    for row in table.itertuples():
        expected = summary[row.score].sel(task=row.task, entry=row.entry).values
        np.testing.assert_array_equal([row.mean, row.low, row.high], expected)
    listed = set(zip(table["task"], table["entry"], table["score"], strict=True))
    for name in COLUMNS:
        if name in summary:
            known = summary[name].sel(statistic="mean").stack(at=("task", "entry"))
            known = known[known.notnull().values]
            assert listed >= {(*at, name) for at in known["at"].values.tolist()}


def tables_of(page):
    """Tables of a page by heading: lists of rows, each by column."""
    found = {}
    for section in page.split("\n## ")[1:]:
        rows = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)
        heading, _, *rows = ([cell.strip() for cell in row.split("|")] for row in rows)
        found[section.splitlines()[0]] = [dict(zip(heading, row, strict=True)) for row in rows]
    return found


def test_the_page_has_the_numbers_of_the_summary(small_board):
    tables = tables_of(markdown(small_board))
    assert list(tables) == list(TASKS)
    summary = small_board["summary"].to_dataset().sel(statistic="mean")
    compared = 0
    for task, rows in tables.items():
        ranked = summary.sel(task=task, entry=[row["entry"] for row in rows])
        shares, losses = ranked["holds_share"].fillna(0).values, ranked["loss_error"].values
        assert np.all(np.diff(shares) <= 0)
        for share in set(shares):
            assert np.all(np.diff(losses[(shares == share) & np.isfinite(losses)]) >= 0)
        for row in rows:
            for name, heading in COLUMNS.items():
                if heading not in row:
                    continue
                value = float(summary[name].sel(task=task, entry=row["entry"]))
                shown = row[heading].split(" [")[0]
                if shown.startswith("x "):
                    assert log(float(shown[2:])) == pytest.approx(value, abs=0.006)
                elif shown:
                    assert float(shown) == pytest.approx(value, abs=0.00051)
                else:
                    assert np.isnan(value)
                compared += bool(shown)
    assert compared > 30


def test_entries_in_question_are_shown_beside_the_best_other_one(small_board):
    printed = "\n".join(lines(small_board, ["exact"]))
    shown = re.findall(r"^  (\w+) ", printed, re.MULTILINE)
    assert "relu_fields" not in printed
    assert set(shown) - {"entry"} == {"exact", "flow"}
    everything = "\n".join(lines(small_board))
    assert all(f"{name}: " in everything for name in TASKS)


def test_the_board_opens_in_plain_xarray(small_board, tmp_path):
    path = tmp_path / "board.nc"
    small_board.to_netcdf(path, engine="netcdf4")
    with xr.open_datatree(path) as opened:
        assert set(opened.children) == {"summary", *TASKS}
        summary = opened["summary"].to_dataset()
        xr.testing.assert_identical(summary.load(), small_board["summary"].to_dataset())
        for node in opened.children.values():
            for variable in node.variables.values():
                assert {"long_name", "units"} <= set(variable.attrs)


def test_pictures_show_every_task_and_entry(small_board):
    names = [label.get_text() for label in draw_board(small_board).axes[0].get_xticklabels()]
    assert names == ["width", "fields", "linear alone"]
    axes = draw_map(small_board, "exact").axes
    titles = [title for ax in axes if (title := ax.get_title(loc="left"))]
    assert titles == ["linear width", "linear alone, held out"]
    assert axes[0].get_ylabel() == "hidden units"


@pytest.mark.parametrize(
    ("error", "text"),
    [(0.0042, ".00"), (0.013, ".01"), (0.0966, ".097"), (0.1, ".10"), (0.2996, ".2996"), (2, ">1")],
)
def test_numbers_on_the_board_agree_with_their_colours(error, text):
    figure = draw_board(board(scored(planned({"linear_one": TASK}), error)))
    assert text in [entry.get_text() for entry in figure.axes[0].texts]


@pytest.mark.parametrize(
    ("errors", "title"),
    [
        ([[0.05], [0.051]], "Where theories predict the loss, one holds"),
        ([[0.05], [0.14]], "Theory holds on 0% of tasks with theories"),
        ([[0.05]], "Where theories predict the loss, one holds"),
    ],
)
def test_a_theory_holds_on_a_task_where_its_whole_interval_is_below_a_tenth(errors, title):
    cells = planned({"linear_one": TASK | {"seeds": len(errors)}})
    figure = draw_board(board(scored(cells, errors)))
    assert figure.axes[0].get_title(loc="left") == title


@pytest.mark.parametrize(
    ("error", "start", "share", "marks"),
    [
        (0.05, 0, "6 of 6", []),
        (0.2, 0.2, "0 of 6", ["error ≥ 0.1 before training"]),
        ([0.05, 0.05, 0.2], 0, "4 of 6", ["holds / does not"]),
    ],
)
def test_a_map_counts_settings_and_names_marks_that_it_shows(
    small_board, error, start, share, marks
):
    task = small_board["linear_width"].to_dataset(inherit=False)
    known = task["loss_error"].notnull()
    errors = xr.DataArray(np.broadcast_to(error, known.sizes["init_scale"]), dims="init_scale")
    changed = task.assign(
        loss_error=errors.where(known), initial_loss_error=xr.full_like(known, start, float)
    )
    nodes = {"summary": small_board["summary"].to_dataset(), "linear_width": changed}
    figure = draw_map(xr.DataTree.from_dict(nodes), "exact")
    assert figure.get_suptitle() == f"exact: holds at {share} settings"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == marks
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["10", "2"]


def test_a_map_of_an_entry_without_a_loss_is_refused(small_board):
    with pytest.raises(ValueError, match=r"predicts the loss of no task; there is .*flow"):
        draw_map(small_board, "nothing")


def test_a_board_of_one_cell_has_all_its_forms():
    cell = build_cell(TASK, seeds=1)
    tree = board(scored({"benchmark/own/main": cell}))
    assert "## own" in markdown(tree)
    assert len(frame(tree)) >= 2 * 2
