"""Alternatives: rivals that must fail a claim, which means that they are contradicted."""

import json

import numpy as np
import pytest

from claims_folder import claim, finding, measure
from neuralrace.claims.measure import per_seed
from neuralrace.claims.spec import Alternative, Measure
from neuralrace.claims.table import refuse_surprises
from neuralrace.errors import UserError
from neuralrace.results.cells import open_results

OURS = [1.0, 1.02, 0.98, 1.01]
LINE = {"x": "training.learning_rate", "scale": "loglog"}


@pytest.fixture
def filled(work):
    """A claim's own cell, `main`, and cells that are near it or far from it."""
    for name, shift in (("main", 0.0), ("near", 0.05), ("edge", 0.1), ("far", 1.0)):
        values = np.add(OURS, shift)
        work.metrics(
            f"deep_linear/{name}/main",
            m=(("seed", "solution"), np.stack([values, values + 2], axis=1)),
            other=(("seed",), values - 5),
            seed=("seed", np.arange(4)),
            solution=("solution", np.array(["flow", "exact"])),
        )
    work.per_seed("deep_linear/broken/main", [1.0, np.nan, 1.0, 1.0])
    return work


ON = measure("*/main/main", select={"solution": "flow"})


def judged(work, alternative, **more):
    """The row of a claim with one alternative, and the judged alternative."""
    keys = {"measure": ON} | more | {"alternatives": [{"name": "another"} | alternative]}
    (row,) = work.judge(claim(**keys))
    (rival,) = row.alternatives
    return row, rival


FORMS = {
    "value": (lambda far: {"value": 1.0 + far, "source": "a rival"}),
    "instead": (lambda far: {"instead": {"cells": f"*/{'far' if far else 'near'}/main"}}),
    "measure": (
        lambda far: {
            "measure": measure(f"*/{'far' if far else 'near'}/main", select={"solution": "flow"})
        }
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_far_alternative_fails_and_a_near_one_is_a_surprise(filled, form):
    row, rival = judged(filled, FORMS[form](far=1.0))
    assert (rival.verdict, rival.fails, row.surprise) == ("contradicted", True, None)
    refuse_surprises([row])
    row, rival = judged(filled, FORMS[form](far=0.0))
    assert (rival.verdict, rival.fails) == ("holds", False)
    assert row.status == "reproduced"
    assert row.surprise == "has no power against: another"
    with pytest.raises(UserError, match=r"a-claim \(eq. 1\): has no power against: another"):
        refuse_surprises([row])


@pytest.mark.parametrize(("cell", "verdict"), [("edge", "undecided"), ("broken", "undefined")])
def test_undecided_is_not_enough(filled, cell, verdict):
    row, rival = judged(filled, {"measure": measure(f"*/{cell}/main", **(
        {"select": {"solution": "flow"}} if cell == "edge" else {}))})  # fmt: skip
    assert (rival.verdict, rival.fails) == (verdict, False)
    assert row.surprise == "has no power against: another"
    assert (rival.measured is None) == (verdict == "undefined")


def test_every_powerless_alternative_is_named(filled):
    near = {"instead": {"cells": "*/near/main"}}
    rivals = [{"name": name} | near for name in ("first", "second")]
    rivals.append({"name": "third", "value": 7.0, "source": "theory"})
    (row,) = filled.judge(claim(measure=ON, alternatives=rivals))
    assert row.surprise == "has no power against: first, second"
    (row,) = filled.judge(claim(measure=ON, alternatives=rivals, value=3.0, expect="undecided"))
    # 3 is far from all alternatives, so all fail
    assert row.surprise == "known as undecided, came out wrong"
    (row,) = filled.judge_findings(finding(measure=ON, alternatives=rivals))
    assert row.surprise == "has no power against: first, second"


def test_instead_replaces_keys_and_keeps_the_rest(filled):
    _, rival = judged(filled, {"instead": {"select": {"solution": "exact"}}})
    assert rival.measured == pytest.approx(np.mean(OURS) + 2, rel=1e-14)
    over = measure("*/far/main", "other")
    _, rival = judged(filled, {"instead": {"over": over}})
    ratio = np.divide(OURS, np.add(OURS, 1.0 - 5))
    assert rival.measured == pytest.approx(ratio.mean(), rel=1e-14)
    row, _ = judged(filled, {"instead": {"cells": "*/far/main"}})
    assert row.evidence == ((filled.results / "deep_linear/main/main/metrics.nc").as_posix(),)


@pytest.mark.parametrize(
    ("own", "instead", "expected"),
    [
        ({}, {"metric": "n"}, {"metric": "n"}),
        ({}, {"cells": "b/*"}, {"cells": "b/*"}),
        ({"reduce": "mean"}, {"reduce": "max"}, {"reduce": "max"}),
        ({"fit": LINE}, {"fit": LINE | {"scale": "linear"}}, {"fit": LINE | {"scale": "linear"}}),
        ({"minus": measure("b/*")}, {"minus": measure("c/*")}, {"minus": measure("c/*")}),
        ({"select": {"mode": 1, "init_scale": 0.1}}, {"select": {"mode": [2, 3]}},
         {"select": {"mode": [2, 3], "init_scale": 0.1}}),
        ({"over": measure("b/*")}, {"metric": "n"}, {"metric": "n", "over": measure("b/*")}),
    ],
)  # fmt: skip
def test_instead_equals_the_measure_with_its_keys(own, instead, expected):
    alternative = Alternative.model_validate_json(json.dumps({"name": "a", "instead": instead}))
    first = Measure.model_validate_json(json.dumps(measure(**own)))
    assert alternative.instead is not None
    second = Measure.model_validate_json(json.dumps(measure(**(own | expected))))
    assert alternative.instead.of(first) == second


# Orderings -------------------------------------------------------------------------------------

RISING = np.array([[1.0, 1.2, 1.1], [2.0, 2.2, 2.1], [3.0, 3.2, 3.1]])


@pytest.fixture
def levels(work):
    for i, values in enumerate(RISING):
        work.metrics(
            f"deep_linear/level/{i}",
            m=(("seed",), values),
            falling=(("seed",), -values),
            seed=("seed", np.arange(3)),
        )
    return work


def ordered(work, alternative):
    sequence = [measure(f"*/level/{i}") for i in range(3)]
    return judged(work, alternative, kind="ordering", measure=None, value=0.0, tolerance=0.0,
                  sequence=sequence)  # fmt: skip


@pytest.mark.parametrize(
    ("alternative", "verdict", "measured"),
    [
        ({"sequence": [measure("*/level/1"), measure("*/level/0")]}, "contradicted", -1.0),
        ({"sequence": [measure("*/level/0"), measure("*/level/2")]}, "holds", 2.0),
        ({"instead": {"metric": "falling"}}, "contradicted", -1.0),
        ({"value": 0.0, "source": "no increase"}, "contradicted", 0.0),
        ({"value": 1e-9, "source": "an increase"}, "holds", 1e-9),
        ({"shuffled": True}, "holds", 1.0),  # of all increases, 1.2, 0.9 and 0.9 with each pair
    ],
)
def test_alternatives_of_an_ordering(levels, alternative, verdict, measured):
    row, rival = ordered(levels, alternative)
    assert rival.verdict == verdict
    assert rival.measured == pytest.approx(measured, abs=1e-12)
    assert row.surprise == (None if rival.fails else "has no power against: another")


# Shuffled pairs --------------------------------------------------------------------------------


@pytest.fixture
def pairs(work):
    work.per_seed("deep_linear/a/main", [10.0, 20.0, 40.0])
    work.per_seed("deep_linear/b/main", [10.0, 20.0, 40.0])
    work.metrics("deep_linear/c/main", m=(("mode",), np.array([10.0])))
    return work


@pytest.mark.parametrize(
    ("key", "own", "shuffled"),
    [
        ("minus", [0.0, 0.0, 0.0], [10 - 20, 20 - 40, 40 - 10]),
        ("over", [1.0, 1.0, 1.0], [10 / 20, 20 / 40, 40 / 10]),
    ],
)
def test_shuffled_pairs_each_seed_with_the_next(pairs, key, own, shuffled):
    pair = Measure.model_validate(measure("*/a/main", **{key: measure("*/b/main")}))
    results = open_results(pairs.results, pairs.cells)
    np.testing.assert_array_equal(per_seed(pair, results).values, own)
    np.testing.assert_array_equal(per_seed(pair, results, shuffled=True).values, shuffled)
    # the same through a claim
    expected = {"minus": 0.0, "over": 1.0}[key]
    row, rival = judged(
        pairs, {"shuffled": True}, value=expected, tolerance=1.0, over_seeds="worst",
        measure=measure("*/a/main", **{key: measure("*/b/main")}),
    )  # fmt: skip
    assert row.verdict == "holds"
    assert (rival.verdict, rival.interval) == ("contradicted", (min(shuffled), max(shuffled)))


def test_shuffled_increases_are_those_to_the_next_seed(pairs):
    sequence = [measure("*/a/main"), measure("*/b/main")]
    row, rival = judged(
        pairs, {"shuffled": True}, kind="ordering", measure=None, sequence=sequence, value=-1.0,
        tolerance=0.0, over_seeds="worst",
    )  # fmt: skip
    assert row.interval == (0.0, 0.0)
    assert rival.interval == (10 - 40, 40 - 20)  # 20 - 10, 40 - 20, 10 - 40
    assert rival.verdict == "contradicted"


def test_shuffling_a_single_measure_or_one_without_seeds_has_no_power(pairs):
    row, rival = judged(pairs, {"shuffled": True}, measure=measure("*/a/main"), value=23.0,
                        tolerance=100.0)  # fmt: skip
    assert (rival.measured, rival.verdict) == (row.measured, "holds")
    assert row.surprise is not None
    difference = measure("*/a/main", minus=measure("*/c/main"))
    row, rival = judged(pairs, {"shuffled": True}, measure=difference, value=13.0, tolerance=100.0)
    assert rival.interval == row.interval
    assert row.surprise is not None
