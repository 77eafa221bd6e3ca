"""Which cells claims rest on; what their metrics will not give is refused before anything runs."""

import json
from functools import partial

import pytest
import workplace
from workplace import claim, finding, unassessed

from neuralrace.claims.inputs import needed_cells
from neuralrace.claims.spec import read_claims
from neuralrace.config.cell import Cell
from neuralrace.errors import UserError

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
CELL = Cell.model_validate_json(json.dumps(SPEC))
measure = partial(workplace.measure, metric="half_time")


def test_needed_cells_are_those_of_every_measure(work):
    cells = {f"p/{e}/main": CELL for e in ("unused", *"fbacdeghijk")}
    first = claim(
        measure=measure("p/a/*", minus=measure("p/b/*", over=measure(["p/c/*", "p/f/*"]))),
        alternatives=[
            {"name": "instead", "instead": {"cells": "p/g/*"}},
            {"name": "instead of what is taken away", "instead": {"minus": measure("p/h/*")}},
            {"name": "another", "measure": measure("p/i/*")},
            {"name": "others", "sequence": [measure("p/i/*"), measure("p/j/*")]},
            {"name": "number", "value": 0.0, "source": "theory"},
        ],
    )
    second = claim("ordering", id="second", sequence=[measure("p/d/*"), measure("p/e/m*")])
    skipped = unassessed(id="skipped")
    found = finding(measure=measure("p/k/*"))
    claims = read_claims([work.write(first, second, skipped, findings=[found])])
    assert needed_cells(claims, cells) == [f"p/{e}/main" for e in "abcdefghijk"]


def test_a_glob_without_cells_names_its_claim(work):
    claims = read_claims([work.write(claim(measure=measure("p/a/*", minus=measure("q/*"))))])
    with pytest.raises(UserError, match=r"claims.yaml: a-claim: cells: 'q/\*' matches no"):
        needed_cells(claims, {"p/a/main": CELL})


def test_a_glob_of_an_alternative_without_cells_names_its_claim(work):
    nowhere = [{"name": "nowhere", "instead": {"cells": "q/*"}}]
    claims = read_claims([work.write(claim(measure=measure("p/a/*"), alternatives=nowhere))])
    with pytest.raises(UserError, match=r"claims.yaml: a-claim: cells: 'q/\*' matches no"):
        needed_cells(claims, {"p/a/main": CELL})


def refused(work, **read):
    claims = read_claims([work.write(claim(measure=measure("p/a/*", **read)))])
    with pytest.raises(UserError) as caught:
        needed_cells(claims, {"p/a/main": CELL})
    return str(caught.value)


@pytest.mark.parametrize(
    ("read", "says"),
    [
        ({"metric": "half_tim"}, ["metric: 'half_tim'", "did you mean half_time", "diverged_at"]),
        ({"metric": "imbalance_drift"}, ["metric: 'imbalance_drift'", "add balance to its met"]),
        (
            {"select": {"mod": 1}},
            ["select: 'mod' is no dimension", "did you mean mode?", "has init_scale, seed, mode"],
        ),
        ({"select": {"layer": 1}}, ["select: 'layer'", "it has init_scale, seed, mode"]),
        ({"select": {"init_scale": 0.2}}, ["select: init_scale: 0.2", "use one of 0.1, 0.3"]),
        ({"select": {"init_scale": "0.1"}}, ["select: init_scale: '0.1'", "use one of 0.1, 0.3"]),
        (
            {"fit": {"x": "training.learning_rte", "scale": "linear"}},
            ["fit.x: 'training.learning_rte' is neither a coordinate of half_time of p/a/main"],
        ),
        ({"fit": {"x": "dataset.name", "scale": "linear"}}, ["fit.x: 'dataset.name' is neither"]),
        (
            {"crossing": {"x": "init_scal", "level": 1, "direction": "rising"}},
            ["crossing.x: 'init_scal'", "did you mean init_scale?", "it has init_scale, mode"],
        ),
        ({"fit": {"x": "seed", "scale": "linear"}}, ["fit.x: 'seed' is neither"]),
    ],
)  # fmt: skip
def test_what_metrics_will_not_give_is_refused(work, read, says):
    told = refused(work, **read)
    assert told.startswith(f"{work.root}/deep_linear/claims.yaml: a-claim: {says[0]}")
    for words in says:
        assert words in told


@pytest.mark.parametrize(
    "read",
    [
        {},
        {"metric": "diverged_at"},
        {"select": {"mode": 1, "init_scale": 0.3}},
        {"fit": {"x": "mode", "scale": "linear"}},
        {"fit": {"x": "init_scale", "scale": "linear"}},
        {"crossing": {"x": "training.learning_rate", "level": 1, "direction": "rising"}},
    ],
)
def test_what_metrics_will_give_is_accepted(work, read):
    claims = read_claims([work.write(claim(measure=measure("p/a/*", **read)))])
    assert needed_cells(claims, {"p/a/main": CELL, "p/b/main": CELL}) == ["p/a/main"]
