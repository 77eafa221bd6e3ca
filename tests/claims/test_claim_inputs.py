"""Cells that claims need; a measure that their metrics cannot give is refused before a run."""

from functools import partial

import pytest

import claims_folder
from builders import cell_with_requirements
from claims_folder import claim, finding, unassessed
from neuralrace.claims.inputs import needed_cells
from neuralrace.claims.spec import claims_fingerprint, planned_claims, read_claims
from neuralrace.errors import UserError

CELL = cell_with_requirements(
    ["analytic_fit", "learning_times"], init={"name": "aligned"}, solutions=["aligned_modes"]
)
measure = partial(claims_folder.measure, metric="half_time")


def test_claims_that_were_edited_after_planning_are_refused(work):
    file = work.write(claim())
    planned = claims_fingerprint(read_claims([file]))
    assert planned_claims([file], planned) == read_claims([file])
    work.write(claim(id="another"))
    with pytest.raises(UserError, match="claims were edited") as error:
        planned_claims([file], planned)
    assert error.value.remedy == "run the same command again"


def test_needed_cells_are_those_of_every_measure(work):
    cells = {f"p/{e}/main": CELL for e in ("unused", *"fbacdeghijk")}
    first = claim(
        measure=measure("p/a/*", minus=measure("p/b/*", over=measure(["p/c/*", "p/f/*"]))),
        alternatives=[
            {"name": "instead", "instead": {"cells": "p/g/*"}},
            {"name": "instead of minus", "instead": {"minus": measure("p/h/*")}},
            {"name": "another", "measure": measure("p/i/*")},
            {"name": "others", "sequence": [measure("p/i/*"), measure("p/j/*")]},
            {"name": "number", "value": 0.0, "source": "theory"},
        ],
    )
    second = claim("ordering", id="second", sequence=[measure("p/d/*"), measure("p/e/m*")])
    skipped = unassessed(id="skipped")
    claims = read_claims(
        [work.write(first, second, skipped, findings=[finding(measure=measure("p/k/*"))])]
    )
    assert needed_cells(claims, cells) == [f"p/{e}/main" for e in "abcdefghijk"]


NOWHERE = [{"name": "nowhere", "instead": {"cells": "q/*"}}]


@pytest.mark.parametrize(
    "changes",
    [{"measure": measure("p/a/*", minus=measure("q/*"))}, {"alternatives": NOWHERE}],
)
def test_a_glob_without_cells_names_its_claim(work, changes):
    claims = read_claims([work.write(claim(**{"measure": measure("p/a/*")} | changes))])
    with pytest.raises(UserError, match="matches no cell") as error:
        needed_cells(claims, {"p/a/main": CELL})
    assert (error.value.key, error.value.value) == ("a-claim.cells", "'q/*'")


@pytest.mark.parametrize(
    ("changes", "key", "value", "words"),
    [
        ({"metric": "half_tim"}, "metric", "half_tim", ["did you mean half_time", "diverged_at"]),
        ({"metric": "imbalance_drift"}, "metric", "imbalance_drift", ["add balance to its met"]),
        ({"select": {"mod": 1}}, "select", "mod",
         ["is no dimension", "did you mean mode?", "has init_scale, seed, mode"]),
        ({"select": {"layer": 1}}, "select", "layer", ["it has init_scale, seed, mode"]),
        ({"select": {"init_scale": 0.2}}, "select.init_scale", 0.2, ["use one of 0.1, 0.3"]),
        ({"select": {"init_scale": "0.1"}}, "select.init_scale", "0.1", ["use one of 0.1, 0.3"]),
        ({"fit": {"x": "training.learning_rte", "scale": "linear"}}, "fit.x",
         "training.learning_rte", ["is neither a coordinate of half_time of p/a/main"]),
        ({"fit": {"x": "dataset.name", "scale": "linear"}}, "fit.x", "dataset.name", ["neither"]),
        ({"crossing": {"x": "init_scal", "level": 1, "direction": "rising"}}, "crossing.x",
         "init_scal", ["did you mean init_scale?", "it has init_scale, mode"]),
        ({"fit": {"x": "seed", "scale": "linear"}}, "fit.x", "seed", ["is neither"]),
    ],
)  # fmt: skip
def test_a_measure_that_metrics_cannot_give_is_refused(work, changes, key, value, words):
    claims = read_claims([work.write(claim(measure=measure("p/a/*", **changes)))])
    with pytest.raises(UserError) as error:
        needed_cells(claims, {"p/a/main": CELL})
    assert error.value.file == f"{work.root}/deep_linear/claims.yaml"
    assert (error.value.key, error.value.value) == (f"a-claim.{key}", repr(value))
    for each in words:
        assert each in f"{error.value.problem}; {error.value.remedy}"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"metric": "diverged_at"},
        {"select": {"mode": 1, "init_scale": 0.3}},
        {"fit": {"x": "mode", "scale": "linear"}},
        {"fit": {"x": "init_scale", "scale": "linear"}},
        {"crossing": {"x": "training.learning_rate", "level": 1, "direction": "rising"}},
    ],
)
def test_a_measure_that_metrics_can_give_is_accepted(work, changes):
    claims = read_claims([work.write(claim(measure=measure("p/a/*", **changes)))])
    assert needed_cells(claims, {"p/a/main": CELL, "p/b/main": CELL}) == ["p/a/main"]
