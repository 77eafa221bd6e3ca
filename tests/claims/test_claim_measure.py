from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from claims_folder import ClaimsFolder, claim, measure
from neuralrace.claims.measure import per_seed
from neuralrace.claims.spec import Measure
from neuralrace.errors import UserError
from neuralrace.results import cells as results
from neuralrace.results.cells import open_results
from neuralrace.results.files import read_result

RNG = np.random.default_rng(0)
TIMES = RNG.uniform(1, 2, (3, 4, 2))  # (init_scale, seed, mode)
SCALES = np.array([0.001, 0.01, 0.1])
STRENGTHS = np.array([5.0, 2.0])


@pytest.fixture
def filled(work):
    """Two cells with a metric over init scales, seeds, modes and one over solutions."""
    for rate in (0.1, 0.2):
        work.metrics(
            f"deep_linear/e/rate-{rate}",
            {"training": {"learning_rate": rate}, "network": {"name": "layered", "hidden": [4]}},
            times=(("init_scale", "seed", "mode"), TIMES * rate),
            fit=(("solution", "seed"), np.outer([1.0, 2.0], [1.0, 2.0, 3.0, 4.0]) * rate),
            exact=(("mode",), np.array([1.0, 2.0])),
            init_scale=("init_scale", SCALES),
            seed=("seed", np.arange(4)),
            mode=("mode", np.array([1, 2])),
            strength=("mode", STRENGTHS),
            draw=("seed", np.arange(4.0)),
            paired_strength=(["seed", "mode"], np.ones((4, 2))),
            solution=("solution", np.array(["flow", "exact"])),
        )
    return work


def value(work, cells="*/rate-0.1", metric="times", **more):
    evaluated = Measure.model_validate(measure(cells, metric, **more))
    return per_seed(evaluated, open_results(work.results, work.cells)).values


@pytest.mark.parametrize("reduce", ["mean", "max", "min", "median"])
def test_reduces_all_but_seeds(filled, reduce):
    expected = getattr(np, reduce)(0.1 * TIMES, axis=(0, 2))
    np.testing.assert_allclose(value(filled, reduce=reduce), expected, rtol=1e-14)


def test_pools_cells(filled):
    pooled = np.concatenate([0.1 * TIMES, 0.2 * TIMES]).max(axis=(0, 2))
    np.testing.assert_array_equal(value(filled, "deep_linear/*", reduce="max"), pooled)


def test_selects_labels_to_rounding(filled):
    near = 0.01 * (1 + 1e-12)
    values = value(filled, select={"init_scale": near, "mode": 2})
    np.testing.assert_array_equal(values, 0.1 * TIMES[1, :, 1])
    values = value(filled, select={"init_scale": [0.1, 0.001], "mode": 1}, reduce="mean")
    np.testing.assert_allclose(values, 0.1 * TIMES[[2, 0], :, 0].mean(0), rtol=1e-14)
    values = value(filled, metric="fit", select={"solution": "exact"})
    np.testing.assert_allclose(values, 0.2 * np.arange(1, 5), rtol=1e-14)


def test_difference_and_ratio_are_paired_by_seed(filled):
    first = {"init_scale": 0.1, "mode": 1}
    second = measure("*/rate-0.2", "times", select={"init_scale": 0.01, "mode": 2})
    a, b = 0.1 * TIMES[2, :, 0], 0.2 * TIMES[1, :, 1]
    np.testing.assert_allclose(value(filled, select=first, minus=second), a - b, rtol=1e-14)
    np.testing.assert_allclose(value(filled, select=first, over=second), a / b, rtol=1e-14)


def test_a_metric_without_seeds_is_paired_with_every_seed(filled):
    exact = measure("*/rate-0.1", "exact", select={"mode": 2})
    values = value(filled, select={"init_scale": 0.1, "mode": 1}, over=exact)
    np.testing.assert_allclose(values, 0.1 * TIMES[2, :, 0] / 2, rtol=1e-14)
    assert value(filled, metric="exact", reduce="max") == 2.0


def test_division_by_zero_is_undefined(work):
    work.per_seed("deep_linear/e/a", [1.0, 0.0])
    work.per_seed("deep_linear/e/b", [0.0, 2.0])
    values = value(work, "*/a", "m", over=measure("*/b"))
    np.testing.assert_array_equal(values, [np.nan, 0.0])


@pytest.mark.parametrize("reduce", ["mean", "max", "min", "median"])
def test_one_undefined_entry_makes_the_seed_undefined(work, reduce):
    entries = np.array([[1.0, np.inf], [np.nan, 1.0], [1.0, 2.0]])
    work.metrics("deep_linear/e/main", m=(("seed", "mode"), entries), seed=("seed", np.arange(3)))
    values = value(work, "*", "m", reduce=reduce)
    np.testing.assert_array_equal(np.isnan(values), [True, True, False])


@pytest.mark.parametrize("scale", ["loglog", "linear"])
def test_slope_along_a_dimension(filled, scale):
    through = np.log if scale == "loglog" else np.asarray
    fit = {"x": "init_scale", "scale": scale}
    values = value(filled, reduce="mean", fit=fit)
    y = through(0.1 * TIMES.mean(axis=2))
    expected = [stats.linregress(through(SCALES), y[:, seed]).slope for seed in range(4)]
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_slope_along_a_named_coordinate_of_a_selection(filled):
    fit = {"x": "strength", "scale": "loglog"}
    values = value(filled, select={"init_scale": 0.1}, fit=fit)
    y = np.log(TIMES[2])
    expected = (y[:, 0] - y[:, 1]) / np.log(5 / 2)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_slope_across_cells(filled):
    fit = {"x": "training.learning_rate", "scale": "loglog"}
    values = value(filled, "deep_linear/*", reduce="mean", fit=fit)
    np.testing.assert_allclose(values, 1.0, rtol=1e-12)
    fit = {"x": "init_scale", "scale": "linear"}
    pooled = value(filled, "deep_linear/*", select={"mode": 1}, fit=fit)
    y = np.concatenate([0.1 * TIMES[..., 0], 0.2 * TIMES[..., 0]])
    expected = [stats.linregress(np.tile(SCALES, 2), y[:, seed]).slope for seed in range(4)]
    np.testing.assert_allclose(pooled, expected, rtol=1e-12)


def test_slope_of_values_that_are_not_positive_is_undefined_in_loglog(work):
    for rate, values in ((0.1, [1.0, 0.0]), (0.2, [2.0, 2.0])):
        work.per_seed(f"deep_linear/e/{rate}", values, {"training": {"learning_rate": rate}})
    fit = {"x": "training.learning_rate", "scale": "loglog"}
    np.testing.assert_allclose(value(work, "*", "m", fit=fit), [1.0, np.nan], rtol=1e-12)


SHARE = "network.pairs.share"


def swept(work, shares, values):
    """One cell for each share, and one value per seed in each, `m`."""
    for share, per_cell in zip(shares, values, strict=True):
        spec = {"network": {"pairs": {"share": float(share)}}}
        work.per_seed(f"deep_linear/e/share-{share}", per_cell, spec)
    return work


def crossing(work, level, direction, x=SHARE, metric="m", **more):
    keys = {"x": x, "level": level, "direction": direction}
    return value(work, "*", metric, crossing=keys, **more)


def test_crossing_across_cells(work):
    # by seed: inside an interval, at a point, never, there at the first point, back and forth
    values = [[0, 0.8, 1, 1], [0, 0.9, 1, 1], [0, 0.1, 0.2, 0.3], [0.9, 1, 1, 1], [1, 0.5, 0.8, 1]]
    swept(work, [0.6, 0.1, 0.4, 0.2], np.transpose(values)[[3, 0, 2, 1]])
    rising = crossing(work, 0.9, "rising")
    np.testing.assert_allclose(rising, [0.3, 0.2, np.nan, np.nan, np.nan], rtol=1e-14)
    falling = crossing(work, 0.75, "falling")
    np.testing.assert_allclose(falling, [np.nan] * 4 + [0.15], rtol=1e-14)


def test_points_after_a_crossing_do_not_count(work):
    nan = np.nan
    values = [[0, 0.5, 1, nan], [0, nan, 1, 1], [nan, 0, 1, 1], [0, 0.5, nan, 1], [0, 0, 1, np.inf]]
    swept(work, [1, 2, 3, 4], np.transpose(values))
    np.testing.assert_array_equal(crossing(work, 0.75, "rising"), [2.5, nan, nan, nan, 2.75])


def test_difference_of_crossings(work):
    for paper, shift in (("deep_linear", 0.0), ("other", 0.25)):
        for share, values in ((0.25, [0.0, 0.5]), (0.75, [1.0, 1.0])):
            spec = {"network": {"pairs": {"share": share + shift}}}
            work.per_seed(f"{paper}/e/{share}", values, spec)
    rising = {"x": SHARE, "level": 0.75, "direction": "rising"}
    second = measure("other/*", crossing=rising)
    values = value(work, "deep_linear/*", "m", crossing=rising, minus=second)
    np.testing.assert_allclose(values, [-0.25, -0.25], rtol=1e-14)


def first_crossing(x, y, level):
    """The rising crossing of a curve, by a loop over its segments."""
    for start in range(len(x) - 1):
        if not y[start] < level:  # reached already, or undefined
            return np.nan
        if y[start + 1] >= level:
            return np.interp(level, y[start : start + 2], x[start : start + 2])
    return np.nan


@settings(max_examples=20)
@given(
    x=st.lists(st.integers(-1000, 1000), min_size=4, max_size=4, unique=True),
    level=st.sampled_from([-1.0, -0.75, 0.0, 0.1, 1.0, 1.5]),
)
def test_crossing_of_every_curve(x, level):
    curves = np.array(list(product([-1.0, -0.5, 0.0, 1.0, np.nan], repeat=len(x))))
    crossings = {}
    for direction, sign in (("rising", 1), ("falling", -1)):
        with TemporaryDirectory() as folder:
            work = ClaimsFolder(Path(folder))
            work.metrics(
                "deep_linear/e/main",
                m=(("dose", "seed"), sign * curves.T),
                dose=("dose", np.array(x, float)),
                seed=("seed", np.arange(len(curves))),
            )
            crossings[direction] = crossing(work, sign * level, direction, x="dose")
    order = np.argsort(x)
    expected = [first_crossing(np.sort(x), curve[order], level) for curve in curves]
    np.testing.assert_allclose(crossings["rising"], expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(crossings["falling"], crossings["rising"])


def test_a_metric_without_seeds_crosses_once(work):
    for rate, m in ((0.1, 4.0), (0.2, 2.0)):
        work.metrics(f"deep_linear/e/{rate}", {"training": {"learning_rate": rate}},
                     m=(("mode",), np.array([m, m + 1])))  # fmt: skip
    value = crossing(work, 3.0, "falling", x="training.learning_rate", reduce="min")
    assert value == pytest.approx(0.15)


def test_a_crossing_needs_one_point_at_each_x(filled):
    with pytest.raises(UserError, match=r"crossing\.x: 'init_scale': has several points at one"):
        crossing(filled, 1.0, "rising", x="init_scale", metric="times", reduce="mean")


def fit(x, **keys):
    return {"fit": {"x": x, "scale": "linear"}, "reduce": "mean"} | keys


def rising(x, **keys):
    return {"crossing": {"x": x, "level": 1, "direction": "rising"}} | keys


@pytest.mark.parametrize(
    ("changes", "key", "value", "words"),
    [
        ({"cells": "*/nowhere-*"}, "cells", "*/nowhere-*", ["no cell", "deep_linear/e/*"]),
        ({"cells": ["deep_linear/*", "x/*"]}, "cells", "x/*", ["no cell"]),
        ({"metric": "missing"}, "metric", "missing", ["exact, fit, times"]),
        ({"select": {"pair": 1}}, "select", "pair", ["init_scale, seed, mode"]),
        ({"select": {"mode": 3}}, "select.mode", 3.0, ["1, 2"]),
        ({"select": {"mode": "one"}}, "select.mode", "one", ["1, 2"]),
        ({"select": {"init_scale": 0.0100001}}, "select.init_scale", 0.0100001, ["0.01"]),
        ({"metric": "fit", "select": {"solution": 1}}, "select.solution", 1.0, ["flow, exact"]),
        ({}, "reduce", None, ["times has 6 values", "mean, max, min or median"]),
        (fit("network.hidden"), "fit.x", "network.hidden", ["neither"]),
        (fit("training.rate"), "fit.x", "training.rate", ["neither"]),
        (fit("seed"), "fit.x", "seed", ["neither"]),
        (fit("draw"), "fit.x", "draw", ["neither"]),
        (fit("paired_strength"), "fit.x", "paired_strength", ["(init_scale, mode, strength)"]),
        (fit("solution", metric="fit"), "fit.x", "solution", ["(it has none)"]),
        (fit("init_scale", reduce=None, select={"mode": 1, "init_scale": 0.1}), "fit.x",
         "init_scale", ["one value"]),
        (rising("network.name", reduce="mean"), "crossing.x", "network.name",
         ["(init_scale, mode, strength)"]),
        (rising("training.learning_rate", reduce="mean"), "crossing.x", "training.learning_rate",
         ["one value", "two or more"]),
        (rising("mode"), "reduce", None, ["times has 3 values", "mean, max, min or median"]),
    ],
)  # fmt: skip
def test_mistakes_name_file_claim_and_key(filled, changes, key, value, words):
    content = claim("slope" if "fit" in changes else "equality")
    content["measure"] = measure("*/rate-0.1", "times") | changes
    with pytest.raises(UserError) as error:
        filled.judge(content)
    assert error.value.file.endswith("deep_linear/claims.yaml")
    assert error.value.key == f"a-claim.{key}"
    assert error.value.value == ("" if value is None else repr(value))
    for word in words:
        assert word in f"{error.value.problem}; {error.value.remedy}"


def test_a_dimension_without_labels_cannot_be_selected(work):
    work.metrics("deep_linear/e/main", m=(("mode",), np.ones(2)))
    with pytest.raises(UserError, match="select: 'mode': has no labels in m of deep_linear/e/main"):
        value(work, "*", "m", select={"mode": 1})


def test_loglog_needs_positive_x(work):
    work.metrics(
        "deep_linear/e/main",
        m=(("mode",), np.ones(2)),
        mode=("mode", np.array([0, 1])),
    )
    with pytest.raises(UserError, match=r"fit.x: 'mode': is not positive"):
        value(work, "*", "m", fit={"x": "mode", "scale": "loglog"})


def test_seeds_must_pair(work):
    work.per_seed("deep_linear/e/a", [1.0, 2.0])
    work.per_seed("deep_linear/e/b", [1.0, 2.0, 3.0])
    for keys in (
        {"cells": "*/a", "minus": measure("*/b")},
        {"cells": "*/a", "over": measure("*/b")},
        {"cells": "deep_linear/*", "reduce": "mean"},
    ):
        with pytest.raises(UserError, match=r"different seeds .*\[0, 1\] and \[0, 1, 2\]"):
            value(work, metric="m", **keys)
    sequence = [measure("*/a"), measure("*/b")]
    with pytest.raises(UserError, match=r"a-claim.cells: different seeds"):
        work.judge(claim("ordering", sequence=sequence))


def test_missing_metrics_file_is_named(work):
    work.cells.append("deep_linear/e/gone")
    with pytest.raises(UserError, match=r"a-claim: .*deep_linear/e/gone/metrics.nc: .*not found"):
        work.judge(claim())


def test_each_file_is_read_once(work, monkeypatch):
    work.per_seed("deep_linear/e/main", [1.0])
    opened = []
    monkeypatch.setattr(
        results, "read_result", lambda *file: opened.append(file) or read_result(*file)
    )
    work.judge(claim(), claim(id="another"))
    assert len(opened) == 1
