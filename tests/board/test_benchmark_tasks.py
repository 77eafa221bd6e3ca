"""The configuration of the benchmark: every shown task, and the law of every family."""

from collections import Counter

import pytest
import yaml
from tasks_digest import COMMAND, FILE, REPOSITORY, TASKS, digest, planned

from neuralrace.board.held_out import is_held_out
from neuralrace.config.cost import estimate_cost

SHOWN = TASKS["experiments"]["benchmark"]
LAWS = yaml.safe_load((REPOSITORY / "config/benchmark/held_out.yaml").read_text(encoding="utf-8"))
FAMILIES = Counter(name.split("_")[0] for name in SHOWN)
MOST_SECONDS = {"cell": 30.0, "task": 60.0, "all": 300.0}
"""Estimated core-seconds of a board, which anybody with a small machine is to make."""


@pytest.fixture(scope="module")
def cells():
    return planned()


def test_every_family_has_two_to_four_tasks():
    assert len(FAMILIES) > 1
    assert {family: count for family, count in FAMILIES.items() if not 2 <= count <= 4} == {}


def test_every_family_has_a_law_of_a_held_out_task():
    assert set(LAWS) == set(FAMILIES)


@pytest.mark.parametrize("family", LAWS)
def test_a_law_draws_the_problem_and_the_seeds_of_a_task_of_its_family(family):
    law = LAWS[family]
    task = SHOWN[law["like"]]
    assert law["like"].split("_")[0] == family
    assert "first_seed" in law["draw"]
    assert len(law["draw"]) > 1, "seeds alone are no other problem"
    swept = {key.strip() for keys in task.get("sweep", {}) for key in keys.split(",")}
    for key in law["draw"]:
        inside = [each for each in swept if f"{key}.".startswith(f"{each}.")]
        assert not inside, f"{key} is swept, so that the drawn value would not count"


@pytest.mark.parametrize("task", SHOWN)
def test_every_task_scores_all_that_applies_over_scales_and_seeds(task):
    experiment = SHOWN[task]
    assert experiment["solutions"] == "applicable"
    assert experiment["metrics"] == ["theory_scores"]
    assert experiment["seeds"] >= 3
    assert len(experiment["init_scales"]) >= 4
    assert experiment["init_scales"] == sorted(experiment["init_scales"])
    assert len(experiment.get("sweep", {})) <= 1, "a task has init scale and one more axis"
    assert not is_held_out(task)


@pytest.mark.parametrize("task", SHOWN)
def test_a_theory_of_its_own_applies_to_every_cell_of_a_task(task, cells):
    own = {name: cell for name, cell in cells.items() if name.split("/")[1] == task}
    assert own
    assert all(cell.solutions for cell in own.values())


def test_the_whole_board_is_affordable(cells):
    seconds = {name: estimate_cost(cell).seconds() for name, cell in cells.items()}
    tasks = Counter[str]()
    for name, each in seconds.items():
        tasks[name.split("/")[1]] += each
    assert max(seconds.values()) < MOST_SECONDS["cell"], max(seconds, key=seconds.__getitem__)
    assert max(tasks.values()) < MOST_SECONDS["task"], tasks.most_common(1)
    assert tasks.total() < MOST_SECONDS["all"], tasks.most_common(3)


def test_a_change_of_a_shown_task_raises_the_version_of_the_board(cells):
    assert digest(cells) == FILE.read_text(encoding="utf-8"), (
        "a shown task is another one than before, or a default of its keys: its scores cannot be "
        "compared with those of this version of the board. Raise VERSION in "
        f"src/neuralrace/board/build.py, and write {FILE.relative_to(REPOSITORY)} by: {COMMAND}"
    )


def test_a_digest_depends_on_version_name_and_specification(cells, monkeypatch):
    whole = digest(cells)
    name, cell = next(iter(cells.items()))
    more = {name: cell.model_copy(update={"seeds": cell.seeds + 1})}
    renamed = {f"{key}x": value for key, value in cells.items()}
    solved = {key: value.model_copy(update={"solutions": ()}) for key, value in cells.items()}
    assert digest(cells | more) != whole
    assert digest(renamed) != whole
    assert digest(solved) == whole, "theories come and go without a new version"
    monkeypatch.setattr("tasks_digest.VERSION", "another")
    assert digest(cells) != whole
