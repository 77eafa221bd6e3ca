"""Variants: their cells, their verdicts, and what they do to a status."""

import pytest

from builders import build_cell
from claims_folder import claim, finding, measure
from neuralrace.claims.judge import judge_claims, judge_variants
from neuralrace.claims.spec import read_claims
from neuralrace.claims.table import read_variants, refuse_surprises, write_variants
from neuralrace.claims.variants import VariantTable, variant_cells, varied_statements
from neuralrace.config.load import config_folder
from neuralrace.config.variants import OFFSET, VARIANT_SETS, variants_path
from neuralrace.errors import UserError

CELL = "deep_linear/e/main"
GOOD = [0.98, 1.0, 1.02, 1.01]
OTHER = [0.99, 1.0, 1.01, 1.03]
BAD = [1.98, 2.0, 2.02, 2.01]
DOUBLED = ("widths", "steps", "step_size")


@pytest.fixture
def cells():
    return {CELL: build_cell(init={"name": "aligned"}, seeds=4)}


@pytest.fixture
def judged(work, cells):
    """Judges statements with both sets of variants, from measured values by variant."""

    def judge(*claims, findings=(), **values):
        file = read_claims([work.write(*claims, findings=findings)])
        work.per_seed(CELL, GOOD)
        own = work.results / CELL
        tables = {}
        for group, variants in VARIANT_SETS.items():
            applying = [name for name in variants if name in ("fresh", *DOUBLED)]
            for variant in applying:
                if variant in values:
                    folder = work.results / "variants" / group / "deep_linear/e" / variant
                    folder.mkdir(parents=True)
                    kept = own.rename(own.with_name("kept"))
                    work.per_seed(CELL, values[variant])
                    own.rename(folder / "main")
                    kept.rename(own)
            absent = [name for name in applying if name not in values]
            failed = {f"deep_linear/e/{name}/main": "all diverged" for name in absent}
            statements = judge_variants(file, cells, work.results, group, failed)
            tables[group] = VariantTable(statements=statements)
        claims, findings = judge_claims(file, work.results, list(cells), tables)
        return tables, [*claims, *findings]

    return judge


def names(claims, cells):
    return [
        variant
        for group in VARIANT_SETS
        for _, variant, _ in varied_statements(claims, cells, group)
    ]


def test_every_setting_that_the_paper_does_not_print_is_doubled(work, cells):
    claims = read_claims([work.write(claim())])
    assert list(variant_cells(claims, cells, "blind")["deep_linear/e"]) == ["fresh/main"]
    runs = variant_cells(claims, cells, "ranges")["deep_linear/e"]
    assert set(runs) == {f"{variant}/main" for variant in DOUBLED}  # these data are not sampled
    assert runs["widths/main"].network.hidden == (4,)


@pytest.mark.parametrize(
    ("key", "value", "left"),
    [
        ("network.hidden", [9], ["fresh", "steps", "step_size"]),
        ("training.steps", 9, ["fresh", "widths", "step_size"]),
        ("training.learning_rate", 9.0, ["fresh", "widths", "steps"]),
        ("init.name", "normal", ["fresh", *DOUBLED]),
    ],
)
def test_a_setting_that_the_paper_prints_is_not_doubled(work, cells, key, value, left):
    path = work.write(claim())
    ((file, claims),) = read_claims([path]).items()
    name = claims.claims[0].setup
    printed = claims.setups[name].model_copy(update={"keys": {key: value}})
    changed = claims.model_copy(update={"setups": {name: printed}})
    assert names({file: changed}, cells) == left


def test_undoubled_cells_have_fresh_seeds_only(work, cells):
    claims = read_claims([work.write(claim(), undoubled=["deep_linear/e/*"])])
    assert names(claims, cells) == ["fresh"]
    other = read_claims([work.write(claim(), undoubled=["deep_linear/f/*"])])
    with pytest.raises(UserError, match=r"undoubled: 'deep_linear/f/\*': matches no cell"):
        names(other, cells)


def test_a_variant_needs_all_cells(work, cells):
    shallow = build_cell(network={"name": "layered", "hidden": []}, init={"name": "aligned"})
    both = cells | {"deep_linear/f/main": shallow}
    claims = read_claims([work.write(claim(measure=measure("*", reduce="mean")))])
    assert names(claims, both) == ["fresh", "steps", "step_size"]


def test_a_verdict_that_is_the_same_in_all_variants(judged):
    _, (row,) = judged(claim(), fresh=OTHER, widths=OTHER, steps=OTHER, step_size=OTHER)
    assert row.status == "reproduced"
    assert (row.blind.verdict, row.blind.seeds) == ("holds", (OFFSET, OFFSET + 3))
    assert row.blind.measured == pytest.approx(1.0075)
    assert [each.variant for each in row.ranges] == list(DOUBLED)
    refuse_surprises([row])


@pytest.mark.parametrize("fresh", [[0.8, 1.0, 1.1, 1.0], BAD])
def test_what_fresh_seeds_do_not_confirm_is_undecided(judged, fresh):
    values = {"fresh": fresh, **dict.fromkeys(DOUBLED, GOOD)}
    proof = {"argument": "for n = 2 it is not so", "differs": ["ours"]}
    _, (row, wrong, found) = judged(
        claim(),
        claim(id="wrong", value=3.0, expect="wrong", **proof),
        findings=[finding()],
        **values,
    )
    assert (row.status, row.surprise) == (
        "undecided", "known as reproduced, came out undecided",
    )  # fmt: skip
    assert found.status == "undecided"
    assert wrong.status == "wrong", "an argument holds whatever was drawn"


def test_a_verdict_that_turns_around_depends_on_the_setting(judged):
    values = dict.fromkeys(("fresh", *DOUBLED), GOOD) | {"steps": BAD}
    known = claim(id="known", expect="depends on", depends="the steps")
    _, (row, known) = judged(claim(), known, **values)
    assert row.status == known.status == "depends on"
    assert row.surprise == (
        "known as reproduced, came out depends on; "
        "the verdict changes with twice the steps; say on what it depends"
    )
    assert known.surprise is None
    with pytest.raises(UserError, match=r"1 of 2 statements(.|\n)*To do: find what changed"):
        refuse_surprises([row, known])


def test_a_verdict_that_is_lost_is_a_surprise_without_depends(judged):
    values = dict.fromkeys(("fresh", *DOUBLED), GOOD) | {"steps": [0.8, 1.0, 1.1, 1.0]}
    _, (row, known) = judged(claim(), claim(id="known", depends="the steps"), **values)
    assert row.status == known.status == "reproduced"
    assert row.surprise == "the verdict changes with twice the steps; say on what it depends"
    assert known.surprise is None
    with pytest.raises(UserError, match=r"1 of 2 statements(.|\n)*To do: reword it"):
        refuse_surprises([row, known])


def test_failed_runs_are_undefined_with_their_reason(judged):
    tables, (row,) = judged(claim(), fresh=GOOD, widths=GOOD, steps=GOOD)
    last = tables["ranges"].statements["a-claim"].verdicts[-1]
    assert (last.variant, last.verdict, last.told) == ("step_size", "undefined", "all diverged")
    assert "twice the step size" in row.surprise


def test_verdicts_on_an_edited_statement_or_other_cells_are_not_shown(work, judged, cells):
    tables, _ = judged(claim(), **dict.fromkeys(("fresh", *DOUBLED), GOOD))

    def shown(**changes):
        file = read_claims([work.write(claim(**changes))])
        (row,), _ = judge_claims(file, work.results, list(cells), tables)
        return row.blind is not None, len(row.ranges)

    assert shown() == (True, 3)
    assert shown(statement="In other words.", tolerance={"value": 0.1, "why": "other"}) == (True, 3)
    assert shown(tolerance={"value": 0.2, "why": "more"}) == (False, 0)
    assert shown(measure=measure(reduce="max")) == (False, 0)
    work.per_seed(CELL, GOOD, {"training": {"steps": 7}})
    assert shown() == (False, 0)


def test_missing_metrics_of_a_variant_are_reported(work, cells):
    work.per_seed(CELL, GOOD)
    with pytest.raises(UserError, match=r"fresh/main/metrics\.nc"):
        judge_variants(read_claims([work.write(claim())]), cells, work.results, "blind", {})


def test_verdicts_read_back(judged, tmp_path):
    tables, _ = judged(claim(), fresh=GOOD)
    write_variants(tables["blind"], tmp_path / "blind.json")
    assert read_variants(tmp_path / "blind.json") == tables["blind"]
    assert read_variants(tmp_path / "none.json") == VariantTable()
    (tmp_path / "blind.json").write_text("{")
    with pytest.raises(UserError, match="run make blind again"):
        read_variants(tmp_path / "blind.json")


def test_own_verdicts_come_before_those_of_the_repository(tmp_path):
    assert variants_path(tmp_path, "blind") == config_folder() / "blind.json"
    (tmp_path / "blind.json").touch()
    assert variants_path(tmp_path, "blind") == tmp_path / "blind.json"
