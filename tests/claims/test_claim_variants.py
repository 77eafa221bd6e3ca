"""Variants: their cells, their verdicts, and what they do to a status."""

import pytest

from builders import build_cell
from claims_folder import claim, finding, measure
from neuralrace.claims.judge import judge_claims, judge_variants
from neuralrace.claims.spec import read_claims
from neuralrace.claims.table import read_variants, refuse_surprises, write_variants
from neuralrace.claims.variants import (
    VariantTable,
    at_variant,
    variant_cells,
    varied_statements,
)
from neuralrace.config.load import config_folder
from neuralrace.config.variants import OFFSET, SETTINGS, VARIANT_SETS, Variant, variants_path
from neuralrace.errors import UserError

CELL = "deep_linear/e/main"
GOOD = [0.98, 1.0, 1.02, 1.01]
OTHER = [0.99, 1.0, 1.01, 1.03]
BAD = [1.98, 2.0, 2.02, 2.01]
# by name, the variants that apply: these data are not sampled
OTHERS = [
    Variant(name, factor).name
    for name in ("init_scale", "widths", "steps", "step_size")
    for factor in SETTINGS[name].factors
]


@pytest.fixture
def cells():
    network = {"name": "layered", "hidden": [4]}
    return {CELL: build_cell(network=network, init={"name": "aligned"}, seeds=4)}


@pytest.fixture
def judged(work, cells):
    """Judges statements with both sets of variants, from measured values by variant."""

    def judge(*claims, findings=(), **values):
        """A variant that is not named has the values `others`; `fresh` then diverges."""
        file = read_claims([work.write(*claims, findings=findings)])
        work.per_seed(CELL, GOOD, cells[CELL])
        own = work.results / CELL
        tables = {}
        for group in VARIANT_SETS:
            names = [each.name for _, each, _ in varied_statements(file, cells, group)]
            failed = {}
            for name in dict.fromkeys(names):
                measured = values.get(name, values.get("others") if name != "fresh" else None)
                if measured is None:
                    failed[f"deep_linear/e/{name}/main"] = "all diverged"
                    continue
                folder = work.results / "variants" / group / "deep_linear/e" / name
                folder.mkdir(parents=True, exist_ok=True)
                kept = own.rename(own.with_name("kept"))
                work.per_seed(CELL, measured, cells[CELL])
                own.rename(folder / "main")
                kept.rename(own)
            statements = judge_variants(file, cells, work.results, group, failed)
            tables[group] = VariantTable(statements=statements)
        claims, findings = judge_claims(file, work.results, list(cells), tables)
        return tables, [*claims, *findings]

    return judge


def names(claims, cells):
    return [
        variant.name
        for group in VARIANT_SETS
        for _, variant, _ in varied_statements(claims, cells, group)
    ]


def test_every_setting_that_the_paper_does_not_print_is_varied(work, cells):
    claims = read_claims([work.write(claim())])
    assert list(variant_cells(claims, cells, "blind")["deep_linear/e"]) == ["fresh/main"]
    runs = variant_cells(claims, cells, "ranges")["deep_linear/e"]
    assert list(runs) == [f"{variant}/main" for variant in OTHERS]
    assert runs["widths_x2/main"].network.hidden == (8,)


@pytest.mark.parametrize(
    ("key", "value", "setting"),
    [
        ("network.hidden", [9], "widths"),
        ("training.steps", 9, "steps"),
        ("training.learning_rate", 9.0, "step_size"),
        ("init_scales", [1.0], "init_scale"),
        ("init.name", "normal", "nothing"),
    ],
)
def test_a_setting_that_the_paper_prints_is_not_varied(work, cells, key, value, setting):
    path = work.write(claim())
    ((file, claims),) = read_claims([path]).items()
    name = claims.claims[0].setup
    printed = claims.setups[name].model_copy(update={"keys": {key: value}})
    changed = claims.model_copy(update={"setups": {name: printed}})
    left = ["fresh", *(each for each in OTHERS if not each.startswith(f"{setting}_x"))]
    assert names({file: changed}, cells) == left


def test_factors_of_a_statement_come_before_those_of_its_file(work, cells):
    of_file = {"steps": [3.0], "widths": [], "init_scale": [], "step_size": []}
    claims = read_claims([work.write(claim(), ranges=of_file)])
    assert names(claims, cells) == ["fresh", "steps_x3"]
    claims = read_claims([work.write(claim(ranges={"steps": [4.0, 5.0]}), ranges=of_file)])
    assert names(claims, cells) == ["fresh", "steps_x4", "steps_x5"]


def test_unvaried_cells_are_varied_only_where_a_factor_is_named(work, cells):
    claims = read_claims([work.write(claim(), unvaried=["deep_linear/e/*"])])
    assert names(claims, cells) == ["fresh"]
    named = claim(ranges={"steps": [4.0]})
    claims = read_claims([work.write(named, unvaried=["deep_linear/e/*"])])
    assert names(claims, cells) == ["fresh", "steps_x4"]
    other = read_claims([work.write(claim(), unvaried=["deep_linear/f/*"])])
    with pytest.raises(UserError, match=r"unvaried: 'deep_linear/f/\*': matches no cell"):
        names(other, cells)


def test_a_variant_needs_all_cells(work, cells):
    shallow = build_cell(network={"name": "layered", "hidden": []}, init={"name": "aligned"})
    both = cells | {"deep_linear/f/main": shallow}
    claims = read_claims([work.write(claim(measure=measure("*", reduce="mean")))])
    assert not any(name.startswith("widths") for name in names(claims, both))
    assert "steps_x2" in names(claims, both)


def test_init_scales_that_a_measure_selects_are_multiplied_too(work):
    chosen = measure(select={"init_scale": 0.1}, over=measure(select={"init_scale": [0.3]}))
    (read,) = read_claims([path := work.write(claim(measure=chosen))])[path].claims
    other = at_variant(read, Variant("init_scale", 0.1)).measure
    assert other.select == {"init_scale": (0.01,)}
    assert other.over.select == {"init_scale": (0.03,)}
    assert at_variant(read, Variant("steps", 2.0)) == read
    rows = [chosen, measure(select={"init_scale": 2.0})]
    path = work.write(claim("ordering", sequence=rows, value=0.0))
    (read,) = read_claims([path])[path].claims
    levels = at_variant(read, Variant("init_scale", 10.0)).levels
    assert [level.select["init_scale"] for level in levels] == [(1.0,), (20.0,)]


def test_a_verdict_that_is_the_same_in_all_variants(judged):
    _, (row,) = judged(claim(), fresh=OTHER, others=OTHER)
    assert row.status == "reproduced"
    assert (row.blind.verdict, row.blind.seeds) == ("holds", (OFFSET, OFFSET + 3))
    assert row.blind.measured == pytest.approx(1.0075)
    assert [each.setting for each in row.ranges] == ["init scale", "width", "steps", "step size"]
    assert not any(each.varies for each in row.ranges)
    refuse_surprises([row])


@pytest.mark.parametrize("fresh", [[0.8, 1.0, 1.1, 1.0], BAD])
def test_what_fresh_seeds_do_not_confirm_is_undecided(judged, fresh):
    proof = {"argument": "for n = 2 it is not so", "differs": ["ours"]}
    _, (row, wrong, found) = judged(
        claim(),
        claim(id="wrong", value=3.0, expect="wrong", **proof),
        findings=[finding()],
        fresh=fresh,
        others=GOOD,
    )
    assert (row.status, row.surprise) == (
        "undecided", "known as reproduced, came out undecided",
    )  # fmt: skip
    assert found.status == "undecided"
    assert wrong.status == "wrong", "an argument holds whatever was drawn"


def test_a_verdict_that_turns_around_depends_on_the_setting(judged):
    known = claim(id="known", expect="depends on", depends="the steps")
    _, (row, known) = judged(claim(), known, fresh=GOOD, others=GOOD, steps_x2=BAD)
    assert row.status == known.status == "depends on"
    assert row.surprise == "known as reproduced, came out depends on"
    assert known.surprise is None
    (turning,) = [each for each in row.ranges if each.turns]
    assert turning.bar == "**40** ● 80 ○"
    with pytest.raises(UserError, match=r"1 of 2 statements(.|\n)*To do: find what changed"):
        refuse_surprises([row, known])


def test_a_refused_statement_that_holds_elsewhere_depends_on_the_setting(judged):
    (row,) = judged(claim(value=2.0, differs=["ours"]), fresh=GOOD, others=GOOD, widths_x2=BAD)[1]
    assert (row.verdict, row.status) == ("contradicted", "depends on")


def test_a_verdict_that_is_lost_is_shown_and_changes_nothing(judged):
    _, (row,) = judged(claim(), fresh=GOOD, others=GOOD, steps_x2=[0.8, 1.0, 1.1, 1.0])
    assert (row.status, row.surprise) == ("reproduced", None)
    assert [each.bar for each in row.ranges if each.varies] == ["**40** ● 80 ◐"]


def test_failed_runs_are_undefined_with_their_reason(judged):
    tables, (row,) = judged(claim(), fresh=GOOD, others=GOOD, step_size_x2=None)
    last = tables["ranges"].statements["a-claim"].verdicts[-1]
    assert (last.setting, last.verdict, last.told) == ("step_size", "undefined", "all diverged")
    assert row.ranges[-1].points[-1].told == "all diverged"
    assert row.status == "reproduced"


def test_verdicts_on_an_edited_statement_or_other_cells_are_not_shown(work, judged, cells):
    tables, _ = judged(claim(), fresh=GOOD, others=GOOD)

    def shown(**changes):
        file = read_claims([work.write(claim(**changes))])
        (row,), _ = judge_claims(file, work.results, list(cells), tables)
        return row.blind is not None, len(row.ranges)

    assert shown() == (True, 4)
    assert shown(statement="In other words.", tolerance={"value": 0.1, "why": "other"}) == (True, 4)
    assert shown(ranges={"widths": [], "steps": []}) == (True, 2)
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
