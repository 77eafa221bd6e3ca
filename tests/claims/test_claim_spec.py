import re
from pathlib import Path

import pytest
import yaml
from workplace import claim, measure

from neuralrace.claims.spec import Claim, Measure, needed_cells, read_claims
from neuralrace.errors import UserError

MANUAL = (Path(__file__).parents[2] / "docs" / "claims.md").read_text(encoding="utf-8")
SEQUENCE = [measure(), measure()]


def without(written, *keys):
    return {key: value for key, value in written.items() if key not in keys}


def test_reads_each_paper(work):
    files = [
        work.write(claim(expect="discrepant", corrected_by="b"), paper="deep_linear"),
        work.write(claim(id="b"), paper="layer_dynamics"),
    ]
    claims = read_claims(files)
    assert [(f.stem, c.id) for f in files for c in claims[f]] == [
        ("deep_linear", "a-claim"),
        ("layer_dynamics", "b"),
    ]
    assert claims[files[0]][0].measure.cells == ("deep_linear/*",)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (claim(kind="equal"), ["a-claim: kind: 'equal'", "'equality'", "'ordering'"]),
        (claim(id="Not_Kebab"), ["Not_Kebab: id: 'Not_Kebab'"]),
        (without(claim(), "id"), ["claim number 1: id", "required"]),
        (claim(colour="red"), ["a-claim: colour: 'red'", "unknown key"]),
        (claim(measure=measure(selekt={})), ["a-claim: measure.selekt", "unknown key"]),
        (claim(measure=measure(select={"mode": True})),
         ["measure.select.mode: True", "number", "string", "booleans"]),
        (claim(measure=measure(select={"mode": [1, [2]]})), ["measure.select.mode.1"]),
        (claim(measure=measure(select={"mode": []})), ["measure.select.mode", "at least 1"]),
        (claim(measure=measure(select={"seed": 0})), ["a-claim: measure", "seed", "all seeds"]),
        (claim(measure=measure([])), ["measure.cells", "at least 1"]),
        (claim(measure=measure(reduce="sum")), ["measure.reduce: 'sum'", "'median'"]),
        (claim(measure=measure(minus=measure(), over=measure())), ["both minus and over"]),
        (claim(measure=measure(minus=measure(reduce="sum"))), ["measure.minus.reduce: 'sum'"]),
        (claim(measure=measure(fit={"x": "mode", "scale": "log"})), ["fit.scale: 'log'", "loglog"]),
        (claim(measure=measure(crossing={"x": "mode", "level": 1, "direction": "up"})),
         ["measure.crossing.direction: 'up'", "'rising' or 'falling'"]),
        (claim(measure=measure(crossing={"x": "mode", "direction": "rising"})),
         ["measure.crossing.level", "required"]),
        (claim(measure=measure(crossing={"x": "mode", "level": 1, "scale": "linear"})),
         ["measure.crossing.scale: 'linear'", "unknown key"]),
        (claim(measure=measure(fit={"x": "mode", "scale": "linear"},
                               crossing={"x": "mode", "level": 1, "direction": "rising"})),
         ["a-claim: measure", "both fit and crossing"]),
        (claim("slope", measure=measure(crossing={"x": "mode", "level": 1, "direction": "rising"})),
         ["measure.fit is missing", "'slope'"]),
        (claim(value="1e-5"), ["expected.value: '1e-5'", "write 1e-05"]),
        (claim(value=float("nan")), ["expected.value", "finite"]),
        (claim(tolerance=-1), ["tolerance.value: -1", "greater than or equal to 0"]),
        (claim(figure="staircase"), ["figure: 'staircase'"]),
        (claim(expect="perhaps"), ["expect: 'perhaps'", "'not assessed'"]),
        (without(claim(), "measure"), ["a-claim: measure is missing"]),
        (without(claim(), "expected"), ["a-claim: expected is missing"]),
        (without(claim(), "tolerance"), ["a-claim: tolerance is missing"]),
        (claim("bound"), ["relation is missing"]),
        (claim("qualitative"), ["relation is missing"]),
        (claim(relation="<="), ["relation has no place", "'equality'"]),
        (claim("slope"), ["measure.fit is missing"]),
        (claim("ordering"), ["sequence is missing", "measure has no place"]),
        (claim("ordering", sequence=SEQUENCE[:1]), ["sequence", "at least 2"]),
        (claim(sequence=SEQUENCE), ["measure is missing", "sequence has no place"]),
        (claim(reason="because"), ["reason has no place"]),
        (without(claim(expect="discrepant"), "reason"), ["reason is missing", "discrepant"]),
        (claim(expect="not assessed"), ["measure has no place", "'not assessed'"]),
        (claim(corrected_by="b"), ["corrected_by has no place"]),
        (claim(expect="discrepant", corrected_by="b"), ["corrected_by: 'b' is no claim"]),
        (claim(expect="discrepant", corrected_by="a-claim"), ["'a-claim' is not expected to be"]),
        ("text", ["claim number 1: 'text'"]),
        (claim(statement=12), ["statement: 12", "string"]),
    ],
)  # fmt: skip
def test_mistakes_name_file_claim_key_and_value(work, written, words):
    with pytest.raises(UserError) as caught:
        read_claims([work.write(written)])
    for word in [str(work.root / "deep_linear.yaml") + ": ", *words]:
        assert word in str(caught.value)


def test_every_mistake_is_told_at_once(work):
    with pytest.raises(UserError) as caught:
        read_claims([work.write(claim(kind="equal"), claim(id="b", tolerance=-1))])
    first, second = str(caught.value).splitlines()
    assert "deep_linear.yaml: a-claim: kind" in first
    assert "deep_linear.yaml: b: tolerance.value" in second


@pytest.mark.parametrize("papers", [("deep_linear", "deep_linear"), ("deep_linear", "other")])
def test_identifiers_are_unique_over_papers(work, papers):
    if papers[0] == papers[1]:
        files = [work.write(claim(), claim())]
    else:
        files = [work.write(claim(), paper=paper) for paper in papers]
    with pytest.raises(UserError, match=rf"{papers[1]}.yaml: a-claim: id: .*already in"):
        read_claims(files)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("claims: [", "cannot be read as YAML"),
        ("2020-01-01: []", "cannot be read as YAML"),
        ("", "top level|should be an object"),
        ("claims:\n", "claims: Input should be a valid array"),
        ("claim: []\n", "claims: Field required"),
        ("claims: []\nmore: 1\n", "more: 1: unknown key"),
    ],
)
def test_broken_files_are_told(work, text, words):
    path = work.root / "deep_linear.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=rf"deep_linear\.yaml: (.|\n)*({words})"):
        read_claims([path])


def test_missing_file_is_told(work):
    with pytest.raises(UserError, match=r"none\.yaml: cannot be read"):
        read_claims([work.root / "none.yaml"])


def test_needed_cells_are_those_of_every_measure(work):
    cells = [f"p/{e}/main" for e in ("unused", "f", "b", "a", "c", "d", "e")]
    first = claim(
        measure=measure("p/a/*", minus=measure("p/b/*", over=measure(["p/c/*", "p/f/*"])))
    )
    second = claim("ordering", id="second", sequence=[measure("p/d/*"), measure("p/e/m*")])
    skipped = claim(id="skipped", expect="not assessed")
    skipped = without(skipped, "measure", "tolerance", "expected")
    claims = read_claims([work.write(first, second, skipped)])
    assert needed_cells(claims, cells) == [f"p/{e}/main" for e in "abcdef"]


def test_a_glob_without_cells_names_its_claim(work):
    claims = read_claims([work.write(claim(measure=measure("p/a/*", minus=measure("q/*"))))])
    with pytest.raises(UserError, match=r"deep_linear.yaml: a-claim: cells: 'q/\*' matches no"):
        needed_cells(claims, ["p/a/main"])


def test_examples_of_the_manual_are_accepted(work):
    example, crossing = re.findall(r"```yaml\n(.*?)```", MANUAL, flags=re.DOTALL)
    path = work.root / "deep_linear.yaml"
    path.write_text(example)
    (written,) = read_claims([path])[path]
    assert written.kind == "slope"
    (written,) = read_claims([work.write(claim() | yaml.safe_load(crossing))])[path]
    assert written.measure.crossing.direction == "rising"


@pytest.mark.parametrize("key", [*Claim.model_fields, *Measure.model_fields])
def test_manual_knows_every_key(key):
    rows = [line.split("|")[1:3] for line in MANUAL.splitlines() if line.startswith("| `")]
    assert any(f"`{key}`" in "".join(row) for row in rows)
