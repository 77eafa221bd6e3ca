"""A figure is refused before anything runs if its cells will lack variables that it reads."""

from dataclasses import replace

import pytest

from builders import build_cell
from neuralrace.errors import UserError
from neuralrace.extensions.registry import FIGURES, Figure
from neuralrace.figures.inputs import cells_of_figure

CELL = build_cell(
    init={"name": "aligned"},
    record={"every": 10, "observables": ["weights"]},
    solutions=["aligned_modes"],
)
FILES = {"a.yaml": {"experiments": {"paper": {"one": {}}}}, "b.yaml": {"experiments": {}}}


def shown_cells(monkeypatch, reads):
    entry = replace(
        FIGURES["deep_linear/exact"], declaration=Figure(layout="a", height=1, reads=reads)
    )
    monkeypatch.setitem(FIGURES._entries, "paper/figure", entry)
    return cells_of_figure("paper/figure", {"paper/one/main": CELL, "paper/two/main": CELL}, FILES)


@pytest.mark.parametrize(
    "reads",
    [
        {"one": {"trajectory": "loss diverged_at weight_1 bias_2", "metrics": "diverged_at"}},
        {"one": {"theory": "loss mode_strength"}, "*_more": {"metrics": "balance"}},
        {"one": {"theory": ""}},
    ],
)
def test_cells_with_all_variables_are_shown(monkeypatch, reads):
    assert shown_cells(monkeypatch, reads) == ["paper/one/main"]


@pytest.mark.parametrize(
    ("reads", "file", "key", "problem", "remedy"),
    [
        (
            {"one": {"trajectory": "mode_strength"}},
            "a.yaml",
            "experiments.paper.one.record.observables",
            "'mode_strength' in the trajectory of paper/one/main",
            "add mode_strength to its record.observables",
        ),
        (
            {"one": {"theory": "los"}},
            "a.yaml",
            "experiments.paper.one.solutions",
            "'los' in the theory",
            "did you mean loss?",
        ),
        (
            {"one": {"metrics": "half_time"}},
            "a.yaml",
            "experiments.paper.one.metrics",
            "'half_time' in the metrics",
            "add ",
        ),
        (
            {"one": {"trajectory": ""}, "too": {"metrics": ""}},
            "figure paper/figure (neuralrace.figures.deep_linear.exact)",
            "experiments.paper.too",
            "is not configured",
            "did you mean paper/two or paper/one? add it,",
        ),
    ],
)
def test_missing_variables_and_experiments_are_refused(
    monkeypatch, reads, file: str, key: str, problem: str, remedy: str
):
    with pytest.raises(UserError, match=problem) as error:
        shown_cells(monkeypatch, reads)
    assert (error.value.file, error.value.key) == (file, key)
    assert remedy in error.value.remedy
