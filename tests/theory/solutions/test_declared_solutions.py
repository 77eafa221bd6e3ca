"""What the library's own solutions say beside what `neuralrace.testing` asks of all."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from pydantic import ValidationError

from neuralrace.cli.main import TEMPLATE
from neuralrace.cli.show import about_cell
from neuralrace.config.cell import INITIALISERS, SolvedEnsemble
from neuralrace.config.load import read_plan
from neuralrace.config.requirements import unmet
from neuralrace.errors import UserError
from neuralrace.extensions.registry import SOLUTIONS
from neuralrace.results.provenance import ROOT, code_files
from neuralrace.results.theory import solve, theory_dataset
from neuralrace.testing.cells import SMALL, cell_of, example_of, name_of
from neuralrace.theory.solutions.problem import Problem


def make(*solutions):
    return cell_of(SMALL["modes"], solutions=solutions).only(SolvedEnsemble)


def test_every_solution_names_its_source():
    assert [name for name, entry in SOLUTIONS.items() if "Source:" not in entry.text] == []


def test_data_are_loaded_and_weights_drawn_once(monkeypatch):
    ensemble, drawn = make("exact", "flow", "aligned_modes"), []
    law = type(ensemble.init)
    draw = law.draw
    monkeypatch.setattr(law, "draw", lambda self, *rest: drawn.append(1) or draw(self, *rest))
    solve(ensemble, np.arange(0, 21, 10))
    assert len(drawn) == ensemble.seeds


@pytest.mark.parametrize(
    ("need", "trait"), [("gradient_flow", "follows_flow"), ("gradient_descent", "is_plain")]
)
@pytest.mark.parametrize("met", [True, False])
def test_optimisers_say_what_theory_is_theirs(need, trait, met):
    optimiser = SimpleNamespace(name="other", **{trait: met})
    ensemble = SimpleNamespace(training=SimpleNamespace(optimiser=optimiser))
    assert (unmet(ensemble, need) is None) == met
    assert met or "training.optimiser.name: 'other': use" in str(unmet(ensemble, need))


def test_every_solution_says_which_steps_it_is_for():
    for name, entry in SOLUTIONS.items():
        steps = {"gradient_flow", "gradient_descent"} & set(entry.declaration.requires.split())
        assert steps == {"gradient_descent" if name.endswith("_descent") else "gradient_flow"}


def test_a_file_rests_on_the_solutions_that_it_holds():
    ensemble = make("flow")
    with_flow = {
        path.relative_to(ROOT).as_posix()
        for path in code_files("solve", [SOLUTIONS["flow"].module])
    }
    without = {path.relative_to(ROOT).as_posix() for path in code_files("solve")}
    assert with_flow - without >= {"solutions/linear.py", "theory/gradient_flow.py"}
    assert "solutions/xor.py" not in with_flow
    other = make("aligned_modes")
    one, two = (theory_dataset("paper/experiment/main", each) for each in (ensemble, other))
    assert one.attrs["code_sha256"] == two.attrs["code_sha256"]  # both stand in one module


# Requirements -----------------------------------------------------------------------------------

SMALLER = {
    "contextual": {"objects": 2, "contexts": 2},
    "nonlinear_gaussian": {"samples": 12},
}
"""Of datasets whose flows take seconds otherwise, where each sample has a pathway."""
SETUPS = [spec for name, spec in SMALL.items() if name != "images"]
DATASETS = [spec["dataset"] | SMALLER.get(spec["dataset"]["name"], {}) for spec in SETUPS]
NETWORKS = [{key: spec[key] for key in ("network", "candidates") if key in spec} for spec in SETUPS]


def unlike(parts):
    return [part for number, part in enumerate(parts) if part not in parts[:number]]


@pytest.mark.parametrize("law", INITIALISERS, ids=name_of)
def test_every_theory_that_is_listed_is_solved_and_no_other_is_planned(law):
    """For each dataset and network that can be planned with this law of initial weights."""
    listed = 0
    for dataset, network in product(unlike(DATASETS), unlike(NETWORKS)):
        spec = {"dataset": dataset, "init": example_of(law), **network}
        try:
            cell = cell_of(spec)
        except ValidationError:
            continue
        if cell.unfit():
            continue
        theory = about_cell(cell, gpu=False)
        problem = Problem(cell, np.arange(0, 21, 10))
        for name in theory["theory_that_holds"]:
            arrays = SOLUTIONS[name].load()(problem)
            assert all(np.isfinite(each).all() for each in arrays.values()), (spec, name)
            assert cell_of(spec, solutions=[name]).unfit() is None
            listed += 1
        for name, reason in theory["theory_that_does_not"].items():
            try:
                message = str(cell_of(spec, solutions=[name]).unfit())
            except ValidationError as error:
                message = str(error)
            assert message is not None, (spec, name)
            assert reason in message
    assert listed


def test_planning_says_what_a_theory_requires_of_data():
    """That of `neuralrace new`: its inputs are not whitened."""
    config = yaml.safe_load(TEMPLATE.replace("NAME", "mine"))
    config["experiments"]["mine"]["first"]["solutions"] = ["exact"]
    message = "^mine.yaml: experiments.mine.first.solutions: 'exact': .* are not whitened"
    with pytest.raises(UserError, match=message):
        read_plan(config, {"mine.yaml": config})
