"""Declarations of the library's solutions, beyond the conformance tests of all extensions."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from pydantic import ValidationError

from builders import CELL_NAME
from neuralrace.cli.main import TEMPLATE
from neuralrace.cli.show import about_cell
from neuralrace.config.cell import SolvedEnsemble
from neuralrace.config.load import read_plan
from neuralrace.config.requirements import unmet
from neuralrace.errors import UserError
from neuralrace.extensions.registry import SOLUTIONS
from neuralrace.results.provenance import ROOT, code_files
from neuralrace.results.theory import solve_ensemble, theory_dataset
from neuralrace.testing.cells import DRAWN, SMALL, cell_of, example_of
from neuralrace.theory.solutions.problem import Problem


def test_every_solution_names_its_source():
    assert [name for name, entry in SOLUTIONS.items() if "Source:" not in entry.text] == []


def test_data_are_loaded_and_weights_drawn_once(monkeypatch):
    ensemble, draws = cell_of(SMALL["modes"], solutions=["exact", "flow", "aligned_modes"]), []
    initialiser = type(ensemble.init)
    draw = initialiser.draw
    monkeypatch.setattr(
        initialiser, "draw", lambda self, *rest: draws.append(1) or draw(self, *rest)
    )
    solve_ensemble(ensemble, np.arange(0, 21, 10))
    assert len(draws) == ensemble.seeds


@pytest.mark.parametrize(
    ("requirement", "trait"), [("gradient_flow", "follows_flow"), ("gradient_descent", "is_plain")]
)
@pytest.mark.parametrize("met", [True, False])
def test_requirements_on_steps_depend_on_the_optimiser(requirement, trait, met):
    optimiser = SimpleNamespace(name="other", **{trait: met})
    ensemble = SimpleNamespace(training=SimpleNamespace(optimiser=optimiser))
    message = unmet(ensemble, requirement)
    assert (message is None) == met
    assert met or "training.optimiser.name: 'other': use" in str(message)


def test_every_solution_requires_gradient_flow_or_gradient_descent():
    for name, entry in SOLUTIONS.items():
        if name == "ridge":  # a regression, without steps
            continue
        steps = {"gradient_flow", "gradient_descent"} & set(entry.declaration.requires.split())
        assert steps == {"gradient_descent" if name.endswith("_descent") else "gradient_flow"}


def test_code_checksum_covers_the_modules_of_the_solutions():
    def files(*solutions):
        paths = code_files("solve", [SOLUTIONS[name].module for name in solutions])
        return {path.relative_to(ROOT).as_posix() for path in paths}

    with_flow = files("flow")
    assert with_flow - files() >= {
        "theory/solutions/linear.py",
        "theory/solutions/variables.py",
        "theory/gradient_flow.py",
    }
    assert "theory/solutions/xor.py" not in with_flow
    one, other = (
        theory_dataset(CELL_NAME, cell_of(SMALL["modes"], solutions=[name]).only(SolvedEnsemble))
        for name in ("flow", "aligned_modes")  # of one module
    )
    assert one.attrs["code_sha256"] == other.attrs["code_sha256"]


# Requirements -----------------------------------------------------------------------------------

SMALLER = {
    "contextual": {"objects": 2, "contexts": 2},
    "nonlinear_gaussian": {"samples": 12},
}
"""Smaller sizes of datasets: with a pathway for each sample, flows take seconds otherwise."""
SETUPS = [spec for name, spec in SMALL.items() if name != "images"]
DATASETS = [spec["dataset"] | SMALLER.get(spec["dataset"]["name"], {}) for spec in SETUPS]
NETWORKS = [{key: spec[key] for key in ("network", "candidates") if key in spec} for spec in SETUPS]


def distinct(parts):
    return [part for number, part in enumerate(parts) if part not in parts[:number]]


@pytest.fixture(scope="module")
def solved_before() -> set[tuple[str, str]]:
    """Theories that were solved, each with the dataset and the network."""
    return set()


@pytest.mark.parametrize("initialiser", DRAWN)
def test_a_listed_theory_can_be_solved_and_any_other_is_refused(initialiser, solved_before):
    """For each dataset and network that can be trained with this initialiser.

    A solution depends on data and network in the same way for all initialisers. It is solved once
    for each dataset and network, and once for each initialiser.
    """
    solved = set[str]()
    for dataset, network in product(distinct(DATASETS), distinct(NETWORKS)):
        spec = {"dataset": dataset, "init": example_of(DRAWN[initialiser]), **network}
        try:
            cell = cell_of(spec)
        except ValidationError:
            continue
        if cell.unfit():
            continue
        theory = about_cell(cell, gpu=False)
        problem = Problem(cell, np.arange(0, 21, 10))
        for name in theory["theories_that_apply"]:
            assert cell_of(spec, solutions=[name]).unfit() is None
            case = name, repr((dataset, network))
            if case not in solved_before or name not in solved:
                arrays = SOLUTIONS[name].load()(problem)
                assert all(np.isfinite(array).all() for array in arrays.values()), (spec, name)
                solved.add(name)
                solved_before.add(case)
        for name, reason in theory["theories_that_do_not"].items():
            try:
                message = str(cell_of(spec, solutions=[name]).unfit())
            except ValidationError as error:
                message = str(error)
            assert message is not None, (spec, name)
            assert reason in message
    assert solved


def test_requirements_on_data_are_checked_when_a_configuration_is_loaded():
    """The solution `exact` requires white inputs."""
    config = yaml.safe_load(TEMPLATE.replace("NAME", "mine"))
    table = {"name": "table", "x": [[1, 0], [0, 2]], "y": [[1], [2]]}
    config["experiments"]["mine"]["first"] |= {"dataset": table, "solutions": ["exact"]}
    message = "^mine.yaml: experiments.mine.first.*'exact'.* are not white"
    with pytest.raises(UserError, match=message):
        read_plan(config, {"mine.yaml": config})
