"""Verdicts that are stored for the site: those of the claims and cells that there are now."""

import pytest

from builders import REPOSITORY
from neuralrace.claims import stored
from neuralrace.claims.judge import JudgedAlternative
from neuralrace.claims.spec import read_claims
from neuralrace.claims.stored import store, stored_verdicts
from neuralrace.claims.table import write_tables
from neuralrace.errors import UserError

CELL = "deep_linear/e/main"


@pytest.fixture
def claims():
    return read_claims(sorted(REPOSITORY.glob("config/*/claims.yaml")))


@pytest.fixture
def checked(claims, monkeypatch):
    """Checksums of all judged statements, computed once; a test may change them."""
    found = {
        each.id: each.judged_as()
        for content in claims.values()
        for each in content.statements
        if each.judged
    }
    monkeypatch.setattr(stored, "checksums", lambda claims: found)
    return found


@pytest.fixture
def judged(work, claims, checked):
    """A claim and a finding that were judged, and where they are stored."""
    work.metrics(CELL, m=(("seed",), [1.0]))
    (claim, *_), (finding, *_) = stored.known_claims(claims)
    found = {"verdict": "holds", "measured": 0.123456789, "interval": (0.1, 0.2), "seeds": 7}
    rival = JudgedAlternative(name="a rival", measured=9.0, verdict="contradicted", fails=True)
    found |= {"metrics": {"m": (CELL,)}, "alternatives": (rival,)}
    computed = {"differs": ("seeds: 5 in place of 1", *claim.differs)}
    rows = [claim.model_copy(update=found | computed)], [finding.model_copy(update=found)]
    write_tables(*rows, work.results)
    path = work.root / "verdicts.json"
    store(work.results, path, "abc")
    return *rows, path


def test_stored_verdicts_stand_beside_what_the_claim_files_say(judged, claims, checked):
    (claim,), (finding,), path = judged
    read = stored_verdicts(path, claims)
    assert (read.commit, read.versions) == ("abc", "x")
    assert read.claims[0] == claim.model_copy(update={"measured": 0.123457})
    assert read.findings[0] == finding.model_copy(update={"measured": 0.123457})
    assert {row.verdict for row in read.claims[1:]} == {None}
    assert set(read.stale) == set(checked) - {claim.id, finding.id}


def test_each_statement_has_a_line_without_its_texts(judged):
    (claim,), (finding,), path = judged
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line.partition(":")[0] for line in lines[2:-1]] == [
        f'"{claim.id}"', f'"{finding.id}"',
    ]  # fmt: skip
    assert claim.statement not in lines[2]
    assert claim.differs[-1] not in lines[2] or not claim.differs[1:]


def test_a_verdict_on_another_statement_is_not_shown(judged, claims, checked):
    (claim,), _, path = judged
    checked[claim.id] = "another measure, or other cells"
    read = stored_verdicts(path, claims)
    assert (read.claims[0].verdict, read.claims[0].measured) == (None, None)
    assert claim.id in read.stale
    assert read.findings[0].measured == 0.123457


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"made_by": {}, "statements": {}}'])
def test_another_file_is_refused(tmp_path, claims, checked, content):
    path = tmp_path / "verdicts.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=r"holds no verdicts .*; `make verdicts` writes it"):
        stored_verdicts(path, claims)


def test_another_specification_of_a_cell_changes_the_checksum(claims, monkeypatch):
    before = stored.checksums(claims)
    assert set(before) == {s.id for c in claims.values() for s in c.statements if s.judged}
    plan = stored.read_plan

    def other(config, files):
        made = plan(config, files)
        name = next(name for name in made.cells if name.startswith("deep_linear/step_size/"))
        made.cells[name] = made.cells[name].model_copy(update={"seeds": 99})
        return made

    monkeypatch.setattr(stored, "read_plan", other)
    after = stored.checksums(claims)
    assert {name for name in before if before[name] != after[name]}
