"""`neuralrace benchmark` as a command: the board, its files, and what a second call does."""

import re

import pandas as pd
import pytest
import xarray as xr
import yaml

from builders import LINEAR

pytestmark = pytest.mark.workflow
TASK = LINEAR | {
    "dataset": {"name": "modes", "singular_values": [2.0, 1.0], "inputs": 3, "outputs": 2},
    "training": {"learning_rate": 0.02, "steps": 400},
    "record": {"every": 20, "observables": ["mode_strength", "layer_norm"]},
    "solutions": "applicable",
    "metrics": ["theory_scores"],
}
TASKS = {"linear_width": TASK | {"sweep": {"network.hidden": [[4], [3]]}}}
LAWS = {
    "linear": {
        "like": "linear_width",
        "draw": {
            "dataset.singular_values": {"low": 1.0, "high": 2.0, "count": 2},
            "first_seed": {"low": 1000, "high": 2000},
        },
    }
}
DRAWN = "linear_drawn_11"
BOARD = ("benchmark.md", "benchmark.csv", "benchmark.nc", "benchmark_findings.json")
JOB = re.compile(r"^[\d:]{8} (?:\S+: )?(\w+) done, \d+ of \d+$", re.MULTILINE)
OUTSIDE = {
    "outside.dist-info/METADATA": "Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n",
    "outside.dist-info/entry_points.txt": "[neuralrace]\nsolutions = outside.solutions\n",
    "outside/__init__.py": "",
    "outside/solutions/__init__.py": "",
    "outside/solutions/at_rest.py": '''"""A theory that the library does not know."""

import numpy as np

from neuralrace.extensions.registry import Solution


@Solution(
    requires="layered linear squared_error",
    variables={"loss": ("solution time", "loss predicted by theory")},
)
def at_rest(problem):
    """Networks that never learn.

    Source: none.
    """
    scales, seeds = problem.weights[0].shape[:2]
    loss = np.full((scales, seeds, len(problem.step)), problem.data.y_power / 2)
    return {"loss": problem.as_trained(loss)}
''',
}


def benchmark(workspace, *arguments, **options):
    return workspace.neuralrace("benchmark", "--cores", "1", *arguments, **options)


@pytest.fixture(scope="module")
def scored(building):
    """A workspace with the board of two small tasks, and what the command printed."""
    workspace = building("benchmark")
    folder = workspace.path / "config" / "benchmark"
    folder.mkdir()
    tasks = {"experiments": {"benchmark": TASKS}}
    (folder / "tasks.yaml").write_text(yaml.safe_dump(tasks, sort_keys=False))
    (folder / "held_out.yaml").write_text(yaml.safe_dump(LAWS))
    (folder / "findings.yaml").write_text("findings: []\n")
    return workspace, benchmark(workspace, "--draw", "11")


def files_in(*folders):
    """Content of the board and its pictures; pictures have other folders in other results."""
    results, figures = folders
    found = {name: (results / name).read_bytes() for name in BOARD}
    pictures = {path.relative_to(figures): path.read_bytes() for path in figures.rglob("*.png")}
    assert len(pictures) > 2
    return found | pictures


def test_the_board_is_printed_and_written(scored):
    workspace, printed = scored
    assert "linear_width: 2 init scales, 0.1 to 0.3; network.hidden 4 or 3; 2 seeds\n" in printed
    assert f"{DRAWN}: 2 init scales, 0.1 to 0.3; network.hidden 4 or 3; 2 seeds; held" in printed
    assert re.search(r"^  flow +1\.000", printed, re.MULTILINE)
    assert re.search(r"^Core-seconds over all tasks: simulation \d.*flow \d", printed, re.MULTILINE)
    assert "The whole board: results/benchmark.md\n" in printed
    rules = JOB.findall(printed)
    assert {name: rules.count(name) for name in ("train", "solve", "measure", "board")} == {
        "train": 4, "solve": 4, "measure": 4, "board": 1
    }  # fmt: skip
    results = workspace.path / "results"
    with xr.open_datatree(results / "benchmark.nc") as board:
        assert list(board.children) == ["summary", "linear_width", DRAWN]
    assert set(pd.read_csv(results / "benchmark.csv")["task"]) == {"linear_width", DRAWN}
    pictures = {path.stem for path in (workspace.path / "figures/benchmark").rglob("*.png")}
    assert pictures >= {"board", "exact", "flow", "other_seeds"}


def test_a_second_call_computes_nothing_and_shows_the_entry_in_question(scored):
    workspace, _ = scored
    folders = (workspace.path / "results", workspace.path / "figures/benchmark")
    before = files_in(*folders)
    printed = benchmark(workspace, "--only", "exact")
    assert JOB.findall(printed) in ([], ["benchmark"])
    assert files_in(*folders) == before
    board = printed[printed.index("linear_width: ") :]
    assert set(re.findall(r"^  (\w+) +\d", board, re.MULTILINE)) == {"exact", "flow"}


def test_the_same_draw_gives_the_same_bytes_in_another_folder(scored):
    workspace, _ = scored
    benchmark(workspace, "--draw", "11", "--results", "again")
    first = files_in(workspace.path / "results", workspace.path / "figures/benchmark")
    again = workspace.path / "again"
    assert files_in(again, again / "figures/benchmark") == first


def test_an_edited_table_is_noticed(scored):
    workspace, _ = scored
    table = workspace.path / "results" / "benchmark.csv"
    whole = table.read_text()
    table.write_text(whole.replace("flow", "mine"))
    printed = workspace.neuralrace("verify", fails=True)
    assert "results/benchmark.csv: is not what was written; it was changed" in printed
    table.write_text(whole)
    assert "figures and tables verified" in workspace.neuralrace("verify")


def test_a_theory_of_another_package_is_scored_and_nothing_is_trained_again(scored, tmp_path):
    workspace, _ = scored
    for name, text in OUTSIDE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    trained = {
        path: path.stat().st_mtime_ns for path in workspace.path.rglob("results/**/trajectory.nc")
    }
    printed = benchmark(workspace, "--only", "at_rest", outside=tmp_path)
    rules = JOB.findall(printed)
    assert "train" not in rules
    assert rules.count("solve") == rules.count("measure") == 4
    assert trained == {path: path.stat().st_mtime_ns for path in trained}
    assert re.search(r"^  at_rest +0\.000? ", printed, re.MULTILINE) or re.search(
        r"^  at_rest +0 ", printed, re.MULTILINE
    )
    table = pd.read_csv(workspace.path / "results" / "benchmark.csv")
    losses = table[(table["entry"] == "at_rest") & (table["score"] == "loss_error")]
    assert (losses["mean"] > 0.9).all()
    assert (workspace.path / "figures/benchmark/maps/at_rest.png").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--only", "exat"],
            "error: --only: 'exat': no such solution; did you mean exact? `neuralrace list solu",
        ),
        (["--draw", "-1"], "error: Invalid value for '--draw': -1 is not in the range"),
        (["--cores", "none"], "error: --cores: 'none': give a whole number above 0, or all"),
    ],
)
def test_mistakes_in_arguments_are_named(scored, arguments, message):
    workspace, _ = scored
    assert workspace.neuralrace("benchmark", *arguments, fails=True).startswith(message)


def test_without_tasks_the_target_says_what_to_do(scored):
    workspace, _ = scored
    assert workspace.refusal("benchmark") == (
        "no task of the benchmark is configured; call `neuralrace benchmark`, or add --config "
        "settings=config/benchmark/tasks.yaml"
    )
