import re

import pytest
import yaml

from builders import REPOSITORY
from claims_folder import SETUP, SOURCE, claim, finding, measure, unassessed
from neuralrace.claims.criteria import CRITERIA
from neuralrace.claims.judge import ClaimRow, FindingRow, JudgedAlternative
from neuralrace.claims.quotes import ELLIPSIS
from neuralrace.claims.sentences import STATUSES
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


def without(content, *keys):
    return {key: value for key, value in content.items() if key not in keys}


def test_reads_each_paper(work):
    files = [
        work.write(claim(expect="wrong", corrected_by="b"), paper="deep_linear"),
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


LINE = {"x": "mode", "scale": "linear"}
CROSSING = {"x": "mode", "level": 1, "direction": "rising"}


@pytest.mark.parametrize(
    ("content", "key", "value", "words"),
    [
        (claim(kind="equal"), "a-claim.kind", "equal", ["'equality'", "'ordering'"]),
        (claim(id="Not_Kebab"), "Not_Kebab.id", "Not_Kebab", ["that matches"]),
        (without(claim(), "id"), "claim number 1.id", None, ["required"]),
        (claim(colour="red"), "a-claim.colour", "red", ["unknown key"]),
        (claim(measure=measure(selekt={})), "a-claim.measure.selekt", None, ["unknown key"]),
        (claim(measure=measure(select={"mode": True})), "a-claim.measure.select.mode", True,
         ["a number, or expected a text"]),
        (claim(measure=measure(select={"mode": [1, [2]]})), "a-claim.measure.select.mode.1", None,
         ["a number, or expected a text"]),
        (claim(measure=measure(select={"mode": []})), "a-claim.measure.select.mode", None,
         ["at least 1"]),
        (claim(measure=measure(select={"seed": 0})), "a-claim.measure.select.seed", None,
         ["all seeds"]),
        (claim(measure=measure([])), "a-claim.measure.cells", None, ["at least 1"]),
        (claim(measure=measure(reduce="sum")), "a-claim.measure.reduce", "sum", ["'median'"]),
        (claim(measure=measure(minus=measure(), over=measure())), "a-claim.measure", None,
         ["both minus and over"]),
        (claim(measure=measure(minus=measure(reduce="sum"))), "a-claim.measure.minus.reduce", "sum",
         ["'median'"]),
        (claim(measure=measure(fit=LINE | {"scale": "log"})), "a-claim.measure.fit.scale", "log",
         ["loglog"]),
        (claim(measure=measure(crossing=CROSSING | {"direction": "up"})),
         "a-claim.measure.crossing.direction", "up", ["'rising' or 'falling'"]),
        (claim(measure=measure(crossing=without(CROSSING, "level"))),
         "a-claim.measure.crossing.level", None, ["required"]),
        (claim(measure=measure(crossing=CROSSING | {"scale": "linear"})),
         "a-claim.measure.crossing.scale", "linear", ["unknown key"]),
        (claim(measure=measure(fit=LINE, crossing=CROSSING)), "a-claim.measure", None,
         ["both fit and crossing"]),
        (claim(value="few"), "a-claim.expected.value", "few", ["expected a number"]),
        (claim(value=float("nan")), "a-claim.expected.value", float("nan"), ["finite"]),
        (claim(tolerance=-1), "a-claim.tolerance.value", -1, ["at least 0"]),
        (claim(figure="staircase"), "a-claim.figure", "staircase", ["that matches"]),
        (claim(expect="perhaps"), "a-claim.expect", "perhaps", ["'not assessed'"]),
        (claim("ordering", sequence=SEQUENCE[:1]), "a-claim.sequence", None, ["at least 2"]),
        (without(claim(), "quote"), "a-claim.quote", None, ["required"]),
        (claim(quote=""), "a-claim.quote", "", ["at least 1 character"]),
        (without(claim(), "locator"), "a-claim.locator", None, ["required"]),
        (without(claim(), "setup"), "a-claim.setup", None, ["required"]),
        (claim(setup="other"), "a-claim.setup", "other", ["setups of this file", "one of main"]),
        (claim(differs="the data"), "a-claim.differs", "the data", ["a list"]),
        (claim(over_seeds="most"), "a-claim.over_seeds", "most", ["'median'"]),
        (claim(expect="wrong", corrected_by="b"), "a-claim.corrected_by", "b", ["no claim"]),
        (claim(expect="wrong", corrected_by="a-claim"), "a-claim.corrected_by", "a-claim",
         ["is not expected to be"]),
        (claim(expect="wrong", follows_from="b"), "a-claim.follows_from", "b", ["no claim"]),
        ("text", "claim number 1", "text", ["a mapping"]),
        (claim(statement=12), "a-claim.statement", 12, ["a text"]),
    ],
)  # fmt: skip
def test_mistakes_name_file_claim_key_and_value(work, content, key, value, words):
    with pytest.raises(UserError) as error:
        read_claims([work.write(content)])
    assert error.value.file == str(work.root / "deep_linear/claims.yaml")
    assert error.value.key == key
    assert error.value.value == ("" if value is None else repr(value))
    for word in words:
        assert re.search(word, f"{error.value.problem}; {error.value.remedy}")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (without(claim(), "measure"), "kind 'equality' with expect 'reproduced' needs measure"),
        (without(claim(), "expected"), "needs expected"),
        (without(claim(), "tolerance"), "needs tolerance"),
        (without(claim(), "alternatives"), "needs alternatives"),
        (claim(alternatives=[]), "needs alternatives"),
        (claim("bound"), "'bound' .* needs relation"),
        (claim("qualitative"), "'qualitative' .* needs relation"),
        (claim(relation="<="), "'equality' .* takes no relation"),
        (claim("slope"), "'slope' .* needs measure.fit"),
        (claim("slope", measure=measure(crossing=CROSSING)), "'slope' .* needs measure.fit"),
        (claim("ordering"), "'ordering' .* needs sequence and takes no measure"),
        (claim(sequence=SEQUENCE), "needs measure and takes no sequence"),
        (claim(reason="because"), "takes no reason"),
        (without(claim(expect="wrong"), "reason"), "'wrong' needs reason"),
        (without(claim(expect="undecided"), "reason"), "'undecided' needs reason"),
        (without(claim(expect="not reproduced"), "reason"), "'not reproduced' needs reason"),
        (without(unassessed(), "reason"), "'not assessed' needs reason"),
        (claim(expect="not assessed"),
         "'not assessed' takes no measure and no tolerance and no alternatives"),
        (claim(corrected_by="b"), "takes no corrected_by"),
        (unassessed(corrected_by="b"), "takes no corrected_by"),
        (without(claim(expect="wrong"), "fair"), "'wrong' needs fair"),
        (without(claim(expect="wrong"), "grade"), "'wrong' needs grade"),
        (claim(grade="slip"), "'reproduced' takes no grade"),
        (claim(follows_from="b"), "'reproduced' takes no follows_from"),
        (without(claim(expect="identity"), "identity"), "'identity' needs identity"),
        (claim(identity="it is one"), "'reproduced' takes no identity"),
        (without(claim(expect="analogue"), "analogue"), "'analogue' needs analogue"),
        (claim(expect="depends on"), "'depends on' needs depends"),
        (unassessed(analogue="digits"), "'not assessed' takes no analogue"),
        (claim(fair="so it reads"), "'reproduced' takes no fair"),
        (claim(expect="not reproduced", fair="so"), "'not reproduced' takes no fair"),
        (claim(expect="not reproduced", argument="a proof"), "takes no argument"),
        (claim("bound", relation="<=", over_seeds="mean"), "'bound' .* takes no over_seeds"),
        (unassessed(over_seeds="mean"), "takes no over_seeds"),
    ],
)  # fmt: skip
def test_keys_depend_on_kind_and_status(work, content, problem):
    with pytest.raises(UserError) as error:
        read_claims([work.write(content)])
    assert error.value.key == "a-claim"
    assert re.search(f"{problem}$", error.value.problem)


def test_all_mistakes_are_reported_at_once(work):
    with pytest.raises(UserError) as error:
        read_claims([work.write(claim(kind="equal"), claim(id="b", tolerance=-1))])
    first, second = str(error.value).splitlines()
    assert "deep_linear/claims.yaml: a-claim.kind: 'equal': " in first
    assert "deep_linear/claims.yaml: b.tolerance.value: -1: " in second


@pytest.mark.parametrize("paper", ["deep_linear", "other"])
@pytest.mark.parametrize("content", [{"claims": [claim()]}, {"findings": [finding(id="a-claim")]}])
def test_identifiers_are_unique(work, paper, content):
    first = work.write(claim())
    files = [first, work.write(**content, paper=paper)]
    if paper == "deep_linear":  # the same file, which has both
        statements = {"claims": [], "findings": []} | content
        files = [work.write(claim(), *statements["claims"], findings=statements["findings"])]
    with pytest.raises(UserError, match=f"already in {first}") as error:
        read_claims(files)
    assert (error.value.file, error.value.key) == (str(files[-1]), "a-claim.id")


ONE_OF = "needs one of instead, measure, sequence, shuffled and value"


@pytest.mark.parametrize(
    ("alternative", "key", "problem"),
    [
        ({}, "", ONE_OF),
        ({"shuffled": False}, "", ONE_OF),
        ({"shuffled": True, "measure": measure()}, "", ONE_OF),
        ({"value": 1.0, "source": "theory", "instead": {"metric": "n"}}, "", ONE_OF),
        ({"value": 1.0}, "", "needs value and source"),
        ({"measure": measure(), "source": "theory"}, "", "needs value and source"),
        ({"sequence": [measure()]}, ".0.sequence", "at least 2"),
        ({"instead": {"kind": "bound"}}, ".0.instead.kind", "unknown key"),
        ({"instead": {"select": {"seed": 0}}}, ".instead", "gives a measure .* all seeds"),
        ({"instead": {"minus": measure()}}, ".instead", "gives a measure .* both minus and over"),
        ({"instead": {"crossing": CROSSING}}, ".instead", "gives a measure .* fit and crossing"),
        ({"name": None, "shuffled": True}, ".0.name", "a text"),
    ],
)  # fmt: skip
def test_mistakes_in_alternatives_are_reported(work, alternative, key, problem):
    content = claim(
        "slope",
        measure=measure(over=measure(), fit=LINE),
        alternatives=[{"name": "another"} | alternative],
    )
    with pytest.raises(UserError) as error:
        read_claims([work.write(content)])
    assert error.value.key == f"a-claim.alternatives{key or '.0'}"
    assert re.search(problem, error.value.problem)


@pytest.mark.parametrize("key", sorted(Claim.model_fields.keys() - Finding.model_fields.keys()))
def test_findings_have_no_keys_of_claims(work, key):
    with pytest.raises(UserError, match="unknown key") as error:
        read_claims([work.write(findings=[finding(**{key: "x"})])])
    assert error.value.key == f"a-finding.{key}"


def test_a_finding_may_correct_a_claim_of_another_paper(work):
    files = [
        work.write(claim(expect="not reproduced", corrected_by="a-finding")),
        work.write(findings=[finding()], paper="other"),
    ]
    assert read_claims(files)[files[0]].claims[0].corrected_by == "a-finding"


def test_what_a_claim_refers_to_must_be_known_as_that(work):
    wrong = claim(id="b", expect="wrong")
    lost = finding(id="lost", expect="does not hold", reason="it was expected")
    read_claims([work.write(claim(expect="wrong", follows_from="b"), wrong)])
    for key, name, words in (
        ("follows_from", "c", "not expected to be wrong"),
        ("corrected_by", "b", "not expected to be reproduced"),
        ("corrected_by", "lost", "not expected to be reproduced"),
    ):
        first = claim(expect="wrong", **{key: name})
        with pytest.raises(UserError, match=words) as error:
            read_claims([work.write(first, wrong, claim(id="c"), findings=[lost])])
        assert error.value.key == f"a-claim.{key}"


# Criteria --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CRITERIA)
def test_criterion_in_both_places(work, name):
    vague = {"criterion": name}
    path = work.write(claim("bound", relation="<=", expected=vague, tolerance=vague))
    (read,) = read_claims([path])[path].claims
    meaning = CRITERIA[name]
    assert read.expected.criterion == read.tolerance.criterion == name
    assert read.expected.value == read.tolerance.value == meaning.value
    assert read.expected.source == read.tolerance.why == f"{name}: {meaning.means}"


@pytest.mark.parametrize("place", ["expected", "tolerance"])
@pytest.mark.parametrize(
    ("content", "key", "words"),
    [
        ({"criterion": "nearly"}, ".criterion", "unknown; use one of near, good, small, most"),
        ({"criterion": ["near"]}, ".criterion", "unknown; use one of near"),
        ({"criterion": "near", "value": 0.2}, ".criterion", "no other keys .* leave out value"),
        ({"criterion": "near", "why": "so"}, ".criterion", "no other keys .* leave out why"),
        ("near", "", "a mapping"),
    ],
)
def test_wrong_criteria_are_reported(work, place, content, key, words):
    with pytest.raises(UserError, match=words) as error:
        read_claims([work.write(claim(**{place: content}))])
    assert error.value.key == f"a-claim.{place}{key}"


def test_manual_and_criteria_agree():
    rows = [line.strip("| ").split(" | ") for line in MANUAL.splitlines() if line[:3] == "| `"]
    manual = {row[0].strip("`"): row[1:] for row in rows if row[0].strip("`") in CRITERIA}
    assert list(manual) == list(CRITERIA)
    for name, criterion in CRITERIA.items():
        value, strict, loose, words = manual[name]
        assert float(value) == criterion.value
        assert float(strict) == pytest.approx(criterion.strict, abs=0.004)
        assert float(loose) == pytest.approx(criterion.loose, abs=0.004)
        assert words == f"{criterion.means} ({criterion.words})"


# Files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("claims: [", "cannot be read as YAML"),
        ("1: []", "a key is text"),
        ("", "expected a mapping of keys to values"),
        ("claims:\n", "claims: expected a list"),
        ("claim: []\n", "unknown key"),
        ("claims: []\nmore: 1\n", "more: 1: unknown key"),
        ("claims: []\nsetups: {}\nsource: {title: a, authors: b, text_sha256: abc}\n",
         "source.text_sha256: 'abc': is not a SHA-256, 64 digits of 0-9 and a-f; save the text "
         "that you quote as a file; `sha256sum FILE` prints its SHA-256"),
    ],
)  # fmt: skip
def test_broken_files_are_reported(work, text, words):
    path = work.write()
    path.write_text(text)
    with pytest.raises(UserError, match=rf"deep_linear/claims\.yaml: (.|\n)*({words})"):
        read_claims([path])


def test_a_file_of_findings_alone_quotes_nothing(work):
    path = work.write()
    content = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({"findings": content.get("findings", [])}))
    assert read_claims([path])[path].claims == ()


def test_claims_without_the_text_that_they_quote_are_refused(work):
    path = work.write(claim())
    content = yaml.safe_load(path.read_text())
    del content["source"]
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(UserError, match="source: is required where claims quote it"):
        read_claims([path])


def test_missing_file_is_reported(work):
    with pytest.raises(UserError, match=r"none\.yaml: there is no such file"):
        read_claims([work.root / "none.yaml"])


def test_examples_of_the_manual_are_accepted(work):
    _, example, crossing, points = re.findall(r"```yaml\n(.*?)```", MANUAL, flags=re.DOTALL)
    path = work.write()
    path.write_text(example, encoding="utf-8")
    content = read_claims([path])[path]
    (slope,), (example,) = content.claims, content.findings
    assert slope.kind == "slope"
    assert content.setups[slope.setup].keys == {"network.name": "layered"}
    assert [bool(each.instead) for each in slope.alternatives] == [False, True]
    assert example.id == "descent-is-faster-than-flow"
    path = work.write(claim(**yaml.safe_load(crossing)))
    (threshold,) = read_claims([path])[path].claims
    assert threshold.measure.crossing.direction == "rising"
    path = work.write(claim(**yaml.safe_load(points)))
    (elsewhere,) = read_claims([path])[path].claims
    assert [point.value for point in elsewhere.elsewhere if point.own] == [10]


MODELS = (
    ClaimFile, Source, Setup, Claim, Finding, Measure, Alternative, ClaimRow, FindingRow,
    JudgedAlternative,
)  # fmt: skip


def test_manual_knows_every_key():
    rows = [line.split("|")[1:3] for line in MANUAL.splitlines() if line.startswith("| `")]
    known = {word for row in rows for word in re.findall(r"\w+", "".join(row))}
    assert {key for model in MODELS for key in model.model_fields} - known == set()


@pytest.mark.parametrize("status", STATUSES)
def test_manual_says_when_each_status_comes_out(status):
    assert f"| `{status}` | " in MANUAL


def test_manual_says_how_quotes_leave_out():
    assert f"`{ELLIPSIS}`" in MANUAL
