"""Held-out tasks: drawn from stated laws, reproducible by their number."""

import shutil
from functools import reduce

import numpy as np
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders import REPOSITORY
from neuralrace.board.held_out import (
    MOST_DRAWS,
    configured,
    drawn_tasks,
    is_held_out,
    write_drawn_tasks,
)
from neuralrace.config.load import read_plan
from neuralrace.errors import UserError

BENCHMARK = REPOSITORY / "config" / "benchmark"
TASKS = yaml.safe_load((BENCHMARK / "tasks.yaml").read_text(encoding="utf-8"))
TASKS = TASKS["experiments"]["benchmark"]
LAWS = yaml.safe_load((BENCHMARK / "held_out.yaml").read_text(encoding="utf-8"))
NUMBERS = st.integers(0, MOST_DRAWS)


@pytest.fixture(scope="module", autouse=True)
def _in_the_repository():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        yield


def of(number):
    return drawn_tasks(number)["experiments"]["benchmark"]


def value_at(task, key):
    return reduce(lambda node, part: node[part], key.split("."), task)


@settings(max_examples=15)
@given(NUMBERS)
def test_a_number_stands_for_the_same_tasks_within_the_bounds_of_their_laws(number):
    drawn = of(number)
    assert drawn == of(number)
    assert list(drawn) == [f"{family}_drawn_{number}" for family in LAWS]
    assert all(map(is_held_out, drawn))
    for family, law in LAWS.items():
        task = drawn[f"{family}_drawn_{number}"]
        for key, each in law["draw"].items():
            values = np.atleast_1d(value_at(task, key))
            assert len(values) == each.get("count", 1)
            assert isinstance(value_at(task, key), list) == ("count" in each)
            assert ((each["low"] <= values) & (values <= each["high"])).all()
            assert (np.diff(values) <= 0).all()
            whole = all(isinstance(each[end], int) for end in ("low", "high"))
            assert (values.dtype.kind == "i") == whole


@settings(max_examples=10)
@given(NUMBERS, NUMBERS)
def test_another_number_stands_for_other_tasks(one, other):
    for first, second in zip(of(one).values(), of(other).values(), strict=True):
        assert (first == second) == (one == other)


@settings(max_examples=1)
@given(NUMBERS)
@example(MOST_DRAWS - 1)
def test_drawn_tasks_can_be_planned(number):
    cells = read_plan(drawn_tasks(number), {}).cells
    assert {name.split("/")[1] for name in cells} == set(of(number))
    assert all(cell.solutions for cell in cells.values())


def test_drawn_tasks_differ_from_theirs_only_in_what_is_drawn():
    for (family, law), task in zip(LAWS.items(), of(5).values(), strict=True):
        for key in law["draw"]:
            *outer, last = key.split(".")
            del reduce(lambda node, part: node[part], outer, task)[last]
        expected = yaml.safe_load(yaml.safe_dump(TASKS[law["like"]]))
        for key in law["draw"]:
            *outer, last = key.split(".")
            reduce(lambda node, part: node[part], outer, expected).pop(last, None)
        assert task == expected, family


def test_the_file_stays_until_a_number_is_given(tmp_path):
    path = tmp_path / "results" / "benchmark" / "held_out.yaml"
    assert write_drawn_tasks(path, 3) == path
    text = path.read_text()
    assert text.startswith("# Held-out tasks of draw 3, by the laws of config/benchmark/held_out")
    assert yaml.safe_load(text) == drawn_tasks(3)
    write_drawn_tasks(path)
    assert path.read_text() == text
    write_drawn_tasks(path, 4)
    assert yaml.safe_load(path.read_text()) == drawn_tasks(4)
    write_drawn_tasks(path, 3)
    assert path.read_text() == text


def test_without_a_file_and_a_number_the_draw_is_random(tmp_path):
    texts = {write_drawn_tasks(tmp_path / f"{n}.yaml").read_text() for n in range(5)}
    assert len(texts) > 1


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the tasks of the benchmark and a law."""
    target = tmp_path / "config" / "benchmark"
    target.mkdir(parents=True)
    (tmp_path / "config" / "mine").mkdir()
    (tmp_path / "config" / "mine" / "experiments.yaml").write_text("experiments: {}")
    shutil.copy(BENCHMARK / "tasks.yaml", target)
    monkeypatch.chdir(tmp_path)
    return target


LAW = {"like": next(iter(TASKS)), "draw": {"first_seed": {"low": 5, "high": 9}}}
FILE = "config/benchmark/held_out.yaml"


def law(**changes):
    return LAW | {"draw": {"first_seed": LAW["draw"]["first_seed"] | changes}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", f"{FILE}: expected a mapping of keys to values at the top"),
        ({"one": 3}, f"{FILE}: one: 3: expected a mapping of keys to values"),
        ({"one": {"draw": LAW["draw"]}}, f"{FILE}: one.like: is required and missing"),
        ({"one": {"like": LAW["like"]}}, f"{FILE}: one.draw: is required and missing"),
        (
            {"one": {**LAW, "draw": {}}},
            f"{FILE}: one.draw: expected at least 1 item",
        ),
        (
            {"one": LAW | {"like": LAW["like"][:-1]}},
            f"{FILE}: one.like: '{LAW['like'][:-1]}': is no task; did you mean {LAW['like']}",
        ),
        ({"one": law(low="1")}, f"{FILE}: one.draw.first_seed.low"),
        ({"one": law(low=11)}, f"{FILE}: one.draw.first_seed.low: 11: is above high (9); exchange"),
        ({"one": law(count=0)}, f"{FILE}: one.draw.first_seed.count: 0: "),
        ({"one": law(widths=3)}, f"{FILE}: one.draw.first_seed.widths: 3: unknown key"),
        (
            {"one": LAW | {"draw": {"seeds.more": {"low": 1, "high": 2}}}},
            f"{FILE}: one.draw.seeds.more: {TASKS[LAW['like']]['seeds']}: expected seeds as a map",
        ),
        ({"One": LAW}, f"{FILE}: 'One': expected keys of lower-case letters"),
    ],
)
def test_a_mistake_in_a_law_is_named_with_file_key_and_remedy(folder, content, message):
    text = content if isinstance(content, str) else yaml.safe_dump(content)
    (folder / "held_out.yaml").write_text(text)
    with pytest.raises(UserError) as caught:
        drawn_tasks(1)
    assert str(caught.value).startswith(message)


def test_a_file_that_the_folder_lacks_is_the_bundled_one(folder):
    assert configured("held_out.yaml").is_relative_to(BENCHMARK)
    assert {name.partition("_")[0] for name in of(1)} == set(LAWS)


@pytest.mark.parametrize(("low", "high"), [(0.12341, 0.12342), (-2.5, -2.4999), (0.0, 1e-9)])
def test_rounding_stays_within_the_bounds(folder, low, high):
    drawn = {"init_scales": {"low": low, "high": high, "count": 3}}
    (folder / "held_out.yaml").write_text(yaml.safe_dump({"one": LAW | {"draw": drawn}}))
    (task,) = of(1).values()
    assert all(low <= value <= high for value in task["init_scales"])
