"""Computed values of observables, solutions and metrics, compared with their declarations."""

import numpy as np
import pytest

from neuralrace.config.cell import SolvedEnsemble
from neuralrace.extensions.registry import METRICS, OBSERVABLES, SOLUTIONS
from neuralrace.metrics.dataset import metrics_dataset
from neuralrace.results.cells import CellResults
from neuralrace.results.theory import theory_dataset
from neuralrace.testing.cells import SMALL, cell_of, in_library, recording, solvable, trials
from neuralrace.testing.declarations import valid_entries
from neuralrace.testing.training import check_training
from neuralrace.theory.solutions.problem import Problem

NAME = "paper/experiment/main"
TRIALS = trials()
STEPS = np.arange(0, 21, 10)
SIZES = {"solution": 1, "time": len(STEPS), "candidate": 1}


def test_every_observable_is_recorded_in_a_small_run():
    recorded = {name for trial in TRIALS.values() for name in trial.observables}
    missing = sorted(set(valid_entries(OBSERVABLES)) - recorded)
    assert not missing, (
        f"no small run of neuralrace.testing.cells meets the requirements of {missing}"
    )


@pytest.mark.parametrize("name", list(valid_entries(SOLUTIONS)))
def test_solution_returns_its_declared_variables(name):
    entry, returned = SOLUTIONS[name], set()
    for run in (run for run in SMALL if name in solvable(run)):
        cell = cell_of(SMALL[run], solutions=[name])
        arrays = entry.load()(Problem(cell.only(SolvedEnsemble), STEPS))
        for variable, values in arrays.items():
            where = f"{entry.module}: solution {name!r} returns {variable!r}"
            assert variable in entry.declaration.variables, (
                f"{where}, which its `variables` does not declare"
            )
            dims = entry.declaration.outputs[variable].dims
            inner = dims[1:] if dims[:1] == ("solution",) else dims
            run_axes = (len(cell.init_scales), cell.seeds)
            assert (values.shape[:2], values.ndim) == (run_axes, 2 + len(inner)), (
                f"{where} of shape {values.shape}; use the dimensions (init_scale, seed"
                f"{''.join(f', {dim}' for dim in inner)}), where the first two are {run_axes}"
            )
            for dim, size in zip(inner, values.shape[2:], strict=True):
                assert size == SIZES.get(dim, size), f"{where} with {size} entries along {dim!r}"
            assert np.isfinite(values).all(), f"{where} with values that are not finite"
        returned |= set(arrays)
    if not returned and not in_library(entry.module):
        pytest.skip("no small run meets its requirements")
    if in_library(entry.module):
        assert returned == set(entry.declaration.variables)


def trial_id(run):
    return "-".join([run, *TRIALS[run].observables, *TRIALS[run].metrics])


@pytest.mark.parametrize("run", list(TRIALS), ids=trial_id)
def test_recorded_and_measured_variables_are_declared(run, tmp_path):
    trial = TRIALS[run]
    spec = recording(SMALL[run], trial.observables)
    trajectory = check_training(cell_of(spec), tmp_path)
    cell = cell_of(spec, solutions=trial.solutions)
    theory = theory_dataset(NAME, cell.only(SolvedEnsemble)) if trial.solutions else None
    for name in trial.metrics:
        if METRICS[name].declaration.absent(trial.observables, trial.solutions) is None:
            one = cell.model_copy(update={"metrics": (name,)})
            metrics_dataset(CellResults(NAME, tmp_path, one, trajectory, theory))
