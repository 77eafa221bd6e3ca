import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from claims_folder import claim, finding, measure, unassessed
from neuralrace.claims.judge import judge, known_claims
from neuralrace.claims.pages import counts_in_words
from neuralrace.claims.sentences import errors, sentences
from neuralrace.claims.spec import Finding, read_claims
from neuralrace.claims.verdict import allowed, confidence_interval
from neuralrace.results.cells import CellResults, Results

SPREAD = np.array([0.98, 1.0, 1.02, 1.01])


def verdict(work, values, **claimed):
    work.per_seed("deep_linear/e/main", values)
    (row,) = work.judge(claim(**claimed))
    return row.verdict


@pytest.mark.parametrize("kind", ["equality", "qualitative", "bound"])
def test_measured_and_interval(work, kind):
    work.per_seed("deep_linear/e/main", SPREAD)
    relation = None if kind == "equality" else "<="
    (row,) = work.judge(claim(kind, relation=relation))
    assert row.seeds == 4
    assert row.interval is not None
    if kind == "bound":
        assert row.measured == 1.02
        assert row.interval == (0.98, 1.02)
        assert row.interval_is == "range over seeds"
    else:
        assert row.measured == pytest.approx(SPREAD.mean(), rel=1e-14)
        scipys = stats.ttest_1samp(SPREAD, 0).confidence_interval(0.95)
        assert row.interval == pytest.approx((scipys.low, scipys.high), rel=1e-12)
        assert row.interval_is == "95% confidence interval of the mean over seeds (Student t)"


def test_interval_of_the_mean_has_its_nominal_coverage():
    rng = np.random.default_rng(0)
    intervals = np.array([confidence_interval(rng.normal(size=4), "mean") for _ in range(2000)])
    covered = np.sum((intervals[:, 0] < 0) & (intervals[:, 1] > 0))
    assert stats.binomtest(int(covered), 2000, 0.95).pvalue > 0.01


def test_single_run_is_its_own_interval(work):
    work.per_seed("deep_linear/e/main", [1.05])
    (row,) = work.judge(claim())
    assert (row.measured, row.interval, row.seeds) == (1.05, (1.05, 1.05), 1)
    assert row.interval_is == "the value of a single run"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (SPREAD, "holds"),
        (SPREAD + 1, "contradicted"),
        (SPREAD - 1, "contradicted"),
        (SPREAD + 0.1, "undecided"),
        ([0.0, 2.0], "undecided"),  # the mean is right, the interval is wide
        ([1.0, np.nan], "undefined"),
        ([1.0, np.inf], "undefined"),
    ],
)
def test_equality(work, values, expected):
    assert verdict(work, values) == expected


@pytest.mark.parametrize(
    ("relation", "values", "expected"),
    [
        ("<=", [0.5, 1.05], "holds"),
        ("<=", [0.5, 0.5, 0.5, 0.5, 1.15], "contradicted"),  # one seed is enough
        (">=", [0.95, 7.0], "holds"),
        (">=", [0.85, 7.0], "contradicted"),
        ("<=", [0.5, np.nan], "undefined"),
    ],
)
def test_bound(work, relation, values, expected):
    assert verdict(work, values, kind="bound", relation=relation) == expected


@pytest.mark.parametrize(
    ("relation", "values", "expected"),
    [
        ("<=", [0.5, 0.5, 0.5, 0.5, 1.15], "holds"),  # the mean counts, not the worst seed
        ("<=", SPREAD + 0.1, "undecided"),
        ("<=", SPREAD + 1, "contradicted"),
        (">=", SPREAD, "holds"),
        (">=", SPREAD - 0.1, "undecided"),
        (">=", SPREAD - 1, "contradicted"),
        (">=", [np.nan, np.nan], "undefined"),
    ],
)
def test_qualitative(work, relation, values, expected):
    assert verdict(work, values, kind="qualitative", relation=relation) == expected


@pytest.mark.parametrize(
    ("power", "expected"), [(1.0, "holds"), (2.0, "contradicted"), (1.1, "undecided")]
)
def test_slope(work, power, expected):
    noise = np.array([-0.02, 0.0, 0.02])
    for rate in (0.01, 0.1, 1.0):
        spec = {"training": {"learning_rate": rate}}
        work.per_seed(f"deep_linear/e/rate-{rate}", rate ** (power + noise), spec)
    fit = {"x": "training.learning_rate", "scale": "loglog"}
    (row,) = work.judge(claim("slope", measure=measure(fit=fit)))
    assert row.verdict == expected
    assert row.measured == pytest.approx(power, rel=1e-12)
    assert row.interval == pytest.approx(confidence_interval(power + noise, "mean"), rel=1e-12)


@pytest.mark.parametrize(
    ("values", "changes", "low", "high"),
    [
        ([1.0, 1.0, 0.97], {}, None, 1.0),
        ([0.0, 0.0, 0.03], {}, 0.0, None),
        ([1.0, 1.0, 0.97], {"metric": "other"}, None, None),
        ([0.0, 0.0, 0.03], {"minus": {"cells": "*/main", "metric": "other"}}, None, None),
    ],
)
def test_intervals_of_shares_lie_from_0_to_1(work, values, changes, low, high):
    zeros = np.zeros(3) if "minus" in changes else np.array(values)
    arrays = {"localised_share": (("seed",), np.array(values)), "other": (("seed",), zeros)}
    work.metrics("deep_linear/e/main", None, **arrays, seed=("seed", np.arange(3)))
    of = measure(metric="localised_share") | changes
    (row,) = work.judge(claim(value=0.5, tolerance=0.6, measure=of))
    whole = confidence_interval(np.array(values), "mean")
    assert whole[0] < 0 or whole[1] > 1
    ends = [end if cut is None else cut for end, cut in zip(whole, (low, high), strict=True)]
    assert row.interval == pytest.approx(ends, rel=1e-12)


ORDERED = np.array([[1.0, 1.1, 0.9], [2.0, 2.1, 1.9], [2.5, 2.7, 2.3]])


@pytest.mark.parametrize(
    ("levels", "least", "expected"),
    [
        (ORDERED, 0.0, "holds"),
        (ORDERED[::-1], 0.0, "contradicted"),
        (ORDERED[[0, 2, 1]], 0.0, "contradicted"),
        (ORDERED[[0, 0]], 0.0, "contradicted"),  # equal values are not ordered
        (ORDERED[[0, 1]], 1.1, "contradicted"),
        (ORDERED, 0.5, "undecided"),
        ([[1.0, 1.0], [2.0, 1.0], [3.0, 3.0]], 0.0, "undecided"),
        ([[1.0, 1.0], [2.0, np.nan], [3.0, 3.0]], 0.0, "undefined"),
    ],
)
def test_ordering(work, levels, least, expected):
    for i, values in enumerate(levels):
        work.per_seed(f"deep_linear/e/level-{i}", values)
    sequence = [measure(f"*/level-{i}") for i in range(len(levels))]
    (row,) = work.judge(claim("ordering", value=least, tolerance=0.0, sequence=sequence))
    assert row.verdict == expected


def test_ordering_shows_its_weakest_increase_paired_by_seed(work):
    for i, values in enumerate(ORDERED):
        work.per_seed(f"deep_linear/e/level-{i}", values)
    sequence = [measure(f"*/level-{i}") for i in range(3)]
    (row,) = work.judge(claim("ordering", value=0.0, tolerance=0.0, sequence=sequence))
    differences = ORDERED[2] - ORDERED[1]
    assert row.measured == pytest.approx(0.5, rel=1e-12)
    assert row.interval == pytest.approx(confidence_interval(differences, "mean"), rel=1e-12)
    assert row.evidence == tuple(
        (work.results / f"deep_linear/e/level-{i}/metrics.nc").as_posix() for i in range(3)
    )


# Over seeds ------------------------------------------------------------------------------------


def median_interval(values):
    """By order statistics: the widest pair that covers the median with at least 95%."""
    n, values = len(values), np.sort(values)
    below = max(k for k in range(n // 2) if stats.binom.cdf(k, n, 0.5) <= 0.025)
    return values[below], values[n - 1 - below]


def test_median_with_a_heavy_tail(work):
    """Six outliers move the mean out of the allowed range, but not the median."""
    rng = np.random.default_rng(3)
    values = 1 + 0.02 * rng.standard_normal(40)
    values[:6] = 50.0
    work.per_seed("deep_linear/e/main", values)
    mean, median = work.judge(
        claim(id="mean", expect="undecided"), claim(id="median", over_seeds="median")
    )
    assert mean.verdict != "holds"
    assert median.verdict == "holds"
    assert median.measured == np.median(values)
    assert median.interval_is == "95% confidence interval of the median over seeds (bootstrap)"
    assert median.interval is not None
    scipys = stats.bootstrap(
        (values,), np.median, n_resamples=20_000, method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    np.testing.assert_allclose(median.interval, scipys, atol=2e-3)
    np.testing.assert_allclose(median.interval, median_interval(values), atol=6e-3)


def test_interval_of_the_median_has_nearly_its_nominal_coverage():
    """For the Cauchy distribution; with ten seeds the bootstrap interval is a little short."""
    rng = np.random.default_rng(0)
    intervals = np.array(
        [confidence_interval(rng.standard_cauchy(10), "median") for _ in range(300)]
    )
    covered = np.mean((intervals[:, 0] < 0) & (intervals[:, 1] > 0))
    assert 0.9 < covered < 0.99


def test_equal_seeds_are_their_own_median():
    assert confidence_interval(np.full(5, 0.3), "median") == (0.3, 0.3)


@pytest.mark.parametrize("kind", ["equality", "qualitative", "ordering"])
def test_one_failing_seed_contradicts_the_worst(work, kind):
    """It contradicts neither the mean nor the median: "each" and "every" need `worst`."""
    work.per_seed("deep_linear/e/main", [1.0] * 39 + [1.15])
    work.per_seed("deep_linear/e/before", [-0.2] * 39 + [0.15])  # increases of 1.2, and one of 1
    parts = {
        "equality": {"measure": measure("*/main")},
        "qualitative": {"measure": measure("*/main"), "relation": "<="},
        "ordering": {"sequence": [measure("*/before"), measure("*/main")], "value": 1.15},
    }[kind]
    known = {"worst": "contradicted", "mean": "holds", "median": "holds"}
    tolerance = 0.0 if kind == "ordering" else 0.1
    for statistic, verdict in known.items():
        (row,) = work.judge(claim(kind, tolerance=tolerance, over_seeds=statistic, **parts))
        assert row.verdict == verdict, statistic
        if statistic == "worst":
            assert row.measured == pytest.approx(1.0 if kind == "ordering" else 1.15)
            assert row.interval_is == "range over seeds"


def test_worst_holds_where_every_seed_does(work):
    work.per_seed("deep_linear/e/main", [0.94, 1.0, 1.09])
    (row,) = work.judge(claim(over_seeds="worst"))
    assert (row.verdict, row.interval) == ("holds", (0.94, 1.09))
    assert row.measured == 1.09  # closer to its edge than 0.94


# Status ----------------------------------------------------------------------------------------

OURS = {"differs": ["the data are ours"]}
PROOF = {"argument": "for n = 2 it is not so"}


@pytest.mark.parametrize(
    ("shift", "more", "status"),
    [
        (0.0, {}, "reproduced"),
        (0.0, OURS, "reproduced"),
        (0.1, {}, "undecided"),  # this is no evidence against a paper
        (np.nan, {}, "undecided"),  # neither do undefined values
        (1.0, {}, "wrong"),
        (1.0, OURS, "not reproduced"),
        (1.0, OURS | PROOF, "wrong"),  # an argument holds in any set-up
        (0.1, OURS | PROOF, "undecided"),
        (0.0, {"identity": "it is one"}, "identity"),
        (1.0, {"identity": "it is one"}, "wrong"),
        (0.0, {"analogue": "digits in place of photographs"}, "analogue"),
        (1.0, OURS | {"analogue": "digits in place of photographs"}, "not reproduced"),
    ],
)
def test_status(work, shift, more, status):
    work.per_seed("deep_linear/e/main", SPREAD + shift)
    if "identity" in more:
        more = more | {"expect": "identity"}
    if "argument" in more:
        more = more | {"expect": "wrong"}
    (row,) = work.judge(claim(**({"expect": status} | more)))
    assert row.status == status
    assert row.differs == tuple(more.get("differs", ()))
    known = more.get("expect", status)
    surprise = None if known == status else f"known as {known}, came out {status}"
    assert row.surprise == surprise


@pytest.mark.parametrize("expect", ["reproduced", "wrong", "not reproduced", "undecided"])
@pytest.mark.parametrize(
    ("shift", "status"), [(0.0, "reproduced"), (0.1, "undecided"), (1.0, "wrong")]
)
def test_another_status_than_the_known_one_is_a_surprise(work, expect, shift, status):
    work.per_seed("deep_linear/e/main", SPREAD + shift)
    (row,) = work.judge(claim(expect=expect))
    assert row.status == status
    surprise = f"known as {expect}, came out {status}"
    assert row.surprise == (None if expect == status else surprise)


def test_a_computed_difference_without_differs_is_enough_for_not_reproduced(work):
    setups = {"main": {"locator": "sec. 2", "printed": {}, "keys": {"training.steps": 10}}}
    for steps, status in ((10, "wrong"), (20, "not reproduced")):
        work.per_seed(f"deep_linear/e/{steps}", SPREAD + 1, {"training": {"steps": steps}})
        on = {"measure": measure(f"*/e/{steps}"), "expect": status}
        (row,) = work.judge(claim(**on), setups=setups)
        assert row.status == status


@pytest.mark.parametrize(
    ("shift", "status"),
    [(0.0, "holds"), (0.1, "undecided"), (1.0, "does not hold"), (np.nan, "undecided")],
)
def test_a_finding_must_hold(work, shift, status):
    work.per_seed("deep_linear/e/main", SPREAD + shift)
    (row,) = work.judge_findings(finding())
    assert row.status == status
    assert row.surprise == (None if status == "holds" else f"known as holds, came out {status}")


def test_a_finding_that_is_known_not_to_hold(work):
    work.per_seed("deep_linear/e/main", SPREAD + 1)
    known, sudden = work.judge_findings(
        finding(expect="does not hold", reason="it was expected from theory"), finding(id="sudden")
    )
    assert (known.status, known.surprise) == ("does not hold", None)
    assert known.reason == "it was expected from theory"
    assert sudden.surprise == "known as holds, came out does not hold"


def test_an_argument_needs_no_measure(work):
    absent = {"measure": None, "expected": None, "tolerance": None, "alternatives": None}
    proof = {"expect": "wrong", "argument": "for n = 2 it is not so"}
    (row,) = work.judge(claim(**proof | absent))
    assert (row.status, row.verdict, row.surprise) == ("wrong", None, None)


def test_a_claim_without_a_measured_rival_is_weak(work):
    work.per_seed("deep_linear/e/main", SPREAD)
    work.per_seed("deep_linear/f/main", SPREAD + 5)
    measured = {"name": "measured", "measure": measure("*/f/*")}
    number = {"name": "a number", "value": 5.0, "source": "theory"}
    on = {"measure": measure("*/e/*")}
    one, other = work.judge(
        claim(alternatives=[number], **on), claim(id="b", alternatives=[number, measured], **on)
    )
    assert (one.weak, other.weak) == (True, False)


def test_claims_of_one_quote_are_one_sentence(work):
    work.per_seed("deep_linear/e/main", SPREAD)
    rows = work.judge(
        claim(id="a"),
        claim(id="b", quote="And so is this."),
        claim(id="c", quote="It  is\nso."),
        unassessed(id="d"),
    )
    assert [row.sentence for row in rows] == [1, 2, 1, 1]
    one, other = sentences(rows)
    assert ([row.id for row in one.rows], one.status, one.deciding.id) == (
        ["a", "c", "d"], "reproduced", "a",
    )  # fmt: skip
    assert other.number == 2


def test_an_error_counts_once_whatever_follows_from_it(work):
    proof = {"expect": "wrong", "argument": "for n = 2 it is not so"}
    absent = {"measure": None, "expected": None, "tolerance": None, "alternatives": None}
    rows = work.judge(
        claim(id="a", **proof | absent),
        claim(id="b", quote="Hence this.", follows_from="a", **proof | absent),
    )
    assert [row.id for row in errors(rows)] == ["a"]
    assert counts_in_words(rows) == "Of 2 sentences tested, by 2 claims: 2 wrong (1 error)."


def test_what_is_known_needs_no_results(work):
    path = work.write(claim(expect="wrong", **OURS), findings=[finding()])
    (row,), (found,) = known_claims(read_claims([path]))
    assert (row.status, row.verdict, row.measured, row.differs) == (
        "wrong", None, None, ("the data are ours",),
    )  # fmt: skip
    assert (row.title, row.sentence, found.status) == ("On learning", 1, "holds")


def test_undefined_seeds_are_counted(work):
    work.per_seed("deep_linear/e/main", [1.0, np.nan, np.inf, 1.0, 1.0])
    (row,) = work.judge(claim())
    assert (row.undefined_seeds, row.seeds) == (2, 5)
    assert row.measured is None
    assert row.interval is None


def test_not_assessed_reads_nothing(work):
    expected = {"value": 1.0, "source": "eq. 1"}
    first, second = work.judge(unassessed(expected=expected), unassessed(id="another"))
    assert first.status == second.status == "not assessed"
    assert first.surprise is None
    assert first.verdict is None
    assert first.evidence == ()
    assert (first.expected, second.expected) == (1.0, None)


@settings(max_examples=200)
@given(
    kind=st.sampled_from(["equality", "slope", "bound", "qualitative", "ordering"]),
    relation=st.sampled_from(["<=", ">="]),
    expected=st.floats(-1e3, 1e3),
    tolerances=st.tuples(st.floats(0, 1e3), st.floats(0, 1e3)),
)
def test_a_larger_tolerance_widens_the_allowed_range(kind, relation, expected, tolerances):
    relation = relation if kind in ("bound", "qualitative") else None
    tight, loose = sorted(tolerances)
    low, high = allowed(kind, relation, expected, tight)
    wider_low, wider_high = allowed(kind, relation, expected, loose)
    assert wider_low <= low <= high <= wider_high


RANK = {"contradicted": 0, "undecided": 1, "holds": 2}


@settings(max_examples=40)
@given(
    kind=st.sampled_from(["equality", "bound", "qualitative"]),
    values=st.lists(st.floats(-2, 4), min_size=1, max_size=4),
)
def test_verdict_is_monotone_in_tolerance(kind, values):
    m = xr.DataArray(values, {"seed": np.arange(len(values))}, "seed")
    metrics = xr.Dataset({"m": m}, attrs={"spec": "{}"})
    results = Results([CellResults("deep_linear/e/main", Path(), metrics=metrics)])
    relation = None if kind == "equality" else "<="
    ranks = []
    for tolerance in (0.0, 0.5, 1.0, 2.0, 4.0, 100.0):
        content = finding(kind, tolerance=tolerance, relation=relation)
        outcome = judge(Finding.model_validate_json(json.dumps(content)), results)
        ranks.append(RANK[outcome["verdict"]])
    assert ranks == sorted(ranks)
    assert ranks[-1] == RANK["holds"]
