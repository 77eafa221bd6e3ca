"""The board of the release: it is that of the tasks, scores and findings that there are now."""

import json

import numpy as np
import pytest

from builders import REPOSITORY
from neuralrace.board.build import BASELINES, VERSION, tasks_of
from neuralrace.board.held_out import configured, is_held_out
from neuralrace.board.pages import held_tasks, lines, markdown
from neuralrace.board.stored import stored_board, stored_findings
from neuralrace.claims.spec import read_claims
from neuralrace.config.cell import Ensemble
from neuralrace.config.load import read_file, read_plan
from neuralrace.errors import UserError
from neuralrace.extensions.registry import SOLUTIONS
from neuralrace.results.checksums import fingerprint

BENCHMARK = REPOSITORY / "config" / "benchmark"
RELEASED = BENCHMARK / "board.json"
AGAIN = "`make board` writes it again"


def test_the_released_board_is_that_of_the_tasks_that_there_are():
    released = stored_board(RELEASED)
    assert released.attrs["version"] == VERSION, AGAIN
    cells: dict = {}
    for name, cell in read_plan(read_file(BENCHMARK / "tasks.yaml"), {}).cells.items():
        cells.setdefault(name.split("/")[1], []).append(cell.only(Ensemble).sha256())
    shown = [name for name in tasks_of(released) if not is_held_out(name)]
    assert shown == list(cells), AGAIN
    for name, digests in cells.items():
        assert released[name].attrs["spec_sha256"] == fingerprint(*digests), AGAIN
    families = {released[name].attrs["family"] for name in shown}
    drawn = {released[name].attrs["family"] for name in tasks_of(released) if is_held_out(name)}
    assert families == drawn


def test_intervals_of_the_released_board_have_no_impossible_numbers():
    summary = stored_board(RELEASED)["summary"].to_dataset()
    assert float(summary.min().to_array().min()) >= 0
    assert float(summary["holds_share"].max()) == 1
    low, mean, high = (summary.sel(statistic=name) for name in ("low", "mean", "high"))
    assert bool((low <= mean).where(low.notnull(), True).to_array().all())
    assert bool((mean <= high).where(high.notnull(), True).to_array().all())


def test_every_solution_of_the_released_board_exists_and_every_baseline_is_on_it():
    released = stored_board(RELEASED)
    entries = {
        str(entry) for name in tasks_of(released) for entry in released[name]["entry"].values
    }
    assert entries <= {*SOLUTIONS, *BASELINES}
    assert set(BASELINES) <= entries


def test_entries_have_the_order_of_a_board_that_is_not_stored():
    losses = stored_board(RELEASED)["summary"]["loss_error"].sel(statistic="mean")
    baselines = [name in BASELINES for name in losses["entry"].values]
    assert baselines == sorted(baselines)
    known = losses.notnull().transpose("entry", "task").values
    first_task = known[~np.array(baselines)].argmax(axis=1)
    assert first_task.tolist() == sorted(first_task)


def test_findings_came_out_as_they_are_known_to():
    stated = read_claims([configured("findings.yaml")])
    known = [each.id for content in stated.values() for each in content.findings]
    found = stored_findings(RELEASED)
    assert [row.id for row in found] == known, AGAIN
    assert [row.surprise for row in found if row.surprise] == []
    assert any("drawn" in cell for row in found for cells in row.metrics.values() for cell in cells)


def test_the_released_board_is_shown_like_any_other():
    released = stored_board(RELEASED)
    page = markdown(released, stored_findings(RELEASED))
    assert released.attrs["commit"][:12] in page
    assert all(f"## {name}" in page for name in tasks_of(released))
    assert any("exact" in line for line in lines(released, ["exact"]))
    assert "linear_width 1e-06 to 1" in held_tasks(released, "exact")
    assert held_tasks(released, "shallow_modes") == "not tested"


@pytest.mark.parametrize("content", ["", "[]", "{}", json.dumps({"tasks": {"a": {}}})])
def test_another_file_is_refused(tmp_path, content):
    path = tmp_path / "board.json"
    path.write_text(content)
    with pytest.raises(UserError, match=r"board\.json: is no board .*; `make board` writes it"):
        stored_board(path)
