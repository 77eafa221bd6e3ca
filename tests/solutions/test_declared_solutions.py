"""What the library's own solutions say beside what `neuralrace.conformance` asks of all."""

from types import SimpleNamespace

import numpy as np
import pytest

from neuralrace.conformance.cells import SMALL, cell_of
from neuralrace.needs import unmet
from neuralrace.provenance import ROOT, code_files
from neuralrace.records.theory import solve, theory_dataset
from neuralrace.registry import SOLUTIONS
from neuralrace.spec import SolvedEnsemble


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
    assert met or "training.optimiser.name: 'other': use" in unmet(ensemble, need)


def test_every_solution_says_which_steps_it_is_for():
    for name, entry in SOLUTIONS.items():
        steps = {"gradient_flow", "gradient_descent"} & set(entry.declaration.needs.split())
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
