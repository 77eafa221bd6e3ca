import csv
import io
import json
from importlib.metadata import version
from xml.etree import ElementTree

import pytest

from builders import REPOSITORY
from claims_folder import SETUP, claim, finding, measure, unassessed
from neuralrace.claims.criteria import CRITERIA
from neuralrace.claims.judge import judge_papers, known_claims
from neuralrace.claims.pages import limit, measured
from neuralrace.claims.ranges import Point, Range
from neuralrace.claims.spec import read_claims
from neuralrace.claims.table import (
    CLAIM_COLUMNS,
    FINDING_COLUMNS,
    claims_table,
    read_tables,
    refuse_surprises,
    write_tables,
)
from neuralrace.claims.variants import VariantVerdict
from neuralrace.errors import UserError
from neuralrace.results.checksums import Checksums, file_sha256

SHARED = {
    "id", "paper", "kind", "statement", "status", "verdict", "surprise", "relation", "expected",
    "tolerance", "measured", "interval", "interval_is", "seeds", "undefined_seeds", "alternatives",
    "depends", "blind", "ranges", "evidence", "metrics", "figure", "source", "why", "reason",
}  # fmt: skip
OF_CLAIMS = {
    "title", "authors", "summary", "sentence", "locator", "quote", "source_setup", "differs",
    "grade", "weak",
    "identity", "analogue", "argument", "fair", "follows_from", "corrected_by",
}  # fmt: skip
NAMES = [
    *("claims.csv", "claims.json", "claims.md", "claims.svg", "claims/deep_linear.md"),
    *("claims/layer_dynamics.md", "findings.csv", "findings.json", "findings.md"),
]


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
        "premises": {},
        "differs": [],
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
    assert tuple(claims[0]) == CLAIM_COLUMNS
    assert tuple(findings[0]) == FINDING_COLUMNS
    assert float(claims[0]["low"]) == rows[0][0].interval[0]
    assert claims[0]["statement"] == "|a|\n  is b"
    assert claims[0]["quote"] == "It is\nso | here."
    assert (claims[0]["rival"], claims[0]["rival_measured"]) == ("nearest | of all", "2.0")
    assert claims[0]["setup"] == "network: one hidden layer"
    assert (claims[1]["grade"], claims[1]["sentence"], claims[2]["sentence"]) == ("slip", "2", "2")
    assert claims[2]["differs"] == "data; sizes"
    assert claims[5]["measured"] == claims[5]["rival"] == ""
    assert claims[4]["metrics"] == "m"
    assert {row["version"] for row in (*claims, *findings)} == {version("neuralrace")}
    assert findings[0]["status"] == "holds"


def columns(text):
    """Numbers of columns of the tables in a page."""
    lines = [line.replace("\\|", "") for line in text.splitlines() if line[:1] == "|"]
    return {line.count("|") - 1 for line in lines}


def test_page_of_a_paper(rows, tmp_path):
    write_tables(*rows, tmp_path)
    text = (tmp_path / "claims/deep_linear.md").read_text(encoding="utf-8")
    assert text.startswith(
        "# On learning\n\nBy A. Author.\n\n"
        "Of 2 sentences tested, by 4 claims: 1 holds, 1 wrong (1 error). Several claims"
    )
    for line in (
        "## Wrong: 1 claim\n",
        "| [wrong](#wrong) | *slip*. *weak*. Something is so. | 1 [0.975, 1.03], n = 4 "
        "| 3 ± 0.1 (eq. 1) | not varied | [right](../findings.md#right) |  |",
        "## Not reproduced: 1 claim\n",
        "## Undecided: 1 claim\n",
        "## Holds: 1 claim\n",
        "| [holds](#holds) | \\|a\\| is b | 1 [0.975, 1.03], n = 4 | 1 ± 0.1 (eq. 1) "
        "| not varied | nearest \\| of all: 2 | `deep_linear/staircase` |",
        '<a id="wrong"></a>\n### wrong\n\n> “It is so.”\n\n(eq. 1)\n',
        "- Status: wrong, slip\n- Why: a slip\n- Argument: a proof.\n",
        "- Fair, by a second reader: it says so\n- Instead: [right](../findings.md#right)\n",
        "- Depends on: the size\n",
        "- Differs here: data; sizes\n",
        "- Metrics: `m` of `deep_linear/e/main`\n",
    ):
        assert line in text
    order = ("## Wrong", "## Not reproduced", "## Undecided", "## Holds", "## Details")
    places = [text.index(heading) for heading in order]
    assert places == sorted(places)
    assert "Different from the known outcome" not in text
    assert columns(text) == {7}
    other = (tmp_path / "claims/layer_dynamics.md").read_text(encoding="utf-8")
    assert (
        "| [right](#right) | *weak*. Something is so. | 2, n = 1 | at most 2.1 (eq. 1) "
        "| not varied | broken: 9 |  |" in other
    )
    assert "| [skipped](#skipped) | Something is so. | other data |" in other


def test_first_page(rows, tmp_path):
    write_tables(*rows, tmp_path)
    text = (tmp_path / "claims.md").read_text(encoding="utf-8")
    for line in (
        "Of 3 sentences tested, by 5 claims: 2 hold, 1 wrong (1 error).",
        "[claims.csv](claims.csv)",
        "](claims.svg)",
        "| Paper | Wrong | Holds |",
        "| [deep_linear](claims/deep_linear.md) | 1 | 1 |",
        "| [layer_dynamics](claims/layer_dynamics.md) | 0 | 1 |",
    ):
        assert line in text


def test_picture_has_a_tile_for_each_sentence(rows, tmp_path):
    write_tables(*rows, tmp_path)
    drawn = ElementTree.parse(tmp_path / "claims.svg")
    name = "{http://www.w3.org/2000/svg}"
    links = {each.get("href"): each for each in drawn.iter(f"{name}a")}
    assert list(links) == [
        "claims/deep_linear.md#holds",
        "claims/deep_linear.md#wrong",
        "claims/layer_dynamics.md#right",
    ]
    told = [each.findtext(f"{name}title") for each in links.values()]
    assert told == ["reproduced: It is so | here.", "wrong: It is so.", "reproduced: It is so."]
    assert len({each.find(f"{name}rect").get("fill") for each in links.values()}) == 2


def test_page_of_findings(rows, tmp_path):
    claims, (found,) = rows
    lost = found.model_copy(
        update={"id": "lost", "status": "does not hold", "reason": "it was expected"}
    )
    write_tables(claims, [found, lost], tmp_path)
    text = (tmp_path / "findings.md").read_text(encoding="utf-8")
    assert text.startswith("# Findings\n\nResults of ours that no paper states")
    assert text.index("\n## Expected, and did not hold: 1") < text.index("\n## deep_linear: 1")
    assert (
        "| [found](#found) | Something is so. Depends on a \\| b. | 1 [0.975, 1.03], n = 4 "
        "| 1 ± 0.1 (eq. 1) | not varied | nearest \\| of all: 2 |  |"
    ) in text
    assert "| [lost](#lost) | Something is so. it was expected Depends on" in text
    assert '<a id="lost"></a>' in text
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
    text = (tmp_path / "claims/deep_linear.md").read_text(encoding="utf-8")
    for words in (
        "| 1, n = 2 | an increase of more than 0.25 (eq. 1) |",
        "| 2, lowest of 2 (highest 2.25) | at least 2 (eq. 1) |",
        "n = 2 | 1.125 (eq. 1) |",
    ):
        assert words in text


def test_the_deciding_run_is_named_by_the_side_on_which_it_lies(work):
    work.per_seed("deep_linear/e/a", [1e-14, 3e-14, 2e-14])
    on = {"measure": measure("*/a"), "tolerance": 0.0}
    # a limit so far away that rounding hides the distances from it
    above = claim("bound", relation="<=", value=100.0, id="above", **on)
    below = claim("bound", relation=">=", value=-100.0, id="below", **on)
    (high, low) = work.judge(above, below)
    assert measured(high) == "3e-14, highest of 3 (lowest 1e-14)"
    assert measured(low) == "1e-14, lowest of 3 (highest 3e-14)"
    (either,) = work.judge(claim(value=0.0, over_seeds="worst", **on | {"tolerance": 0.5}))
    assert measured(either) == "3e-14, farthest of 3 (1e-14 to 3e-14)"


def test_an_order_without_a_least_increase_is_shown_as_an_increase(work):
    work.per_seed("deep_linear/e/a", [1.0, 1.25])
    work.per_seed("deep_linear/e/b", [2.0, 2.25])
    sequence = [measure("*/a"), measure("*/b")]
    (row,) = work.judge(claim("ordering", sequence=sequence, value=0.0, tolerance=0.0))
    assert limit(row) == "an increase"


def test_a_verdict_that_fresh_seeds_change_is_told_in_the_table(rows, tmp_path):
    claims, findings = rows
    fresh = VariantVerdict(seeds=(7, 9), verdict="undecided", measured=0.9, interval=(0.7, 1.1))
    write_tables([claims[0].model_copy(update={"blind": fresh})], findings, tmp_path)
    text = (tmp_path / "claims/deep_linear.md").read_text(encoding="utf-8")
    told = (
        "| 1 [0.975, 1.03], n = 4; with fresh seeds 0.9 [0.7, 1.1]: undecided | 1 ± 0.1 (eq. 1) |"
    )
    assert told in text


def test_pages_begin_with_links_to_their_sections(rows, tmp_path):
    write_tables(*rows, tmp_path)
    text = (tmp_path / "claims/deep_linear.md").read_text(encoding="utf-8")
    assert "On this page: [Wrong: 1 claim](#wrong-1-claim), [Not reproduced: 1 claim](#not-" in text
    assert "[Details](#details).\n" in text
    findings = (tmp_path / "findings.md").read_text(encoding="utf-8")
    assert "On this page: [deep_linear: 1](#deep_linear-1), [Details](#details).\n" in findings


def test_the_papers_own_claims_give_no_reason_twice():
    files = sorted(REPOSITORY.glob("config/*/claims.yaml"))
    for row in (row for rows in known_claims(read_claims(files)) for row in rows):
        if row.expected is not None:
            assert row.source != row.why, row.id
            assert not any(criterion.words in row.source for criterion in CRITERIA.values())


def test_same_rows_give_the_same_bytes_and_nothing_else(rows, tmp_path):
    write_tables(*rows, tmp_path / "a")
    write_tables(*rows, tmp_path / "b")
    files = [path for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert sorted(path.relative_to(tmp_path / "a").as_posix() for path in files) == NAMES
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
    text = (tmp_path / "claims/deep_linear.md").read_text(encoding="utf-8")
    assert text.index("## Different from the known outcome") < text.index("## Wrong")
    assert "fails (eq. 1): known as reproduced" in (tmp_path / "claims.md").read_text()
    assert read_tables(tmp_path) == (claims, findings)
    with pytest.raises(UserError) as error:
        refuse_surprises([*claims, *findings])
    message = str(error.value)
    evidence = (work.results / "deep_linear/e/main/metrics.nc").as_posix()
    both = "has no power against: too near"
    for words in (
        "- deep_linear: fails (eq. 1): known as reproduced, came out wrong: contradicted: "
        "expected 2 ± 0.1, measured 1 [0.975, 1.03], n = 4\n  To do: find what changed; before",
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
    assert message.startswith("7 of 9 statements without the known outcome:\n")
    line = "- deep_linear: found-not: known as holds, came out does not hold: contradicted: "
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


def test_a_table_of_another_version_is_not_called_damaged(rows, tmp_path):
    write_tables(*rows, tmp_path)
    path = tmp_path / "claims.json"
    path.write_text('[{"id": "a"}]')
    Checksums("", {path.name: file_sha256(path)}).write(tmp_path / "claims.sha256")
    with pytest.raises(UserError, match="is of another version, or no table of judged claims"):
        read_tables(tmp_path)


def test_an_unwritable_folder_is_refused(rows, tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(UserError, match="cannot be written"):
        write_tables(*rows, tmp_path / "taken")


def test_tables_show_variants(rows, tmp_path):
    claims, findings = rows
    fresh = VariantVerdict(seeds=(7, 9), verdict="holds", measured=1.01, interval=(0.98, 1.04))
    points = (
        Point(value="0.01", verdict="undefined", told="it diverged"),
        Point(value="0.1", verdict="holds", own=True, measured=1.0, interval=(0.9, 1.1)),
        Point(value="1", verdict="contradicted", decides=False, measured=2.0, interval=(2.0, 2.0)),
    )
    same = Range(setting="width", points=points[1:2])
    tried = Range(setting="init scale", points=points)
    first = claims[0].model_copy(update={"blind": fresh, "ranges": (tried, same)})
    write_tables([first, *claims[1:]], findings, tmp_path)
    text = (tmp_path / "claims/deep_linear.md").read_text(encoding="utf-8")
    assert "- With fresh seeds: holds, 1.01 [0.98, 1.04] (seeds 7 to 9)\n" in text
    assert "| init scale: 0.01 – **0.1** ● (1 ○); unchanged: width |" in text
    assert (
        "- Ranges: init scale: 0.01 undefined it diverged, 0.1 holds 1 [0.9, 1.1] (ours), "
        "1 contradicted 2 (does not count); width: 0.1 holds 1 [0.9, 1.1] (ours)\n"
    ) in text
    row = next(csv.DictReader(io.StringIO((tmp_path / "claims.csv").read_text(encoding="utf-8"))))
    assert (row["fresh_verdict"], row["fresh_measured"]) == ("holds", "1.01")
    assert row["ranges"] == (
        "init scale: 0.01 undefined, 0.1 holds, 1 contradicted; width: 0.1 holds"
    )
    assert read_tables(tmp_path)[0][0] == first
