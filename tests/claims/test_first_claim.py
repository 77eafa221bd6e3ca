"""The first claim of docs/claims.md holds for the experiment that `neuralrace new` writes."""

import re

import numpy as np
import pytest
import yaml

from builders import REPOSITORY
from neuralrace.claims import quotes
from neuralrace.claims.inputs import needed_cells
from neuralrace.claims.judge import judge_papers
from neuralrace.claims.spec import read_claims
from neuralrace.cli.main import main
from neuralrace.config.load import read_plan

MANUAL = (REPOSITORY / "docs" / "claims.md").read_text(encoding="utf-8")
CELL = "mine/first/main"


@pytest.fixture
def claims(work, monkeypatch):
    """The files that the page shows, in a folder."""
    monkeypatch.chdir(work.root)
    assert main(["new", "mine"]) == 0
    section = MANUAL.partition("## A first claim\n")[2].partition("\n## ")[0]
    (text, file) = re.findall(r"^\$ echo '(.*)' > config/(.*)$", section, re.MULTILINE)[0]
    (work.root / file).write_text(f"{text}\n")
    path = work.root / "mine/claims.yaml"
    path.write_text(re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)[0])
    return path


def test_its_text_has_the_checksum_and_holds_the_quote(claims, capsys):
    assert quotes.main([str(claims.parent), str(claims)]) == 0
    assert capsys.readouterr().out.endswith("1 quote is exact\n")


def test_its_metric_is_that_of_the_experiment(claims):
    content = yaml.safe_load((claims.parent / "experiments.yaml").read_text())
    cells = read_plan(content, {"mine": content}).cells
    assert needed_cells(read_claims([claims]), cells) == [CELL]


@pytest.mark.parametrize(("second", "verdict"), [(2.0, "holds"), (0.5, "contradicted")])
def test_it_is_judged_by_the_order_of_the_modes(claims, work, second, verdict):
    times = np.array([1.0, second]) + np.linspace(0, 0.1, 3)[:, None]
    axes = {"init_scale": [0.1], "seed": [0, 1, 2], "mode": [1, 2]}
    labels = {name: (name, values) for name, values in axes.items()}
    work.metrics(CELL, half_time=(tuple(axes), times[None]), **labels)
    ((row,), _) = judge_papers([claims], work.results, [CELL])
    assert row.verdict == verdict
    (rival,) = row.alternatives
    assert rival.fails
