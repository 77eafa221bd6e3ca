import csv
import io
import json

import pytest

from claims_folder import SETUP, claim, finding, measure, unassessed
from neuralrace.claims.judge import judge_papers
from neuralrace.claims.robustness import Robustness
from neuralrace.claims.table import claims_table, read_tables, refuse_surprises, write_tables
from neuralrace.errors import UserError

SHARED = {
    "id", "paper", "kind", "statement", "status", "verdict", "surprise", "relation", "expected",
    "tolerance", "measured", "interval", "interval_is", "seeds", "undefined_seeds", "alternatives",
    "depends", "robustness", "evidence", "metrics", "figure", "source", "why",
}  # fmt: skip
OF_CLAIMS = {
    "locator", "quote", "source_setup", "differs", "reason", "argument", "fair", "corrected_by",
}  # fmt: skip
NESTED = {"robustness", "interval", "source_setup", "alternatives"}
NAMES = ["claims.csv", "claims.json", "claims.md", "findings.csv", "findings.json", "findings.md"]


@pytest.fixture
def rows(work):
    """Claims of two papers with every status, none a surprise, and findings of one."""
    work.per_seed("deep_linear/e/main", [0.98, 1.0, 1.02, 1.01], {"seeds": 4})
    work.per_seed("deep_linear/f/main", [2.0])
    on = {"measure": measure("*/e/*")}
    rivals = [
        {"name": "a rival", "value": 5.0, "source": "theory"},
        {"name": "nearest | of all", "measure": measure("*/f/*")},
    ]
    first = work.write(
        claim(id="holds", figure="deep_linear/staircase", statement="|a|\n  is b",
              alternatives=rivals, quote="It is\nso | here.", **on),
        claim(id="wrong", value=3.0, expect="wrong", corrected_by="right", reason="a\n slip",
              argument="a proof.", fair="it says so", **on),
        claim(id="elsewhere", value=3.0, expect="not reproduced", differs=["data", "sizes"],
              depends="the size", **on),
        claim(id="close", value=1.1, expect="undecided", **on),
        findings=[finding(id="found", depends="a | b", alternatives=rivals, **on)],
        setups={"main": SETUP | {"keys": {"seeds": 2}}},
    )  # fmt: skip
    second = work.write(
        claim("bound", id="right", relation="<=", measure=measure("*/f/*"), value=2.0,
              alternatives=[{"name": "broken", "value": 9.0, "source": "x"}]),
        unassessed(id="skipped"),
        paper="layer_dynamics",
    )  # fmt: skip
    return judge_papers([first, second], work.results, work.cells)


def test_json(rows, tmp_path):
    write_tables(*rows, tmp_path / "claims")
    listed = json.loads((tmp_path / "claims/claims.json").read_text())
    assert [entry["id"] for entry in listed] == [
        "holds", "wrong", "elsewhere", "close", "right", "skipped",
    ]  # fmt: skip
    assert all(set(entry) == SHARED | OF_CLAIMS for entry in listed)
    holds, wrong, elsewhere, close, right, skipped = listed
    assert [entry["status"] for entry in listed] == [
        "reproduced", "wrong", "not reproduced", "undecided", "reproduced", "not assessed",
    ]  # fmt: skip
    assert holds["evidence"] == [(tmp_path / "results/deep_linear/e/main/metrics.nc").as_posix()]
    assert (holds["paper"], holds["seeds"], holds["source"]) == ("deep_linear", 4, "eq. 1")
    assert holds["interval"][0] < holds["measured"] < holds["interval"][1]
    assert holds["source_setup"] == {
        "locator": "sec. 2",
        "printed": {"network": "one hidden layer"},
        "keys": {"seeds": 2},
    }
    assert (holds["differs"], elsewhere["differs"]) == ([], ["data", "sizes"])
    assert holds["alternatives"] == [
        {"name": "a rival", "measured": 5.0, "interval": [5.0, 5.0], "verdict": "contradicted",
         "fails": True, "source": "theory"},
        {"name": "nearest | of all", "measured": 2.0, "interval": [2.0, 2.0],
         "verdict": "contradicted", "fails": True, "source": None},
    ]  # fmt: skip
    assert (wrong["corrected_by"], wrong["argument"], wrong["fair"]) == (
        "right", "a proof.", "it says so",
    )  # fmt: skip
    assert close["verdict"] == "undecided"
    assert right["interval"] == [2.0, 2.0]
    assert (skipped["measured"], skipped["interval"], skipped["alternatives"]) == (None, None, [])
    assert all(entry["surprise"] is None for entry in listed)


def test_json_of_findings(rows, tmp_path):
    write_tables(*rows, tmp_path)
    (row,) = json.loads((tmp_path / "findings.json").read_text())
    assert set(row) == SHARED
    assert (row["id"], row["status"], row["depends"]) == ("found", "holds", "a | b")
    assert [each["fails"] for each in row["alternatives"]] == [True, True]


def test_json_reads_back(rows, tmp_path):
    write_tables(*rows, tmp_path)
    assert read_tables(tmp_path) == rows


def test_claims_as_a_table(rows, tmp_path):
    write_tables(*rows, tmp_path)
    table = claims_table(tmp_path).set_index("claim")
    assert list(table.index) == ["holds", "wrong", "elsewhere", "close", "right", "skipped"]
    place = ["metric", "paper", "experiment", "cell"]
    assert table.loc["right", place].tolist() == ["m", "deep_linear", "f", "main"]
    assert table.loc["right", ["claimed_by", "measured"]].tolist() == ["layer_dynamics", 2.0]
    assert table.loc["skipped", place].isna().all()


def test_a_row_lists_metrics_with_their_cells(work):
    work.metrics("p/e/a", m=(("seed",), [1.0]), n=(("seed",), [0.5]))
    work.metrics("p/e/b", m=(("seed",), [2.0]))
    both = measure("p/e/*", reduce="mean", over=measure("p/e/a", "n"))
    (row,) = work.judge(claim(measure=both, value=3.0))
    assert row.metrics == {"m": ("p/e/a", "p/e/b"), "n": ("p/e/a",)}
    assert [path.split("/")[-2] for path in row.evidence] == ["a", "b"]


def test_csv(rows, tmp_path):
    write_tables(*rows, tmp_path)
    claims, findings = (
        list(csv.DictReader(io.StringIO((tmp_path / f"{name}.csv").read_bytes().decode())))
        for name in ("claims", "findings")
    )
    flat = {"low", "high", "nearest_alternative", "robustness"}
    assert set(claims[0]) == (SHARED | OF_CLAIMS) - NESTED | flat
    assert set(findings[0]) == SHARED - NESTED | flat
    assert float(claims[0]["low"]) == rows[0][0].interval[0]
    assert claims[0]["statement"] == "|a|\n  is b"
    assert claims[0]["quote"] == "It is\nso | here."
    assert claims[0]["nearest_alternative"] == "nearest | of all: 2"
    assert claims[2]["differs"] == "data; sizes"
    assert claims[5]["measured"] == claims[5]["nearest_alternative"] == ""
    assert claims[4]["evidence"].endswith("results/deep_linear/f/main/metrics.nc")
    assert claims[4]["metrics"] == "m"
    assert findings[0]["status"] == "holds"


def columns(text):
    """Numbers of columns of the tables in a page."""
    lines = [line.replace("\\|", "") for line in text.splitlines() if line[:1] == "|"]
    return {line.count("|") - 1 for line in lines}


def test_markdown(rows, tmp_path):
    write_tables(*rows, tmp_path)
    text = (tmp_path / "claims.md").read_text(encoding="utf-8")
    for line in (
        "6 claims: 2 reproduced, 1 discrepant, 1 differs here, 1 undecided, 1 not assessed",
        "4 claims: 1 reproduced, 1 discrepant, 1 differs here, 1 undecided",
        "Intervals in brackets are 95% confidence intervals over seeds",
        "it does not say that the paper is wrong",
        '| <a id="holds"></a>holds (`deep_linear/staircase`) | eq. 1 | “It is so \\| here.” '
        "| \\|a\\| is b | 1 ± 0.1 | 1.002 [0.9753, 1.03] | nearest \\| of all: 2 |  | reproduced |",
        "| ≤ 2 (slack 0.1) | 2 | broken: 9 |  | reproduced |",
        "| differs here (set-up differs) |",
        "- **wrong** (discrepant): a slip. a proof. it says so. Instead: [right](#right).",
        "- **elsewhere** (differs here): it is known. Differs: data; sizes. Depends on the size.",
        "- **skipped** (not assessed): other data.",
    ):
        assert line in text
    assert text.index("## deep_linear") < text.index('id="wrong"') < text.index("## layer_dynamics")
    assert "Different from the known outcome" not in text
    assert "**holds**" not in text  # nothing to explain
    assert columns(text) == {9}


def test_markdown_of_findings(rows, tmp_path):
    write_tables(*rows, tmp_path)
    text = (tmp_path / "findings.md").read_text(encoding="utf-8")
    assert text.startswith("# Findings\n\nResults of ours that no paper states")
    assert "1 findings: 1 holds" in text
    assert (
        '| <a id="found"></a>found | Something is so. Depends on a \\| b. | 1 ± 0.1 '
        "| 1.002 [0.9753, 1.03] | nearest \\| of all: 2 |  | holds |"
    ) in text
    assert columns(text) == {7}


def test_limits_of_each_kind_are_shown(work, tmp_path):
    work.per_seed("deep_linear/e/a", [1.0, 1.25])
    work.per_seed("deep_linear/e/b", [2.0, 2.25])
    sequence = [measure("*/a"), measure("*/b")]
    rows = work.judge(
        claim("ordering", id="order", sequence=sequence, value=0.5, tolerance=0.25),
        claim("bound", id="low", relation=">=", measure=measure("*/b"), value=2.0, tolerance=0.0),
        claim(id="exact", value=1.125, tolerance=0.0, measure=measure("*/a"), expect="undecided"),
    )
    write_tables(rows, [], tmp_path)
    text = (tmp_path / "claims.md").read_text(encoding="utf-8")
    for words in ("| increases > 0.25 | 1 |", "| ≥ 2 | 2 [2, 2.25] |", "| 1.125 | 1.125 ["):
        assert words in text


def test_same_rows_give_the_same_bytes_and_nothing_else(rows, tmp_path):
    write_tables(*rows, tmp_path / "a")
    write_tables(*rows, tmp_path / "b")
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == NAMES
    for name in NAMES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_no_surprise_passes(rows):
    claims, findings = rows
    refuse_surprises([*claims, *findings])


def test_surprises_are_written_and_refused(work, tmp_path):
    work.per_seed("deep_linear/e/main", [0.98, 1.0, 1.02, 1.01])
    work.per_seed("deep_linear/nan/main", [1.0, float("nan")])
    on = {"measure": measure("*/e/*")}
    near = {"alternatives": [{"name": "too near", "value": 1.05, "source": "x"}]}
    path = work.write(
        claim(id="as-known", **on),
        claim(id="fails", value=2.0, **on),
        claim(id="close", value=1.1, **on),
        claim(id="holds-now", expect="wrong", **on),
        claim(id="nothing", measure=measure("*/nan/*")),
        claim(id="powerless", **on, **near),
        claim(id="both", expect="undecided", **on, **near),
        findings=[finding(id="found-not", value=2.0, **on), finding(**on)],
    )
    claims, findings = judge_papers([path], work.results, work.cells)
    write_tables(claims, findings, tmp_path)
    text = (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert "7 claims: 4 reproduced, 1 discrepant, 2 undecided" in text
    assert text.index("## Different from the known outcome") < text.index("## deep_linear")
    assert read_tables(tmp_path) == (claims, findings)
    with pytest.raises(UserError) as error:
        refuse_surprises([*claims, *findings])
    message = str(error.value)
    evidence = (work.results / "deep_linear/e/main/metrics.nc").as_posix()
    both = "has no power against: too near"
    for words in (
        "- deep_linear: fails (eq. 1): known as reproduced, came out wrong: contradicted: "
        "expected 2 ± 0.1, measured 1.002 [0.9753, 1.03]\n  To do: find what changed; before",
        "- deep_linear: close (eq. 1): known as reproduced, came out undecided: undecided: ",
        "To do: the seeds do not decide it",
        "- deep_linear: holds-now (eq. 1): known as wrong, came out reproduced: holds: ",
        "To do: find what changed; if the statement holds after all, write expect: reproduced.",
        "- deep_linear: nothing (eq. 1): known as reproduced, came out undecided: undefined: "
        "expected 1 ± 0.1, measured undefined in 1 of 2 seeds",
        f"- deep_linear: powerless (eq. 1): {both}: holds: ",
        "To do: where it has no power, find a sharper measure or another alternative.",
        f"- deep_linear: both (eq. 1): known as undecided, came out reproduced; {both}: holds: ",
        "another alternative; else find what changed; if the statement holds",
        f"Evidence: {evidence}",
    ):
        assert words in message
        assert words in text
    assert message.startswith("7 of 9 statements differ from their known outcome:\n")
    line = "- deep_linear: found-not: known to hold, came out does not hold: contradicted: "
    assert line in message
    assert line in (tmp_path / "findings.md").read_text(encoding="utf-8")
    assert line not in text
    assert "as-known" not in message
    assert "a-finding" not in message


@pytest.mark.parametrize("name", ["claims", "findings"])
@pytest.mark.parametrize("text", [None, "", "{}", '[{"id": "a"}]'])
def test_an_unreadable_table_is_refused(rows, tmp_path, name, text):
    write_tables(*rows, tmp_path)
    path = tmp_path / f"{name}.json"
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=r"cannot be read|is damaged") as error:
        read_tables(tmp_path)
    assert (error.value.file, error.value.remedy[:16]) == (str(path), "judge the claims")


def test_an_unwritable_folder_is_refused(rows, tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(UserError, match="cannot be written"):
        write_tables(*rows, tmp_path / "taken")


def with_robustness(row, **changes):
    """A row with its robustness runs."""
    robustness = {
        "seeds": "7 to 9", "verdict": "holds", "measured": 1.01, "interval": (0.98, 1.04),
        "stochastic": True, "survives": True, "lost": (), "doubled": (),
    }  # fmt: skip
    return row.model_copy(update={"robustness": Robustness(**robustness | changes)})


def test_tables_show_robustness_runs(rows, tmp_path):
    claims, findings = rows
    lost = ("twice the steps",)
    shown = [
        with_robustness(claims[0]),
        with_robustness(claims[1], survives=False, lost=lost),
        with_robustness(claims[2], stochastic=False),
        *claims[3:],
    ]
    write_tables(shown, [with_robustness(findings[0], measured=None, interval=None)], tmp_path)
    text = (tmp_path / "claims.md").read_text()
    assert "| 1.01 [0.98, 1.04] | reproduced |" in text
    assert "| 1.01 [0.98, 1.04]; verdict changes with twice the steps |" in text
    assert (
        "of 2 verdicts that depend on seeds, 2 (100%) are the same with fresh seeds, and 1 (50%)"
    ) in text
    assert "| holds | holds |" in (tmp_path / "findings.md").read_text()
    assert read_tables(tmp_path)[0] == shown
