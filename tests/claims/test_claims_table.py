import csv
import json

import pytest
from workplace import claim, measure

from neuralrace.claims.judge import judge_papers
from neuralrace.claims.table import read_table, refuse_surprises, write_table
from neuralrace.errors import UserError

KEYS = {
    "id", "paper", "locator", "kind", "statement", "status", "verdict", "relation", "expected",
    "tolerance", "measured", "interval", "interval_is", "seeds", "undefined_seeds", "evidence",
    "figure", "reason", "corrected_by", "source", "why",
}  # fmt: skip


@pytest.fixture
def rows(work):
    """Claims of two papers with every status that is no surprise."""
    work.per_seed("deep_linear/e/main", [0.98, 1.0, 1.02, 1.01])
    work.per_seed("deep_linear/f/main", [2.0])
    first = work.write(
        claim(id="holds", figure="deep_linear/staircase", statement="|a|\n  is b"),
        claim(id="wrong", value=3.0, expect="discrepant", corrected_by="right", reason="a\n slip"),
    )
    skipped = claim(id="skipped", expect="not assessed", reason="other data")
    for key in ("measure", "expected", "tolerance"):
        del skipped[key]
    second = work.write(
        claim("bound", id="right", relation="<=", measure=measure("*/f/*"), value=2.0),
        skipped,
        paper="layer_dynamics",
    )
    first.write_text(first.read_text().replace("deep_linear/*", "deep_linear/e/*"))
    return judge_papers([first, second], work.results, work.cells)


def test_json(rows, tmp_path):
    write_table(rows, tmp_path / "claims")
    listed = json.loads((tmp_path / "claims/claims.json").read_text())
    assert [entry["id"] for entry in listed] == ["holds", "wrong", "right", "skipped"]
    assert all(set(entry) == KEYS for entry in listed)
    holds, wrong, right, skipped = listed
    assert [entry["status"] for entry in listed] == [
        "reproduced",
        "discrepant",
        "reproduced",
        "not assessed",
    ]
    assert holds["evidence"] == [(tmp_path / "results/deep_linear/e/main/metrics.nc").as_posix()]
    assert (holds["paper"], holds["seeds"], holds["source"]) == ("deep_linear", 4, "eq. 1")
    assert holds["interval"][0] < holds["measured"] < holds["interval"][1]
    assert wrong["corrected_by"] == "right"
    assert right["interval"] == [2.0, 2.0]
    assert skipped["measured"] is None
    assert skipped["interval"] is None


def test_json_reads_back(rows, tmp_path):
    write_table(rows, tmp_path)
    assert read_table(tmp_path / "claims.json") == rows


def test_csv(rows, tmp_path):
    write_table(rows, tmp_path)
    with open(tmp_path / "claims.csv", newline="") as handle:
        listed = list(csv.DictReader(handle))
    assert set(listed[0]) == (KEYS - {"interval"}) | {"low", "high"}
    assert float(listed[0]["low"]) == rows[0].interval[0]
    assert listed[0]["statement"] == "|a|\n  is b"
    assert listed[3]["measured"] == ""
    assert listed[2]["evidence"].endswith("results/deep_linear/f/main/metrics.nc")


def test_markdown(rows, tmp_path):
    write_table(rows, tmp_path)
    text = (tmp_path / "claims.md").read_text()
    assert "4 claims: 2 reproduced, 1 discrepant, 1 not assessed" in text
    assert text.index("## deep_linear") < text.index("wrong") < text.index("## layer_dynamics")
    assert "95% confidence intervals of the mean over seeds (Student t)" in text
    assert "| \\|a\\| is b |" in text
    assert "| 1 ± 0.1 | 1.002 [0.9753, 1.03] | 4 | reproduced |" in text
    assert "| ≤ 2 (slack 0.1) | 2 | 1 | reproduced |" in text
    assert "- **wrong** (discrepant): a slip. Instead: [right](#right)." in text
    assert '<a id="right"></a>' in text
    assert "(`deep_linear/staircase`)" in text
    assert "Not as known" not in text
    columns = {line.replace("\\|", "").count("|") for line in text.splitlines() if line[:1] == "|"}
    assert columns == {9}


def test_same_rows_give_the_same_bytes_and_nothing_else(rows, tmp_path):
    write_table(rows, tmp_path / "a")
    write_table(rows, tmp_path / "b")
    names = ["claims.csv", "claims.json", "claims.md"]
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == names
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_no_surprise_passes(rows):
    refuse_surprises(rows)


def test_surprises_are_written_and_refused(work, tmp_path):
    work.per_seed("deep_linear/e/main", [0.98, 1.0, 1.02, 1.01])
    work.per_seed("deep_linear/nan/main", [1.0, float("nan")])
    on = {"measure": measure("*/e/*")}
    found = work.judge(
        claim(id="as-known", **on),
        claim(id="fails", value=2.0, **on),
        claim(id="close", value=1.1, **on),
        claim(id="holds-now", expect="discrepant", **on),
        claim(id="nothing", measure=measure("*/nan/*")),
    )
    write_table(found, tmp_path)
    text = (tmp_path / "claims.md").read_text()
    assert "5 claims: 1 reproduced, 3 failed, 1 unexpectedly holds" in text
    assert text.index("## Not as known") < text.index("## deep_linear")
    assert read_table(tmp_path / "claims.json") == found
    with pytest.raises(UserError) as caught:
        refuse_surprises(found)
    told = str(caught.value)
    evidence = (work.results / "deep_linear/e/main/metrics.nc").as_posix()
    for words in (
        "4 of 5 claims",
        "fails (eq. 1): failed, contradicted: expected 2 ± 0.1, measured 1.002 [0.9753, 1.03]",
        "close (eq. 1): failed, undecided",
        "holds-now (eq. 1): unexpectedly holds, holds",
        "nothing (eq. 1): failed, undefined: expected 1 ± 0.1, measured undefined in 1 of 2 seeds",
        evidence,
    ):
        assert words in told
        assert words in text or words == "4 of 5 claims"
    assert "as-known" not in told


@pytest.mark.parametrize("text", ["", "{}", '[{"id": "a"}]'])
def test_no_table_is_told(tmp_path, text):
    (tmp_path / "claims.json").write_text(text)
    with pytest.raises(UserError, match=r"claims\.json: is no table of claims"):
        read_table(tmp_path / "claims.json")
    with pytest.raises(UserError, match="is no table of claims"):
        read_table(tmp_path / "gone.json")


def test_unwritable_folder_is_told(rows, tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(UserError, match="cannot be written"):
        write_table(rows, tmp_path / "taken")
