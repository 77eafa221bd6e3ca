"""Ranges: at which other values of settings, and readings of words, a verdict is the same."""

import pytest

from claims_folder import claim, finding, measure
from neuralrace.claims.criteria import CRITERIA
from neuralrace.claims.judge import judge_claims
from neuralrace.claims.spec import read_claims
from neuralrace.claims.variants import VariantTable, VariantVerdict, Varied, judged_as
from neuralrace.errors import UserError

HERE, THERE, FAR = (f"deep_linear/e/{label}" for label in ("here", "there", "far"))


@pytest.fixture
def judged(work):
    """The row of a claim about the cell `here`, where `there` and `far` have other values."""
    work.per_seed(HERE, [1.0, 1.01, 0.99])
    work.per_seed(THERE, [1.5, 1.51, 1.49])
    work.per_seed(FAR, [2.0, 2.01, 1.99])

    def judge(**changes):
        (row,) = work.judge(claim(measure=measure(HERE), **changes))
        return row

    return judge


def elsewhere(*others, setting="size", own=1):
    points = [{"setting": setting, "value": own}]
    return [*points, *({"setting": setting, "value": value} | what for value, what in others)]


def test_other_cells_are_other_values_of_a_setting(judged):
    points = elsewhere((2, {"instead": {"cells": THERE}}), (3, {"measure": measure(FAR)}))
    row = judged(elsewhere=points, expect="depends on", depends="size", tolerance=0.1)
    (size,) = row.ranges
    assert (size.setting, size.bar) == ("size", "**1** ● 2 ○ 3 ○")
    assert size.points[1].measured == pytest.approx(1.5)
    assert (row.status, row.surprise) == ("depends on", None)


def test_a_value_in_words_counts(judged):
    points = elsewhere(("the cited law", {"instead": {"cells": THERE}}), own="the printed law")
    (law,) = judged(elsewhere=points).ranges
    assert law.turns
    assert law.bar == "**the printed law** ● the cited law ○"


@pytest.mark.parametrize(
    ("premise", "status"), [({}, "depends on"), ({"size": "small"}, "reproduced"),
                            ({"size": "large"}, "depends on")],
)  # fmt: skip
def test_a_value_beyond_the_premise_is_shown_and_decides_nothing(judged, premise, status):
    points = elsewhere((2, {"instead": {"cells": THERE}}))
    row = judged(elsewhere=points, premises=premise)
    assert row.status == status
    counts = status == "depends on"
    assert [each.bar for each in row.ranges] == ["**1** ● 2 ○" if counts else "**1** ● (2 ○)"]


def test_sequences_have_ranges_too(work):
    for cell, values in ((HERE, [1.0, 1.1]), (THERE, [2.0, 2.1]), (FAR, [3.0, 3.1])):
        work.per_seed(cell, values)
    rising = [measure(HERE), measure(THERE)]
    falling = [measure(FAR), measure(THERE)]
    points = elsewhere(("reversed", {"sequence": falling}), own="as printed")
    (row,) = work.judge(claim("ordering", sequence=rising, value=0.0, elsewhere=points))
    assert row.ranges[0].bar == "**as printed** ● reversed ○"


@pytest.mark.parametrize(
    "points",
    [
        [{"setting": "size", "value": 2, "instead": {"cells": THERE}}],
        [{"setting": "size", "value": 1}, {"setting": "size", "value": 2}],
    ],
)
def test_a_setting_has_one_own_value(judged, points):
    with pytest.raises(UserError, match="no value of its own cells, or several"):
        judged(elsewhere=points)


def test_a_point_has_one_measure(judged):
    both = {"instead": {"cells": THERE}, "measure": measure(FAR)}
    with pytest.raises(UserError, match="takes one of instead, measure and sequence"):
        judged(elsewhere=elsewhere((2, both)))


# Vague words -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CRITERIA)
def test_readings_lie_on_both_sides_of_a_criterion(name):
    criterion = CRITERIA[name]
    assert min(criterion.strict, criterion.loose) < criterion.value
    assert criterion.value < max(criterion.strict, criterion.loose)


@pytest.mark.parametrize(
    ("value", "verdict", "status", "bar"),
    [
        (1.01, "holds", "reproduced", "0.05 ● **0.1** ● 0.2 ●"),
        (1.075, "holds", "reproduced", "(0.05 ○) **0.1** ● 0.2 ●"),  # in favour of the paper
        (1.15, "contradicted", "depends on", "0.05 ○ **0.1** ○ 0.2 ●"),
        (1.3, "contradicted", "not reproduced", "0.05 ○ **0.1** ○ 0.2 ○"),
    ],
)
def test_words_are_read_in_favour_of_the_paper(judged, value, verdict, status, bar):
    row = judged(value=value, tolerance={"criterion": "near"}, differs=["ours"])
    (near,) = row.ranges
    assert (row.verdict, row.status, near.setting, near.bar) == (verdict, status, "“near”", bar)


def test_a_threshold_is_read_in_several_ways(work):
    work.per_seed(HERE, [0.6, 0.61, 0.59])
    most = {"criterion": "most"}
    (row,) = work.judge(
        claim("qualitative", relation=">=", expected=most, tolerance=0.0, measure=measure(HERE))
    )
    assert (row.status, row.ranges[0].bar) == ("reproduced", "0.33 ● **0.5** ● (0.67 ○)")


def test_findings_show_ranges(work):
    work.per_seed(HERE, [1.07, 1.08, 1.06])
    (row,) = work.judge_findings(finding(measure=measure(HERE), tolerance={"criterion": "near"}))
    assert (row.status, row.ranges[0].varies) == ("holds", True)


# Settings of variants ---------------------------------------------------------------------------


def of_table(work, verdicts, spec, **changes):
    """The ranges of a claim for which a table has verdicts, `(setting, factor, verdict)`."""
    work.per_seed(HERE, [1.0, 1.01, 0.99], spec)
    file = read_claims(
        [work.write(claim(measure=changes.pop("measure", measure(HERE)), **changes))]
    )
    ((_, content),) = file.items()
    (statement,) = content.claims
    specification = {}
    for cell in work.cells:
        attrs = work.attributes(cell)
        specification[cell] = attrs["spec_sha256"]
    checksum = judged_as(statement, work.cells, specification.__getitem__)
    table = VariantTable(
        statements={
            "a-claim": Varied(
                judged_as=checksum,
                verdicts=tuple(
                    VariantVerdict(setting=name, factor=factor, verdict=verdict, seeds=(1, 2))
                    for name, factor, verdict in verdicts
                ),
            )
        }
    )
    (row,), _ = judge_claims(file, work.results, work.cells, {"ranges": table})
    return row.ranges


WIDTHS = [("widths", 0.5, "contradicted"), ("widths", 2.0, "holds")]


def test_values_are_shown_where_all_cells_share_one(work):
    spec = {"network": {"hidden": [8, 3]}, "training": {"learning_rate": 0.03}}
    steps = [("step_size", 0.5, "holds"), ("step_size", 2.0, "undefined")]
    width, step = of_table(work, WIDTHS + steps, spec)
    assert (width.setting, width.bar) == ("width", "4, 1 ○ **8, 3** ● 16, 6 ●")
    assert step.bar == "0.015 ● **0.03** ● 0.06 –"


def test_factors_are_shown_where_cells_differ(work):
    work.per_seed(THERE, [1.0, 1.01, 0.99], {"network": {"hidden": [9]}})
    both = measure("deep_linear/e/*", reduce="mean")
    (width,) = of_table(work, WIDTHS, {"network": {"hidden": [8]}}, measure=both)
    assert width.bar == "×0.5 ○ **×1** ● ×2 ●"


def test_the_selected_init_scale_is_shown(work):
    axes = {"init_scale": ("init_scale", [0.1, 1.0]), "seed": ("seed", [0, 1])}
    values = (("init_scale", "seed"), [[1.0, 1.01], [9.0, 9.0]])
    work.metrics(THERE, {"init_scales": [0.1, 1.0]}, m=values, **axes)
    scales = [("init_scale", 0.1, "holds"), ("init_scale", 10.0, "contradicted")]
    chosen = measure(THERE, select={"init_scale": 0.1})
    (scale,) = of_table(work, scales, None, measure=chosen)
    assert scale.bar == "0.01 ● **0.1** ● 1 ○"
