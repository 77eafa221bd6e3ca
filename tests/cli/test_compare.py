"""Comparison of two results folders."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from claims_folder import ClaimsFolder, claim
from neuralrace.claims.judge import judge_papers
from neuralrace.claims.table import write_tables
from neuralrace.cli import compare
from neuralrace.cli.main import main
from neuralrace.errors import UserError

SPEC = {"precision": "float64"}
VALUES = [1.0, 2.0, -4.0]


@pytest.fixture
def folders(tmp_path):
    """A function that writes two results folders, each with one metric and a judged claim."""

    def write(one, other, spec=SPEC, other_spec=None, cells=("e", "e")):
        places = [ClaimsFolder(tmp_path / name) for name in ("one", "other")]
        specs = (spec, other_spec or spec)
        for place, values, spec, cell in zip(places, (one, other), specs, cells, strict=True):
            place.root.mkdir()
            place.per_seed(f"deep_linear/{cell}/main", values, spec)
            rows = judge_papers(
                [place.write(claim(over_seeds="worst"))], place.results, place.cells
            )
            write_tables(*rows, place.results)
        return [place.results for place in places]

    return write


def differences(one, other):
    return list(compare.differences(compare.comparable_cells(one, other)[0]))


def test_equal_folders_have_no_differences(folders):
    one, other = folders(VALUES, VALUES)
    assert differences(one, other) == [("deep_linear/e/main", "m", 0.0, 1e-6)]
    text = "\n".join(compare.report(one, other))
    assert "claims and findings with another outcome: 0" in text
    assert "1 equal to the bit, 0 beyond rounding" in text


@pytest.mark.parametrize(("precision", "beyond"), [("float64", True), ("float32", False)])
def test_differences_are_relative_to_the_largest_entry(folders, precision, beyond):
    (difference,) = differences(*folders(VALUES, [1.0, 2.0004, -4.0], {"precision": precision}))
    assert difference.relative == pytest.approx(1e-4)
    assert difference.beyond == beyond


def test_value_that_is_undefined_in_one_folder_is_beyond_rounding(folders):
    (difference,) = differences(*folders(VALUES, [1.0, np.nan, -4.0]))
    assert difference.beyond
    assert difference.relative == np.inf


def test_value_that_is_undefined_in_both_folders_is_equal(folders):
    (difference,) = differences(*folders([np.nan, 1.0], [np.nan, 1.0]))
    assert difference.relative == 0.0


def test_different_outcome_of_a_claim_is_listed(folders):
    one, other = folders([1.0, 1.0], [1.0, 1.5])
    outcomes = ["claims and findings with another outcome: 1", "- a-claim: reproduced / wrong"]
    assert list(compare.outcomes(one, other)) == outcomes
    assert "- a-claim: reproduced / wrong" in list(compare.report(one, other))


def test_cells_and_claims_of_one_folder_are_counted(folders, capsys):
    one, other = folders(VALUES, VALUES)
    for number in range(5):
        place = ClaimsFolder(one.parent)
        place.per_seed(f"deep_linear/e/{number}", VALUES, SPEC)
    for place, precision in (
        (ClaimsFolder(each.parent), n) for n, each in ((32, one), (64, other))
    ):
        place.per_seed("deep_linear/f/main", VALUES, {"precision": f"float{precision}"})
    findings = json.loads((other / "claims.json").read_text())
    (other / "claims.json").write_text(json.dumps([{**findings[0], "id": "another"}]))
    assert main(["compare", str(one), str(other)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[1:9] == [
        f"claims and findings with another outcome: 0; 1 only in {one}, 1 only in {other}",
        f"- only in {one}: a-claim",
        f"- only in {other}: another",
        f"compared 1 cell; 5 only in {one}, 1 with different specifications",
        f"- only in {one}: deep_linear/e/0, deep_linear/e/1, deep_linear/e/2, ...",
        "- with different specifications: deep_linear/f/main",
        "1 metric of 1 cell: 1 equal to the bit, 0 beyond rounding",
        "",
    ]


def test_folders_without_a_common_cell_are_refused(folders, capsys):
    pair = folders(VALUES, VALUES, cells=("e", "f"))
    assert main(["compare", *map(str, pair)]) == 1
    said = rf"nothing to compare\ncompared 0 cells; 1 only in {pair[0]}, 1 only in {pair[1]}\n"
    assert re.search(said, capsys.readouterr().err)


@pytest.mark.parametrize("within", [True, False])
def test_different_figures_are_listed(folders, within):
    names = "deep_linear/exact", "deep_linear/rotation"
    results = folders(VALUES, VALUES)
    for folder, shade in zip(results, (0, 200), strict=True):
        for name, colour in zip(names, (100, shade), strict=True):
            path = (folder if within else folder.parent) / "figures" / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (70, 40), (colour, 0, 0)).save(path)
    differences = compare.pictures(*results)
    assert list(differences) == list(names)
    assert differences[names[0]] is None
    assert f"- {names[1]}: {differences[names[1]]}" in list(compare.report(*results))
    galleries = [(folder if within else folder.parent) / "figures" for folder in results]
    assert next(compare.report(*galleries)) == "2 figures in both; different: 1"
    assert len(list(compare.report(*galleries))) == 2
    path.write_bytes(b"none")
    with pytest.raises(UserError, match=r"rotation.png is no picture"):
        compare.pictures(*results)


def test_command_prints_a_table(folders, capsys):
    pair = [str(folder) for folder in folders(VALUES, VALUES)]
    assert main(["compare", *pair]) == 0
    assert "| m | 0.0e+00 | deep_linear/e/main | 1e-06 |" in capsys.readouterr().out
    (Path(pair[0]) / "claims.json").write_text("[")
    assert main(["compare", *pair]) == 1
    assert "is damaged, or no table" in capsys.readouterr().err


def test_results_without_claims_are_compared_by_metrics(folders, capsys):
    pair = folders(VALUES, VALUES)
    judged_in_one = f"claims are not compared: they are judged in {pair[1]} only\n"
    for folder, expected in zip(pair, (judged_in_one, ""), strict=True):
        for name in ("claims.json", "findings.json"):
            (folder / name).unlink()
        assert main(["compare", *map(str, pair)]) == 0
        printed = capsys.readouterr().out
        assert "| m | 0.0e+00 | deep_linear/e/main | 1e-06 |" in printed
        assert "".join(re.findall("(?m)^.*claims.*\n", printed)) == expected
