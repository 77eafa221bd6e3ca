"""Trials on fresh seeds: what is run, what is judged, and what a verdict survives."""

import json

import pytest
from workplace import claim, measure

from neuralrace.claims.blind import Trial, Trials, blind_cells, blind_verdict, trials_of
from neuralrace.claims.judge import judge_blind, judge_papers
from neuralrace.claims.spec import read_claims
from neuralrace.claims.table import read_blind, refuse_surprises, write_blind
from neuralrace.config.cell import Cell
from neuralrace.config.robustness import OFFSET
from neuralrace.errors import UserError

SPEC = {
    "dataset": {"name": "modes", "singular_values": [2.0], "inputs": 2, "outputs": 2},
    "network": {"name": "layered", "hidden": [2]},
    "init": {"name": "aligned"},
    "init_scales": [0.1],
    "seeds": 4,
    "training": {"learning_rate": 0.02, "steps": 40},
    "record": {"every": 10},
}
CELL = "deep_linear/e/main"
GOOD = [0.98, 1.0, 1.02, 1.01]
AS_RUN = ("fresh", "widths", "steps", "step_size")


@pytest.fixture
def cells():
    return {CELL: Cell.model_validate_json(json.dumps(SPEC))}


@pytest.fixture
def tried(work, cells):
    """Claims, judged after trials with the given values per variant."""

    def try_them(*claims, **values):
        for variant, sample in values.items():
            work.per_seed(CELL, sample, SPEC)
            folder = work.results / "deep_linear/e" / variant
            folder.mkdir(parents=True)
            (work.results / CELL).rename(folder / "main")
        work.per_seed(CELL, GOOD, SPEC)
        file = work.write(*claims)
        failed = {f"deep_linear/e/{v}/main": "all diverged" for v in AS_RUN if v not in values}
        blind = judge_blind(read_claims([file]), cells, work.results, failed)
        rows, _ = judge_papers([file], work.results, list(cells), blind)
        return blind, rows

    return try_them


def test_all_variants_of_what_is_ours_are_run(work, cells):
    claims = read_claims([work.write(claim())])
    (experiment,) = blind_cells(claims, cells)
    runs = blind_cells(claims, cells)[experiment]
    assert experiment == "deep_linear/e"
    assert set(runs) == {f"{variant}/main" for variant in AS_RUN}  # these data are not sampled
    assert runs["widths/main"].network.hidden == (4,)


@pytest.mark.parametrize(
    ("key", "value", "left"),
    [
        ("network.hidden", [9], ("fresh", "steps", "step_size")),
        ("training.steps", 9, ("fresh", "widths", "step_size")),
        ("training.learning_rate", 9.0, ("fresh", "widths", "steps")),
        ("init.name", "normal", AS_RUN),
    ],
)
def test_what_the_paper_prints_is_not_doubled(work, cells, key, value, left):
    path = work.write(claim())
    ((file, claims),) = read_claims([path]).items()
    name = claims.claims[0].setup
    printed = claims.setups[name].model_copy(update={"keys": {key: value}})
    changed = claims.model_copy(update={"setups": {name: printed}})
    assert tuple(variant for _, variant, _ in trials_of({file: changed}, cells)) == left


def test_what_is_too_large_has_fresh_seeds_alone(work, cells):
    claims = read_claims([work.write(claim(), undoubled=["deep_linear/e/*"])])
    assert [variant for _, variant, _ in trials_of(claims, cells)] == ["fresh"]
    other = read_claims([work.write(claim(), undoubled=["deep_linear/f/*"])])
    with pytest.raises(UserError, match=r"undoubled: .*'deep_linear/f/\*' matches"):
        list(trials_of(other, cells))


def test_a_variant_needs_all_cells(work, cells):
    shallow = SPEC | {"network": {"name": "layered", "hidden": []}}
    both = cells | {"deep_linear/f/main": Cell.model_validate_json(json.dumps(shallow))}
    claims = read_claims([work.write(claim(measure=measure("*", reduce="mean")))])
    assert [v for _, v, _ in trials_of(claims, both)] == ["fresh", "steps", "step_size"]


def test_what_survives(tried):
    values = {variant: [0.99, 1.0, 1.01, 1.03] for variant in AS_RUN}
    _, (row,) = tried(claim(), **values)
    assert row.blind.survives
    assert row.blind.stochastic
    assert row.blind.lost == ()
    assert row.blind.seeds == f"{OFFSET} to {OFFSET + 3}"
    assert row.blind.measured == pytest.approx(1.0075)
    assert [trial.variant for trial in row.blind.doubled] == ["widths", "steps", "step_size"]
    refuse_surprises([row])


def test_what_does_not_survive_is_a_surprise_unless_it_is_told(tried):
    values = dict.fromkeys(AS_RUN, GOOD) | {"steps": [1.98, 2.0, 2.02, 2.01]}
    _, (row, told) = tried(claim(), claim(id="told", depends="the steps"), **values)
    assert row.blind.lost == told.blind.lost == ("twice the steps",)
    assert row.blind.verdict == "holds"
    assert not row.blind.stochastic  # the same numbers as before
    assert row.surprise == "does not survive twice the steps; say on what it depends"
    assert told.surprise is None
    with pytest.raises(UserError, match=r"1 of 2 statements(.|\n)*To do: reword it"):
        refuse_surprises([row, told])


def test_undecided_on_fresh_seeds_is_lost(tried):
    _, (row,) = tried(claim(), **dict.fromkeys(AS_RUN, GOOD) | {"fresh": [0.8, 1.0, 1.1, 1.0]})
    assert (row.blind.verdict, row.blind.lost) == ("undecided", ("fresh seeds",))


def test_a_wrong_statement_survives_by_being_wrong_again(tried):
    wrong = claim(value=3.0, expect="discrepant", fair="yes")
    _, (row,) = tried(wrong, **dict.fromkeys(AS_RUN, GOOD))
    assert (row.status, row.blind.verdict, row.blind.survives) == (
        "discrepant",
        "contradicted",
        True,
    )


def test_runs_that_failed_are_undefined_with_their_reason(tried):
    blind, (row,) = tried(claim(), fresh=GOOD, widths=GOOD, steps=GOOD)
    assert blind["a-claim"].trials[-1] == Trial(
        variant="step_size", verdict="undefined", told="all diverged"
    )
    assert row.blind.lost == ("twice the step size",)


def test_another_statement_was_not_judged_blindly(work, tried, cells):
    blind, _ = tried(claim(), **dict.fromkeys(AS_RUN, GOOD))
    for changes, judged in (
        ({"tolerance": {"value": 0.2, "why": "more"}}, False),
        ({"measure": measure(reduce="max")}, False),
        ({"statement": "In other words.", "tolerance": {"value": 0.1, "why": "other"}}, True),
    ):
        file = work.write(claim(**changes))
        (row,), _ = judge_papers([file], work.results, list(cells), blind)
        assert (row.blind is not None) == judged


def test_a_missing_trial_is_told(work, cells):
    with pytest.raises(UserError, match=r"fresh/main/metrics\.nc"):
        judge_blind(read_claims([work.write(claim())]), cells, work.results, {})


def test_trials_read_back(tried, tmp_path):
    blind, _ = tried(claim(), fresh=GOOD)
    write_blind(blind, tmp_path / "blind.json")
    assert read_blind(tmp_path / "blind.json") == blind
    assert read_blind(tmp_path / "none.json") == {}
    (tmp_path / "blind.json").write_text("{")
    with pytest.raises(UserError, match="Run make blind again"):
        read_blind(tmp_path / "blind.json")


def test_the_same_verdict_by_another_number_survives():
    trials = Trials(judged_as="x", seeds=(7, 2), trials=(Trial(variant="fresh", verdict="holds"),))
    assert blind_verdict(trials, "holds", 1.0).survives
    assert not blind_verdict(trials, "contradicted", 1.0).survives
    assert blind_verdict(trials, "holds", 1.0).seeds == "7 to 8"
