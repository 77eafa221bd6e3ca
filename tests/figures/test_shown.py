"""A figure is refused before anything runs where its cells will not have what it reads."""

import json
from dataclasses import replace

import pytest

from neuralrace.config.cell import Cell
from neuralrace.errors import UserError
from neuralrace.extensions.registry import FIGURES, Figure
from neuralrace.figures.inputs import cells_of_figure

CELL = Cell.model_validate_json(json.dumps({
    "dataset": {"name": "modes", "singular_values": [2.0, 1.0], "inputs": 3, "outputs": 2},
    "network": {"name": "layered", "hidden": [2]},
    "init": {"name": "aligned"},
    "init_scales": [0.1],
    "seeds": 2,
    "training": {"learning_rate": 0.02, "steps": 400},
    "record": {"every": 10, "observables": ["weights"]},
    "solutions": ["aligned_modes"],
}))  # fmt: skip
FILES = {"a.yaml": {"experiments": {"paper": {"one": {}}}}, "b.yaml": {"experiments": {}}}


def shows(monkeypatch, reads):
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
def test_what_cells_will_have_is_shown(monkeypatch, reads):
    assert shows(monkeypatch, reads) == ["paper/one/main"]


@pytest.mark.parametrize(
    ("reads", "says"),
    [
        (
            {"one": {"trajectory": "mode_strength"}},
            "a.yaml: experiments.paper.one.record.observables: the figure paper/figure reads "
            "'mode_strength' in the trajectory of paper/one/main; add mode_strength to its "
            "record.observables",
        ),
        (
            {"one": {"theory": "los"}},
            "a.yaml: experiments.paper.one.solutions: the figure paper/figure reads 'los' in the "
            "theory of paper/one/main; nothing in solutions gives it; did you mean loss? there is ",
        ),
        (
            {"one": {"metrics": "half_time"}},
            "a.yaml: experiments.paper.one.metrics: the figure paper/figure reads 'half_time' in "
            "the metrics of paper/one/main; add ",
        ),
        (
            {"one": {"trajectory": ""}, "too": {"metrics": ""}},
            "figure paper/figure (neuralrace.figures.deep_linear.exact): experiments.paper.too: is "
            "not configured, and the figure shows it; did you mean paper/two or paper/one? add it,",
        ),
    ],
)
def test_what_cells_will_not_have_is_refused(monkeypatch, reads, says):
    with pytest.raises(UserError) as caught:
        shows(monkeypatch, reads)
    assert str(caught.value).startswith(says)
