"""Observables, solutions and metrics give what they declare, wherever a small run allows."""

import numpy as np
import pytest

from neuralrace.config.cell import SolvedEnsemble
from neuralrace.extensions.registry import METRICS, OBSERVABLES, SOLUTIONS
from neuralrace.metrics.dataset import metrics_dataset
from neuralrace.results.cells import CellResults
from neuralrace.results.theory import theory_dataset
from neuralrace.testing.cells import SMALL, cell_of, of_library, recording, solved, trials
from neuralrace.testing.declarations import sound
from neuralrace.testing.training import check_training
from neuralrace.theory.solutions.problem import Problem

NAME = "paper/experiment/main"
TRIALS = trials()
STEPS = np.arange(0, 21, 10)
SIZES = {"solution": 1, "time": len(STEPS), "candidate": 1}


def test_everything_recorded_is_tried():
    assert {name for trial in TRIALS.values() for name in trial.observables} >= set(
        sound(OBSERVABLES)
    )


@pytest.mark.parametrize("name", list(sound(SOLUTIONS)))
def test_solutions_give_what_they_declare(name):
    entry, given = SOLUTIONS[name], set()
    for small in (small for small in SMALL if name in solved(small)):
        ensemble = cell_of(SMALL[small], solutions=[name])
        arrays = entry.load()(Problem(ensemble.only(SolvedEnsemble), STEPS))
        for variable, values in arrays.items():
            where = f"{entry.module}: solution {name!r} gives {variable!r}"
            assert variable in entry.declaration.variables, f"{where}, which is not declared"
            dims = entry.declaration.outputs[variable].dims
            inner = dims[1:] if dims[:1] == ("solution",) else dims
            assert values.ndim == 2 + len(inner), f"{where} without the dimensions {inner}"
            known = dict(zip(inner, values.shape[2:], strict=True))
            assert values.shape[:2] == (len(ensemble.init_scales), ensemble.seeds), where
            wanted = {dim: SIZES[dim] for dim in inner if dim in SIZES}
            assert known.items() >= wanted.items(), where
            assert np.isfinite(values).all(), f"{where}, which is not finite"
        given |= set(arrays)
    if not given and not of_library(entry.module):
        pytest.skip("no small run meets its needs")
    if of_library(entry.module):
        assert given == set(entry.declaration.variables)


def label(small):
    trial = TRIALS[small]
    return "-".join([small, *trial.observables, *trial.metrics])


@pytest.mark.parametrize("small", list(TRIALS), ids=label)
def test_what_is_recorded_and_measured_is_declared(small, tmp_path):
    trial = TRIALS[small]
    spec = recording(SMALL[small], trial.observables)
    trajectory = check_training(cell_of(spec), tmp_path)
    cell = cell_of(spec, solutions=trial.solutions)
    theory = theory_dataset(NAME, cell.only(SolvedEnsemble)) if trial.solutions else None
    for name in trial.metrics:
        if METRICS[name].declaration.absent(trial.observables, trial.solutions) is None:
            one = cell.model_copy(update={"metrics": (name,)})
            metrics_dataset(CellResults(NAME, tmp_path, one, trajectory, theory))
