"""What is outdated, which cells share a job, and what they are estimated to cost."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuralrace import schedule
from neuralrace.cost import cost_of
from neuralrace.errors import UserError
from neuralrace.plan import Plan
from neuralrace.provenance import code_files
from neuralrace.schedule import (
    announced,
    groups,
    inputs,
    keys,
    on_processors,
    outdated,
    part,
    refuse_another,
)
from neuralrace.seal import digests, key_of, seal, seal_file, sha256
from neuralrace.spec import Cell

SPEC = {
    "dataset": {"name": "modes", "singular_values": [2.0, 1.0], "inputs": 3, "outputs": 2},
    "network": {"name": "layered", "hidden": [2]},
    "init": {"name": "aligned"},
    "init_scales": [0.1, 0.3],
    "seeds": 2,
    "training": {"learning_rate": 0.02, "steps": 400},
    "record": {"every": 10, "observables": ["mode_strength"]},
    "solutions": ["aligned_modes"],
    "metrics": ["analytic_fit", "learning_times"],
}
KINDS = {"trajectory", "theory", "metrics"}
BARE = {"trajectory", "metrics"}
"""Of a cell without theory."""


def cell(**changes) -> Cell:
    return Cell.model_validate_json(json.dumps(SPEC | changes))


def plan(settings=None, **cells) -> Plan:
    return Plan(cells={f"paper/experiment/{name}": each for name, each in cells.items()},
                **(settings or {}))  # fmt: skip


def finish(root: Path, made: Plan) -> None:
    """Files of all cells, sealed as if they had been made."""
    for cell_id, each in made.cells.items():
        for kind, key in keys(cell_id, each).items():
            path = root / cell_id / f"{kind}.nc"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(kind.encode())
            made_from = digests(root, inputs(cell_id, each)) if kind == "metrics" else {}
            seal(path, sha256(path), key, made_from)


def kinds(root: Path, wanted: Plan) -> dict[str, set[str]]:
    found = outdated(root, wanted)
    return {cell_id.rpartition("/")[2]: set(work.keys) for cell_id, work in found.items()}


# What is outdated --------------------------------------------------------------------------------


def test_nothing_is_outdated_that_was_made_from_what_is_asked_for(tmp_path):
    wanted = plan(one=cell(), two=cell(solutions=[], metrics=[]))
    assert kinds(tmp_path, wanted) == {"one": KINDS, "two": {"trajectory", "metrics"}}
    finish(tmp_path, wanted)
    assert kinds(tmp_path, wanted) == {}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"metrics": ["learning_times"]}, {"metrics"}),
        ({"solutions": ["aligned_modes", "flow"]}, {"theory", "metrics"}),
        ({"training": {"learning_rate": 0.01, "steps": 400}}, KINDS),
        ({"seeds": 3}, KINDS),
    ],
)
def test_a_change_makes_what_rests_on_it_again(tmp_path, changes, expected):
    finish(tmp_path, plan(one=cell(), two=cell()))
    assert kinds(tmp_path, plan(one=cell(**changes), two=cell())) == {"one": expected}


def test_another_name_is_another_cell(tmp_path):
    finish(tmp_path, plan(one=cell(), two=cell(seeds=3)))
    assert kinds(tmp_path, plan(one=cell(seeds=3), two=cell())) == {"one": KINDS, "two": KINDS}


@pytest.mark.parametrize("damage", ["no file", "no seal", "damaged seal"])
def test_what_cannot_be_told_is_made_again(tmp_path, damage):
    wanted = plan(one=cell())
    finish(tmp_path, wanted)
    path = tmp_path / "paper/experiment/one/theory.nc"
    if damage == "no file":
        path.unlink()
    elif damage == "no seal":
        seal_file(path).unlink()
    else:
        seal_file(path).write_bytes(b"\xff\x00")
    # and what was made from it, which may come out otherwise
    assert kinds(tmp_path, wanted) == {"one": {"theory", "metrics"}}


def test_what_was_measured_in_other_numbers_is_measured_again(tmp_path):
    wanted = plan(one=cell(), two=cell(seeds=3))
    finish(tmp_path, wanted)
    path = tmp_path / "paper/experiment/one/trajectory.nc"
    path.write_bytes(b"of another machine, by the same specification and code")
    seal(path, sha256(path), key_of(path))
    assert kinds(tmp_path, wanted) == {"one": {"metrics"}}


def test_nothing_is_made_but_what_was_planned(tmp_path):
    planned, todo = tmp_path / "outdated.json", {"one": {"theory": "a", "metrics": "b"}}
    refuse_another(todo, planned)  # none was needed
    planned.write_text(json.dumps({"cells": todo | {"other": {"metrics": "c"}}}))
    refuse_another(todo, planned)
    refuse_another({"one": {"metrics": "b"}, "deleted since": {"metrics": "d"}}, planned)
    with pytest.raises(UserError, match="one: configuration or code were changed after this run"):
        refuse_another({"one": {"metrics": "of other code"}}, planned)


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        ("neuralrace.metrics.learning_times", {"one": {"metrics"}}),
        ("neuralrace.solutions.linear", {"one": {"theory", "metrics"}}),
        ("neuralrace.observables.maps", {"one": KINDS, "two": BARE}),
        ("neuralrace.datasets.modes", {"one": KINDS, "two": BARE}),
        ("neuralrace.datasets.mnist", {}),
        ("neuralrace.gates.bumps", {}),
        ("neuralrace.metrics.balance", {}),
        ("neuralrace.training.trainer", {"one": BARE, "two": BARE}),
        ("neuralrace.training.sample_tasks", {"one": BARE, "two": BARE}),
        ("neuralrace.training.domain_tasks", {}),
    ],
)
def test_edited_code_makes_the_cells_again_that_use_it(tmp_path, monkeypatch, edited, expected):
    wanted = plan(one=cell(), two=cell(solutions=[], metrics=["half_times"]))
    finish(tmp_path, wanted)
    real = schedule.code_sha256
    file = f"src/{edited.replace('.', '/')}.py"

    def digest(stage, more=()):
        rests = any(path.as_posix().endswith(file) for path in code_files(stage, more))
        return real(stage, more) + "x" * rests

    monkeypatch.setattr(schedule, "code_sha256", digest)
    found = kinds(tmp_path, wanted)
    # what trained anew is measured anew; a metric may rest on the engine's modules itself
    assert {name: each & expected.get(name, KINDS) for name, each in found.items()} == expected


@given(key=st.from_regex(r"[0-9a-f]{64}", fullmatch=True), content=st.binary())
def test_a_seal_tells_the_key_and_the_checksum(tmp_path_factory, key, content):
    path = tmp_path_factory.mktemp("sealed") / "file.nc"
    path.write_bytes(content)
    seal(path, sha256(path), key)
    assert key_of(path) == key
    assert seal_file(path).read_text().splitlines()[1] == f"{sha256(path)}  file.nc"


# Which cells share a job -------------------------------------------------------------------------


def long(steps: int) -> Cell:
    return cell(training={"learning_rate": 0.02, "steps": steps})


@given(
    steps=st.lists(st.sampled_from([400, 40_000, 400_000, 40_000_000]), min_size=1, max_size=12),
    seconds=st.sampled_from([5.0, 40.0]),
    gpus=st.sampled_from([0, 2]),
)
def test_every_cell_has_one_job_and_large_ones_have_their_own(steps, seconds, gpus):
    cells = {f"{number:02d}": long(each) for number, each in enumerate(steps)}
    made = plan({"job_seconds": seconds, "gpus": gpus}, **cells)
    found = list(groups(made))
    assert sorted(name for group in found for name in group.cells) == sorted(made.cells)
    assert len({group.name for group in found}) == len(found)
    for group in found:
        costs = [cost_of(made.cells[name], gpus > 0) for name in group.cells]
        assert {cost.place for cost in costs} == {group.place}
        if len(group.cells) > 1:
            assert all(cost.seconds() < seconds for cost in costs)
            assert group.seconds < 2 * seconds
        assert group.memory_mb == max(cost.memory_mb for cost in costs) < group.asked_mb
    assert list(groups(made)) == found


def wide(**changes) -> Cell:
    """A cell that is faster on a GPU."""
    network = {
        "dataset": {"name": "gaussian_mixture", "inputs": 500, "outputs": 100},
        "network": {"name": "layered", "hidden": [2000, 2000]},
        "init": {"name": "normal"},
        "record": {"every": 10},
    }
    return cell(**network, solutions=[], metrics=[], **changes)


def test_the_configuration_says_where_there_are_gpus_and_this_machine_only_for_itself(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    places = {gpus: next(groups(plan({"gpus": gpus}, one=wide()))).place for gpus in (None, 0, 1)}
    assert places == {None: "gpu", 0: "cpu", 1: "gpu"}
    assert plan(one=wide()).gpus_each == 2


def test_parts_ask_for_what_they_take_and_who_gathers_them_for_no_gpu():
    made = plan({"gpus": 1, "batch": ("init_scale",)}, one=wide(seeds=8))
    one, (gathering,) = part(made, "paper/experiment/one"), groups(made)
    (whole,) = groups(plan({"gpus": 1}, one=wide(seeds=8)))
    assert (one.place, gathering.place, whole.place) == ("gpu", "cpu", "gpu")
    assert one.seconds < whole.seconds
    assert one.memory_mb < whole.memory_mb
    assert gathering.seconds < one.seconds
    (here,) = groups(plan({"gpus": 0}, one=wide(seeds=8)))
    assert on_processors("blind", made.cells).seconds == here.seconds


def test_papers_do_not_share_jobs():
    made = Plan(cells={"one/experiment/main": cell(), "two/experiment/main": cell()})
    assert [group.cells for group in groups(made)] == [(name,) for name in made.cells]


def test_jobs_are_announced_with_their_cost():
    one, *others = groups(plan(one=cell()))
    assert not others
    spent = f"{one.seconds / 60:.1f} core-minutes on processors"
    assert announced(1, [one]) == f"outdated: 1 cells in 1 jobs, estimated at {spent}"
    on_gpu = replace(one, place="gpu", seconds=90.0)
    assert announced(2, [one, on_gpu]).endswith(" on processors and 1.5 minutes on a GPU")


# What they cost ----------------------------------------------------------------------------------


def test_a_gpu_gets_large_cells_alone():
    assert cost_of(wide(), gpu=True).place == "gpu"
    assert cost_of(wide(), gpu=False).place == "cpu"
    assert cost_of(wide(), gpu=True).seconds() < cost_of(wide()).seconds()
    assert cost_of(cell(), gpu=True) == cost_of(cell())


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"training": {"learning_rate": 0.02, "steps": 4000}}, "train"),
        ({"seeds": 200, "record": SPEC["record"]}, "train"),
        ({"metrics": [*SPEC["metrics"], "half_times"]}, "measure"),
        ({"solutions": ["aligned_modes", "flow"]}, "solve"),
    ],
)
def test_more_costs_more(more, key):
    assert getattr(cost_of(cell(**more)), key) > getattr(cost_of(cell()), key)


def test_a_program_is_paid_for_once():
    one, other = cost_of(cell()), cost_of(cell(init_scales=[0.2, 0.4]))
    assert one.program == other.program
    assert other.seconds({one.program}) == other.train + other.solve + other.measure
    assert cost_of(cell(network={"name": "layered", "hidden": [3]})).program != one.program


def test_what_a_cluster_is_asked_for_grows_with_the_data():
    small, large = (
        cost_of(
            cell(dataset={"name": "modes", "singular_values": [1.0], "inputs": n, "outputs": n})
        )
        for n in (3, 3000)
    )
    assert large.memory_mb > small.memory_mb


def test_what_a_cluster_is_asked_for_grows_with_the_records():
    few, many = (cost_of(cell(record=SPEC["record"] | {"every": n})) for n in (400, 1))
    assert many.disk_mb >= few.disk_mb >= 1
    lasting = cost_of(cell(seeds=2000, record=SPEC["record"] | {"every": 1}))
    assert lasting.disk_mb > 50 * many.disk_mb
