import re

import pytest
import yaml
from workplace import SETUP, SOURCE, claim, finding, measure, unassessed

from builders import REPOSITORY
from neuralrace.claims.criteria import CRITERIA
from neuralrace.claims.judge import ClaimRow, FindingRow, JudgedAlternative
from neuralrace.claims.quotes import ELLIPSIS
from neuralrace.claims.spec import (
    Alternative,
    Claim,
    ClaimFile,
    Finding,
    Measure,
    Setup,
    Source,
    read_claims,
)
from neuralrace.errors import UserError

MANUAL = (REPOSITORY / "docs" / "claims.md").read_text(encoding="utf-8")
SEQUENCE = [measure(), measure()]


def without(written, *keys):
    return {key: value for key, value in written.items() if key not in keys}


def test_reads_each_paper(work):
    files = [
        work.write(claim(expect="discrepant", corrected_by="b"), paper="deep_linear"),
        work.write(claim(id="b"), findings=[finding()], paper="layer_dynamics"),
    ]
    claims = read_claims(files)
    assert [(f.parent.name, c.id) for f in files for c in claims[f].statements] == [
        ("deep_linear", "a-claim"),
        ("layer_dynamics", "b"),
        ("layer_dynamics", "a-finding"),
    ]
    assert claims[files[0]].claims[0].measure.cells == ("deep_linear/*",)
    assert claims[files[0]].source.title == SOURCE["title"]
    assert claims[files[1]].setups["main"].locator == SETUP["locator"]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (claim(kind="equal"), ["a-claim: kind: 'equal'", "'equality'", "'ordering'"]),
        (claim(id="Not_Kebab"), ["Not_Kebab: id: 'Not_Kebab'"]),
        (without(claim(), "id"), ["claim number 1: id", "required"]),
        (claim(colour="red"), ["a-claim: colour: 'red'", "unknown key"]),
        (claim(measure=measure(selekt={})), ["a-claim: measure.selekt", "unknown key"]),
        (claim(measure=measure(select={"mode": True})),
         ["measure.select.mode: True", "number", "string"]),
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
        (claim(value="few"), ["expected.value: 'few'", "valid number"]),
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
        (claim(expect="not assessed"),
         ["measure has no place", "tolerance has no place", "alternatives has no place",
          "'not assessed'"]),
        (without(unassessed(), "reason"), ["reason is missing", "'not assessed'"]),
        (claim(corrected_by="b"), ["corrected_by has no place"]),
        (claim(corrected_by="b", expect="undecided"), ["corrected_by has no place"]),
        (without(claim(expect="undecided"), "reason"), ["reason is missing", "'undecided'"]),
        (without(claim(expect="differs here"), "reason"), ["reason is missing", "differs here"]),
        (without(claim(expect="discrepant"), "fair"), ["fair is missing", "'discrepant'"]),
        (claim(fair="so it reads"), ["fair has no place", "'reproduced'"]),
        (claim(expect="differs here", fair="so"), ["fair has no place", "'differs here'"]),
        (claim(expect="differs here", argument="a proof"), ["argument has no place"]),
        (without(claim(), "quote"), ["a-claim: quote", "required"]),
        (claim(quote=""), ["a-claim: quote", "at least 1 character"]),
        (without(claim(), "locator"), ["a-claim: locator", "required"]),
        (without(claim(), "setup"), ["a-claim: setup", "required"]),
        (claim(setup="other"), ["a-claim: setup: 'other' is none of setups: main"]),
        (claim(differs="the data"), ["a-claim: differs"]),
        (without(claim(), "alternatives"), ["alternatives is missing", "'equality'"]),
        (claim(alternatives=[]), ["alternatives is missing"]),
        (claim(over_seeds="most"), ["over_seeds: 'most'", "'median'"]),
        (claim("bound", relation="<=", over_seeds="mean"), ["over_seeds has no place", "'bound'"]),
        (unassessed(over_seeds="mean"), ["over_seeds has no place"]),
        (claim(expect="discrepant", corrected_by="b"), ["corrected_by: 'b' is no claim"]),
        (claim(expect="discrepant", corrected_by="a-claim"), ["'a-claim' is not expected to be"]),
        ("text", ["claim number 1: 'text'"]),
        (claim(statement=12), ["statement: 12", "string"]),
    ],
)  # fmt: skip
def test_mistakes_name_file_claim_key_and_value(work, written, words):
    with pytest.raises(UserError) as caught:
        read_claims([work.write(written)])
    for word in [str(work.root / "deep_linear/claims.yaml") + ": ", *words]:
        assert word in str(caught.value)


def test_every_mistake_is_told_at_once(work):
    with pytest.raises(UserError) as caught:
        read_claims([work.write(claim(kind="equal"), claim(id="b", tolerance=-1))])
    first, second = str(caught.value).splitlines()
    assert "deep_linear/claims.yaml: a-claim: kind" in first
    assert "deep_linear/claims.yaml: b: tolerance.value" in second


@pytest.mark.parametrize("papers", [("deep_linear", "deep_linear"), ("deep_linear", "other")])
def test_identifiers_are_unique_over_papers(work, papers):
    if papers[0] == papers[1]:
        files = [work.write(claim(), claim())]
    else:
        files = [work.write(claim(), paper=paper) for paper in papers]
    with pytest.raises(UserError, match=rf"{papers[1]}/claims.yaml: a-claim: id: .*already in"):
        read_claims(files)


ONE_OF = "needs one of instead, measure, sequence, shuffled and value"


@pytest.mark.parametrize(
    ("alternative", "words"),
    [
        ({}, [ONE_OF]),
        ({"shuffled": False}, [ONE_OF]),
        ({"shuffled": True, "measure": measure()}, [ONE_OF]),
        ({"value": 1.0, "source": "theory", "instead": {"metric": "n"}}, [ONE_OF]),
        ({"value": 1.0}, ["value and source go together"]),
        ({"measure": measure(), "source": "theory"}, ["value and source go together"]),
        ({"sequence": [measure()]}, ["sequence", "at least 2"]),
        ({"instead": {"kind": "bound"}}, ["instead.kind: 'bound'", "unknown key"]),
        ({"instead": {"select": {"seed": 0}}}, ["instead: the measure then", "all seeds"]),
        ({"instead": {"minus": measure()}}, ["instead: the measure then has both minus and over"]),
        ({"instead": {"crossing": {"x": "mode", "level": 1, "direction": "rising"}}},
         ["instead: the measure then has both fit and crossing"]),
        ({"name": None, "shuffled": True}, ["name", "string"]),
    ],
)  # fmt: skip
def test_mistakes_in_alternatives_are_told(work, alternative, words):
    fit = {"x": "mode", "scale": "linear"}
    taken = measure(over=measure(), fit=fit)
    written = claim("slope", measure=taken, alternatives=[{"name": "another"} | alternative])
    with pytest.raises(UserError) as caught:
        read_claims([work.write(written)])
    for word in ["deep_linear/claims.yaml: a-claim: ", *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize("known", sorted(Claim.model_fields.keys() - Finding.model_fields.keys()))
def test_findings_have_nothing_of_a_claim(work, known):
    with pytest.raises(UserError, match=rf"a-finding: {known}: .*unknown key"):
        read_claims([work.write(findings=[finding(**{known: "x"})])])


def test_a_finding_may_correct_a_claim_of_another_paper(work):
    files = [
        work.write(claim(expect="differs here", corrected_by="a-finding")),
        work.write(findings=[finding()], paper="other"),
    ]
    assert read_claims(files)[files[0]].claims[0].corrected_by == "a-finding"


def test_identifiers_of_claims_and_findings_are_unique(work):
    with pytest.raises(UserError, match=r"a-claim: id: .*already in .*deep_linear/claims.yaml"):
        read_claims([work.write(claim(), findings=[finding(id="a-claim")])])


# Criteria --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CRITERIA)
def test_criterion_in_both_places(work, name):
    vague = {"criterion": name}
    path = work.write(claim("bound", relation="<=", expected=vague, tolerance=vague))
    (read,) = read_claims([path])[path].claims
    value, means = CRITERIA[name]
    assert (read.expected.value, read.tolerance.value) == (value, value)
    assert read.expected.source == read.tolerance.why == f"{name}: {means}"


@pytest.mark.parametrize("place", ["expected", "tolerance"])
@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"criterion": "nearly"}, "criterion 'nearly' .* one of near, good, small, most"),
        ({"criterion": ["near"]}, r"criterion \['near'\] .* one of near"),
        ({"criterion": "near", "value": 0.2}, "criterion 'near' stands alone"),
        ({"criterion": "near", "why": "so"}, "criterion 'near' stands alone"),
        ("near", "object"),
    ],
)
def test_wrong_criteria_are_told(work, place, written, words):
    with pytest.raises(UserError, match=rf"a-claim: {place}: .*{words}"):
        read_claims([work.write(claim(**{place: written}))])


def test_manual_and_criteria_agree():
    rows = [line.strip("| ").split(" | ") for line in MANUAL.splitlines() if line[:3] == "| `"]
    told = {row[0].strip("`"): row[1:] for row in rows if row[0].strip("`") in CRITERIA}
    assert list(told) == list(CRITERIA)
    for name, criterion in CRITERIA.items():
        value, words = told[name]
        assert float(value) == criterion.value
        (listed,) = re.findall(r"\((.*)\)", words)
        assert f"({listed})" in criterion.means  # the words of the papers


# Files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("claims: [", "cannot be read as YAML"),
        ("1: []", "a key is text"),
        ("", "top level|should be an object"),
        ("claims:\n", "claims: Input should be a valid array"),
        ("claim: []\n", "claims: Field required"),
        ("claims: []\nmore: 1\n", "more: 1: unknown key"),
        ("claims: []\nsetups: {}\n", "source: Field required"),
        ("claims: []\nsetups: {}\nsource: {title: a, authors: b, text_sha256: abc}\n",
         "source.text_sha256: 'abc'"),
    ],
)  # fmt: skip
def test_broken_files_are_told(work, text, words):
    path = work.write()
    path.write_text(text)
    with pytest.raises(UserError, match=rf"deep_linear/claims\.yaml: (.|\n)*({words})"):
        read_claims([path])


def test_missing_file_is_told(work):
    with pytest.raises(UserError, match=r"none\.yaml: cannot be read"):
        read_claims([work.root / "none.yaml"])


def test_examples_of_the_manual_are_accepted(work):
    example, crossing = re.findall(r"```yaml\n(.*?)```", MANUAL, flags=re.DOTALL)
    path = work.write()
    path.write_text(example, encoding="utf-8")
    written = read_claims([path])[path]
    (slope,), (found,) = written.claims, written.findings
    assert slope.kind == "slope"
    assert written.setups[slope.setup].keys == {"network.name": "layered"}
    assert [bool(each.instead) for each in slope.alternatives] == [False, True]
    assert found.id == "descent-is-faster-than-flow"
    path = work.write(claim(**yaml.safe_load(crossing)))
    (written,) = read_claims([path])[path].claims
    assert written.measure.crossing.direction == "rising"


MODELS = (
    ClaimFile, Source, Setup, Claim, Finding, Measure, Alternative, ClaimRow, FindingRow,
    JudgedAlternative,
)  # fmt: skip


@pytest.mark.parametrize("key", sorted({key for model in MODELS for key in model.model_fields}))
def test_manual_knows_every_key(key):
    rows = [line.split("|")[1:3] for line in MANUAL.splitlines() if line.startswith("| `")]
    assert any(re.search(rf"\b{key}\b", "".join(row)) for row in rows)


@pytest.mark.parametrize("status", ["reproduced", "discrepant", "differs here", "undecided",
                                    "not assessed"])  # fmt: skip
def test_manual_says_when_each_status_comes_out(status):
    assert f"| `{status}` | " in MANUAL


def test_manual_says_how_quotes_leave_out():
    assert f"`{ELLIPSIS}`" in MANUAL
