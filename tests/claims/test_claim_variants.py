"""Robustness runs: their cells, their verdicts, and their comparison with a verdict."""

import pytest

from builders import build_cell
from claims_folder import claim, measure
from neuralrace.claims.judge import judge_claims, judge_robustness
from neuralrace.claims.robustness import (
    VariantVerdict,
    VariantVerdicts,
    robustness_cells,
    robustness_of,
    varied_statements,
)
from neuralrace.claims.spec import read_claims
from neuralrace.claims.table import read_robustness, refuse_surprises, write_robustness
from neuralrace.config.robustness import OFFSET
from neuralrace.errors import UserError

CELL = "deep_linear/e/main"
GOOD = [0.98, 1.0, 1.02, 1.01]
VARIANTS = ("fresh", "widths", "steps", "step_size")


@pytest.fixture
def cells():
    return {CELL: build_cell(init={"name": "aligned"}, seeds=4)}


@pytest.fixture
def judged(work, cells):
    """Judges claims with robustness runs, from measured values by variant."""

    def judge(*claims, **values):
        for variant, sample in values.items():
            work.per_seed(CELL, sample)
            folder = work.results / "deep_linear/e" / variant
            folder.mkdir(parents=True)
            (work.results / CELL).rename(folder / "main")
        work.per_seed(CELL, GOOD)
        file = work.write(*claims)
        failed = {f"deep_linear/e/{v}/main": "all diverged" for v in VARIANTS if v not in values}
        table = judge_robustness(read_claims([file]), cells, work.results, failed)
        rows, _ = judge_claims(read_claims([file]), work.results, list(cells), table)
        return table, rows

    return judge


def test_every_setting_that_the_paper_does_not_print_is_doubled(work, cells):
    claims = read_claims([work.write(claim())])
    (experiment,) = robustness_cells(claims, cells)
    runs = robustness_cells(claims, cells)[experiment]
    assert experiment == "deep_linear/e"
    assert set(runs) == {f"{variant}/main" for variant in VARIANTS}  # these data are not sampled
    assert runs["widths/main"].network.hidden == (4,)


@pytest.mark.parametrize(
    ("key", "value", "left"),
    [
        ("network.hidden", [9], ("fresh", "steps", "step_size")),
        ("training.steps", 9, ("fresh", "widths", "step_size")),
        ("training.learning_rate", 9.0, ("fresh", "widths", "steps")),
        ("init.name", "normal", VARIANTS),
    ],
)
def test_a_setting_that_the_paper_prints_is_not_doubled(work, cells, key, value, left):
    path = work.write(claim())
    ((file, claims),) = read_claims([path]).items()
    name = claims.claims[0].setup
    printed = claims.setups[name].model_copy(update={"keys": {key: value}})
    changed = claims.model_copy(update={"setups": {name: printed}})
    assert tuple(variant for _, variant, _ in varied_statements({file: changed}, cells)) == left


def test_undoubled_cells_have_fresh_seeds_only(work, cells):
    claims = read_claims([work.write(claim(), undoubled=["deep_linear/e/*"])])
    assert [variant for _, variant, _ in varied_statements(claims, cells)] == ["fresh"]
    other = read_claims([work.write(claim(), undoubled=["deep_linear/f/*"])])
    with pytest.raises(UserError, match=r"undoubled: 'deep_linear/f/\*': matches no cell"):
        list(varied_statements(other, cells))


def test_a_variant_needs_all_cells(work, cells):
    shallow = build_cell(network={"name": "layered", "hidden": []}, init={"name": "aligned"})
    both = cells | {"deep_linear/f/main": shallow}
    claims = read_claims([work.write(claim(measure=measure("*", reduce="mean")))])
    assert [v for _, v, _ in varied_statements(claims, both)] == ["fresh", "steps", "step_size"]


def test_a_verdict_that_is_the_same_in_all_variants(judged):
    values = {variant: [0.99, 1.0, 1.01, 1.03] for variant in VARIANTS}
    _, (row,) = judged(claim(), **values)
    assert row.robustness.survives
    assert row.robustness.stochastic
    assert row.robustness.lost == ()
    assert row.robustness.seeds == f"{OFFSET} to {OFFSET + 3}"
    assert row.robustness.measured == pytest.approx(1.0075)
    assert [trial.variant for trial in row.robustness.doubled] == ["widths", "steps", "step_size"]
    refuse_surprises([row])


def test_a_verdict_that_changes_is_a_surprise_without_depends(judged):
    values = dict.fromkeys(VARIANTS, GOOD) | {"steps": [1.98, 2.0, 2.02, 2.01]}
    _, (row, known) = judged(claim(), claim(id="known", depends="the steps"), **values)
    assert row.robustness.lost == known.robustness.lost == ("twice the steps",)
    assert row.robustness.verdict == "holds"
    assert not row.robustness.stochastic  # the same numbers as before
    assert row.surprise == "the verdict changes with twice the steps; say on what it depends"
    assert known.surprise is None
    with pytest.raises(UserError, match=r"1 of 2 statements(.|\n)*To do: reword it"):
        refuse_surprises([row, known])


def test_undecided_with_fresh_seeds_is_another_verdict(judged):
    _, (row,) = judged(claim(), **dict.fromkeys(VARIANTS, GOOD) | {"fresh": [0.8, 1.0, 1.1, 1.0]})
    assert (row.robustness.verdict, row.robustness.lost) == ("undecided", ("fresh seeds",))


def test_a_contradicted_statement_is_robust_if_contradicted_again(judged):
    wrong = claim(value=3.0, expect="wrong", fair="yes")
    _, (row,) = judged(wrong, **dict.fromkeys(VARIANTS, GOOD))
    assert (row.status, row.robustness.verdict, row.robustness.survives) == (
        "wrong",
        "contradicted",
        True,
    )


def test_failed_runs_are_undefined_with_their_reason(judged):
    table, (row,) = judged(claim(), fresh=GOOD, widths=GOOD, steps=GOOD)
    assert table["a-claim"].verdicts[-1] == VariantVerdict(
        variant="step_size", verdict="undefined", told="all diverged"
    )
    assert row.robustness.lost == ("twice the step size",)


def test_robustness_runs_of_an_edited_statement_are_not_shown(work, judged, cells):
    table, _ = judged(claim(), **dict.fromkeys(VARIANTS, GOOD))
    for changes, same in (
        ({"tolerance": {"value": 0.2, "why": "more"}}, False),
        ({"measure": measure(reduce="max")}, False),
        ({"statement": "In other words.", "tolerance": {"value": 0.1, "why": "other"}}, True),
    ):
        file = work.write(claim(**changes))
        (row,), _ = judge_claims(read_claims([file]), work.results, list(cells), table)
        assert (row.robustness is not None) == same


def test_missing_metrics_of_a_robustness_run_are_reported(work, cells):
    with pytest.raises(UserError, match=r"fresh/main/metrics\.nc"):
        judge_robustness(read_claims([work.write(claim())]), cells, work.results, {})


def test_verdicts_read_back(judged, tmp_path):
    table, _ = judged(claim(), fresh=GOOD)
    write_robustness(table, tmp_path / "robustness.json")
    assert read_robustness(tmp_path / "robustness.json") == table
    assert read_robustness(tmp_path / "none.json") == {}
    (tmp_path / "robustness.json").write_text("{")
    with pytest.raises(UserError, match="run make robustness again"):
        read_robustness(tmp_path / "robustness.json")


def test_the_same_verdict_with_another_value_is_robust():
    fresh = VariantVerdict(variant="fresh", verdict="holds")
    variants = VariantVerdicts(judged_as="x", seeds=(7, 2), verdicts=(fresh,))
    assert robustness_of(variants, "holds", 1.0).survives
    assert not robustness_of(variants, "contradicted", 1.0).survives
    assert robustness_of(variants, "holds", 1.0).seeds == "7 to 8"
