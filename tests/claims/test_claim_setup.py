"""Differences from a paper's set-up are computed from the specifications of cells."""

import pytest

from claims_folder import SETUP, claim, finding, measure, unassessed
from neuralrace.errors import UserError

SPEC = {
    "network": {"name": "layered", "hidden": [128, 64], "bias": False},
    "training": {"learning_rate": 0.1, "steps": 100, "batch": None},
    "init_scales": [0.001, 0.01, 0.1],
    "seeds": 10,
}


def judged(work, keys, *, cells="*", select=None, **more):
    """The row of a claim whose paper prints these keys."""
    averaged = measure(cells, select=select or {}, reduce="mean")
    setups = {"main": SETUP | {"keys": keys}}
    (row,) = work.judge(claim(**({"measure": averaged} | more)), setups=setups)
    return row


@pytest.fixture
def work_with(work):
    def make(*specs):
        for number, spec in enumerate(specs):
            work.metrics(
                f"deep_linear/e/{number}",
                spec,
                m=(("init_scale", "seed"), [[1.0, 1.0]] * len(spec["init_scales"])),
                init_scale=("init_scale", spec["init_scales"]),
                seed=("seed", [0, 1]),
            )
        return work

    return make


@pytest.mark.parametrize(
    ("keys", "differences"),
    [
        ({}, []),
        ({"network.name": "layered"}, []),
        ({"network.name": "gated"}, ["network.name: gated in the source, layered here"]),
        ({"training.learning_rate": 0.1 * (1 + 1e-12)}, []),
        ({"training.learning_rate": 0.2}, ["training.learning_rate: 0.2 in the source, 0.1 here"]),
        ({"training.steps": 100.0}, []),
        ({"training.batch": None}, []),
        ({"training.batch": 50}, ["training.batch: 50 in the source, None here"]),
        ({"network.bias": False}, []),
        ({"network.bias": True}, ["network.bias: True in the source, False here"]),
        # a list for a key with one value: all of them were used, and one of them is no difference
        ({"training.learning_rate": [0.01, 0.1]}, []),
        ({"training.learning_rate": [0.01, 0.2]},
         ["training.learning_rate: 0.01, 0.2 in the source, 0.1 here"]),
        # keys with lists of values
        ({"network.hidden": [128, 64]}, []),
        ({"network.hidden": [64, 128]}, ["network.hidden: 64, 128 in the source, 128, 64 here"]),
        ({"network.hidden": [128]}, ["network.hidden: 128 in the source, 128, 64 here"]),
        ({"network.hidden": 128}, ["network.hidden: 128 in the source, 128, 64 here"]),
        # more seeds are no difference, fewer are
        ({"seeds": 10}, []),
        ({"seeds": 5}, []),
        ({"seeds": 50}, ["seeds: 50 in the source, 10 here"]),
        ({"init_scales": [0.001, 0.01, 0.1]}, []),
        ({"init_scales": [0.001, 0.01, 0.1, 1.0]}, []),
        ({"init_scales": [0.001, 0.01]},
         ["init_scales: 0.001, 0.01 in the source, 0.001, 0.01, 0.1 here"]),
        ({"init_scales": 0.1}, ["init_scales: 0.1 in the source, 0.001, 0.01, 0.1 here"]),
        ({"seeds": 50, "network.name": "gated"},
         ["seeds: 50 in the source, 10 here", "network.name: gated in the source, layered here"]),
    ],
)  # fmt: skip
def test_differences_are_listed(work_with, keys, differences):
    row = judged(work_with(SPEC), keys)
    assert sorted(row.differs) == sorted(differences)
    assert row.source_setup.keys == keys
    assert row.source_setup.locator == SETUP["locator"]
    assert row.source_setup.printed == SETUP["printed"]


@pytest.mark.parametrize(
    ("theirs", "select", "difference"),
    [
        (0.1, 0.1, None),
        ([0.001, 0.1], [0.1, 0.001], None),
        (0.1, 0.01, "0.1 in the source, 0.01 here"),
        (0.1, [0.01, 0.1], "0.1 in the source, 0.01, 0.1 here"),
    ],
)
def test_selected_init_scales_are_compared(work_with, theirs, select, difference):
    row = judged(work_with(SPEC), {"init_scales": theirs}, select={"init_scale": select})
    assert row.differs == (() if difference is None else (f"init_scales: {difference}",))


def test_every_value_of_a_sweep_is_compared(work_with):
    slower = SPEC | {"training": SPEC["training"] | {"learning_rate": 0.01}}
    work = work_with(SPEC, slower)
    key = "training.learning_rate"
    assert judged(work, {key: [0.01, 0.1, 1.0]}).differs == ()
    assert judged(work, {key: 0.1}).differs == (f"{key}: 0.1 in the source, 0.1 and 0.01 here",)
    assert judged(work, {key: 0.1}, cells="*/0").differs == ()


def test_cells_of_minus_and_sequence_are_compared_and_those_of_alternatives_not(work_with):
    other = SPEC | {"network": SPEC["network"] | {"name": "gated"}}
    work = work_with(SPEC, other)
    keys = {"network.name": "layered"}
    difference = ("network.name: layered in the source, layered and gated here",)
    minus = measure("*/1", reduce="mean")
    row = judged(work, keys, value=0.0, measure=measure("*/0", reduce="mean", minus=minus))
    assert row.differs == difference
    sequence = [measure("*/0", reduce="mean"), measure("*/1", reduce="mean")]
    row = judged(work, keys, kind="ordering", value=-1.0, sequence=sequence, measure=None)
    assert row.differs == difference
    aside = [{"name": "the other family", "measure": minus}]
    assert judged(work, keys, cells="*/0", alternatives=aside).differs == ()


def test_differences_in_words_follow_computed_ones(work_with):
    row = judged(work_with(SPEC), {"seeds": 50}, differs=["the data are ours"])
    assert row.differs == ("seeds: 50 in the source, 10 here", "the data are ours")


def test_differences_of_a_set_up_are_those_of_all_its_claims(work_with):
    setups = {"main": SETUP | {"keys": {"seeds": 50}, "differs": ["a mask of ours"]}}
    averaged = measure("*", reduce="mean")
    claims = [
        claim(id="first", measure=averaged, differs=["the data are ours"]),
        claim(id="second", measure=averaged),
    ]
    first, second = work_with(SPEC).judge(*claims, setups=setups)
    both = ("seeds: 50 in the source, 10 here", "a mask of ours")
    assert first.differs == (*both, "the data are ours")
    assert second.differs == both


def test_a_claim_that_is_not_assessed_has_no_computed_differences(work_with):
    work = work_with(SPEC)
    setups = {"main": SETUP | {"keys": {"seeds": 50}}}
    (row,) = work.judge(unassessed(), setups=setups)
    assert row.differs == ()
    assert row.source_setup.keys == {"seeds": 50}


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("training.rate", "at 'rate' there are learning_rate, steps, batch"),
        ("dataset.name", "at 'dataset' there are network, training, init_scales, seeds"),
        ("seeds.first", "at 'first' there are none"),
    ],
)
def test_an_unknown_key_is_reported(work_with, key, remedy):
    with pytest.raises(UserError, match="specification of deep_linear/e/0") as error:
        judged(work_with(SPEC), {key: 1})
    assert error.value.file.endswith("deep_linear/claims.yaml")
    assert error.value.key == "a-claim.setup.keys"
    assert (error.value.value, error.value.remedy) == (repr(key), remedy)


def test_findings_have_no_source(work_with):
    (row,) = work_with(SPEC).judge_findings(finding(measure=measure("*", reduce="mean")))
    assert not hasattr(row, "source_setup")
    assert not hasattr(row, "differs")
