"""The list of theories: what each assumes, and which apply to a network."""

import json

import neuralrace as nr
from builders import REPOSITORY
from neuralrace.board.theories import theories
from neuralrace.cli.main import main
from neuralrace.extensions.registry import SOLUTIONS


def test_all_theories_but_baselines_are_listed_with_a_source():
    listed = {theory.solution: theory for theory in theories()}
    baselines = {name for name, entry in SOLUTIONS.items() if entry.declaration.baseline}
    assert listed.keys() == SOLUTIONS.keys() - baselines
    assert all(theory.says and theory.source for theory in listed.values())


def test_start_names_what_is_needed_and_what_a_theory_is_derived_for():
    start = {theory.solution: (theory.start, theory.derived_for) for theory in theories()}
    assert start["layered_modes"] == ("aligned start", "")
    assert start["exact"] == ("", "balanced weights")
    assert start["head_start"] == ("normal start", "small weights")
    assert start["flow"] == ("", "")


def test_theories_that_apply_come_first_and_others_have_a_reason():
    table = nr.theories([[1, 0], [0, 2]], [[1], [2]], hidden=[16])
    applies = table["unmet"] == ""
    assert applies["flow"]
    assert not applies["exact"]
    assert applies.is_monotonic_decreasing
    assert "not white" in table["unmet"]["exact"]


def test_command_tells_what_applies_to_an_experiment(monkeypatch, capsys):
    monkeypatch.chdir(REPOSITORY)
    assert main(["theories", "deep_linear/exact", "--json"]) == 0
    for cell, answer in json.loads(capsys.readouterr().out).items():
        assert cell.startswith("deep_linear/exact/")
        assert answer["theories_that_apply"]["exact"]["derived_for"] == "balanced weights"
        assert "relu" in answer["theories_that_do_not"]["mean_field"]
