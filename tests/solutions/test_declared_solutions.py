"""What every solution must declare, and that it gives what it declares.

A new solution is covered once `CELLS` holds a cell that it can solve.
"""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from neuralrace.needs import NEEDS, unmet
from neuralrace.provenance import ROOT, code_files
from neuralrace.records.schema import COORDINATES, theory_variables
from neuralrace.records.theory import solve, theory_dataset
from neuralrace.registry import SOLUTIONS
from neuralrace.spec import SolvedRun

LAYERED = {"name": "layered", "hidden": [4]}
RELU = LAYERED | {"activation": "relu"}
CONTEXTS = {"name": "gated", "hidden": [4], "gates": {"name": "contexts", "open_in": [1]}}
HALF_SPACES = {"name": "half_space", "pathways": 3}
MODES = {"name": "modes", "singular_values": [3.0, 1.0], "inputs": 3, "outputs": 2}
GAUSSIAN = {"name": "nonlinear_gaussian", "inputs": 6, "xi": [1.0, 0.4], "samples": 60}
CELLS = [
    {"dataset": MODES, "network": LAYERED, "init": {"name": "aligned"}},
    {"dataset": MODES, "network": LAYERED | {"hidden": []}},
    {"dataset": {"name": "xor"}, "network": RELU},
    {"dataset": {"name": "xor", "margin": 1.2}, "network": RELU},
    {
        "dataset": {"name": "xor"},
        "network": {"name": "gated", "hidden": [3], "gates": {"name": "per_example"}},
        "init": {"name": "aligned"},
    },
    {
        "dataset": {"name": "routing", "count": 2},
        "network": {
            "name": "routing",
            "hidden": [24, 24],
            "gates": {"name": "always_on"},
            "pairs": {"name": "all"},
        },
        "init": {"name": "aligned"},
    },
    {
        "dataset": {"name": "routing", "count": 2},
        "network": {
            "name": "routing",
            "hidden": [24, 24],
            "gates": {"name": "always_on"},
            "pairs": {"name": "all"},
        },
        "init": {"name": "orthogonal"},
    },
    {"dataset": {"name": "contextual", "contexts": 3, "objects": 4}, "network": CONTEXTS},
    {
        "dataset": {"name": "contextual", "contexts": 3, "objects": 4},
        "network": RELU,
        "candidates": {"one": CONTEXTS},
    },
    {"dataset": GAUSSIAN, "network": RELU | {"readout": "mean"}},
    {
        "dataset": GAUSSIAN,
        "network": {"name": "gated", "hidden": [1], "readout": "mean", "gates": HALF_SPACES},
    },
]
UNSOLVED = {
    ("modes", "normal", "layered_modes"),
    ("routing", "orthogonal", "reduction"),
    ("routing", "orthogonal", "reduction_descent"),
    ("routing", "aligned", "routing_race"),
    ("contextual", "normal", "reduction"),
    ("contextual", "normal", "reduction_descent"),
    ("routing", "orthogonal", "pathway_modes"),
    ("routing", "orthogonal", "pathway_modes_descent"),
    ("routing", "aligned", "pathway_modes"),
    ("routing", "aligned", "pathway_modes_descent"),
}
"""Solutions that refuse the data or the start of a cell, by its dataset and law."""


def make(*solutions, **cell):
    spec = {
        "init": {"name": "normal"},
        "init_scales": [0.1, 0.2],
        "seeds": 2,
        "training": {"learning_rate": 0.01, "steps": 20},
        "record": {"every": 10},
        "solutions": solutions,
    }
    return SolvedRun.model_validate_json(json.dumps(spec | cell))


def cells_of(name):
    """The cells that a solution is for."""
    for cell in CELLS:
        run, needs = make(**cell), SOLUTIONS[name].declaration.needs
        if not unmet(run, needs) and (run.dataset.name, run.init.name, name) not in UNSOLVED:
            yield make(name, **cell)


@pytest.mark.parametrize("name", SOLUTIONS)
def test_what_is_declared_is_known(name):
    entry = SOLUTIONS[name]
    assert "Source:" in entry.text
    assert {need for each in entry.declaration.needs.split() for need in each.split("|")} <= {
        *NEEDS
    }
    for variable, each in entry.declaration.variables.items():
        assert set(each.dims) <= set(COORDINATES)
        assert theory_variables()[variable] == each  # alike by all that give it


@pytest.mark.parametrize("name", SOLUTIONS)
def test_it_gives_what_it_declares(name):
    sizes, given = {"solution": 1, "time": 3, "candidate": 1}, set()
    for run in cells_of(name):
        samples, arrays = solve(run, np.arange(0, 21, 10))
        assert samples > 0
        for variable, values in arrays.items():
            dims = SOLUTIONS[name].declaration.variables[variable].dims
            assert values.ndim == 2 + len(dims)
            known = dict(zip(dims, values.shape[2:], strict=True))
            assert values.shape[:2] == (2, 2)
            assert known.items() >= {dim: sizes[dim] for dim in dims if dim in sizes}.items()
            assert np.isfinite(values).all()
        given |= set(arrays)
    assert given == set(SOLUTIONS[name].declaration.gives)


def test_data_are_loaded_and_weights_drawn_once(monkeypatch):
    run, drawn = make("exact", "flow", "aligned_modes", **CELLS[0]), []
    law = type(run.init)
    draw = law.draw
    monkeypatch.setattr(law, "draw", lambda self, *rest: drawn.append(1) or draw(self, *rest))
    solve(run, np.arange(0, 21, 10))
    assert len(drawn) == run.seeds


@pytest.mark.parametrize(
    ("need", "trait"), [("gradient_flow", "follows_flow"), ("gradient_descent", "is_plain")]
)
@pytest.mark.parametrize("met", [True, False])
def test_optimisers_say_what_theory_is_theirs(need, trait, met):
    optimiser = SimpleNamespace(name="other", **{trait: met})
    run = SimpleNamespace(training=SimpleNamespace(optimiser=optimiser))
    assert (unmet(run, need) is None) == met
    assert met or "training.optimiser.name: 'other': use" in unmet(run, need)


def test_every_solution_says_which_steps_it_is_for():
    for name, entry in SOLUTIONS.items():
        steps = {"gradient_flow", "gradient_descent"} & set(entry.declaration.needs.split())
        assert steps == {"gradient_descent" if name.endswith("_descent") else "gradient_flow"}


def test_a_file_rests_on_the_solutions_that_it_holds():
    run = make("flow", **CELLS[0])
    with_flow = {
        path.relative_to(ROOT).as_posix() for path in code_files("solve", SOLUTIONS["flow"].module)
    }
    without = {path.relative_to(ROOT).as_posix() for path in code_files("solve")}
    assert with_flow - without >= {"solutions/linear.py", "theory/gradient_flow.py"}
    assert "solutions/xor.py" not in with_flow
    other = make("aligned_modes", **CELLS[0])
    one, two = (theory_dataset("paper/experiment/main", each) for each in (run, other))
    assert one.attrs["code_sha256"] == two.attrs["code_sha256"]  # both stand in one module
