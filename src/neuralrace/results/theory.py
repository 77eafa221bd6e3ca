"""Datasets of theory files."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from jaxtyping import Int

from neuralrace.config.cell import SolvedEnsemble
from neuralrace.extensions.registry import SOLUTIONS
from neuralrace.results.axes import axes, provenance_attributes, record_steps
from neuralrace.results.schema import build, theory_variables
from neuralrace.theory.solutions.problem import Arrays, Problem


def theory_dataset(
    cell_id: str,
    ensemble: SolvedEnsemble,
    answers: Mapping[str, Arrays] | None = None,
    in_memory: bool = False,
    problem: Problem | None = None,
) -> xr.Dataset:
    """The dataset of `theory.nc`: every configured solution of an ensemble, without training.

    It has the axes of the trajectory.

    Args:
        cell_id: `paper/experiment/label`.
        ensemble: specification of the runs and of the solutions.
        answers: variables of each solution; solved here when absent.
        in_memory: see `provenance_attributes`.
        problem: what the answers solve, so that its data are not loaded again.

    Raises:
        UserError: a solution does not apply to these data or initial weights.
    """
    step, _ = record_steps(ensemble)
    samples, arrays = solve_ensemble(ensemble, step, answers, problem)
    packages = ("scipy", "xarray", "netcdf4")
    attrs = provenance_attributes(cell_id, ensemble, "solve", packages, in_memory)
    attrs |= {"title": f"Theory of {cell_id}", "precision": "float64"}
    coords = axes(ensemble, samples)
    for name in ("snapshot", "snapshot_flow_time"):
        del coords[name]
    coords["solution"] = ("solution", np.array(ensemble.solutions), "1")
    if any("candidate" in theory_variables()[name].dims for name in arrays):
        coords["candidate"] = ("candidate", np.array(list(ensemble.candidates)), "1")
    return build("theory", arrays, coords, attrs)


def solve_ensemble(
    ensemble: SolvedEnsemble,
    step: Int[np.ndarray, " time"],
    answers: Mapping[str, Arrays] | None = None,
    problem: Problem | None = None,
) -> tuple[int, Arrays]:
    """Every configured solution of an ensemble, at certain gradient steps.

    Args:
        ensemble: specification of the runs and of the solutions.
        step: gradient steps.
        answers: variables of each solution; solved here when absent.
        problem: what the answers solve, so that its data are not loaded again.

    Returns:
        Number of samples that the loss averages over, and arrays by name, axes (init_scale, seed,
        *dims of the variable). An axis `solution` has the order of `ensemble.solutions`, with NaN
        where a solution does not compute the variable.

    Raises:
        UserError: a solution does not apply to these data or initial weights.
        KeyError: no solution declares a variable.
    """
    problem = problem or Problem(ensemble, step)
    if answers is None:
        answers = {name: SOLUTIONS[name].load()(problem) for name in ensemble.solutions}
    solved = [answers[name] for name in ensemble.solutions]
    arrays: Arrays = {}
    for name in dict.fromkeys(name for answer in solved for name in answer):
        values = [answer[name] for answer in solved if name in answer]
        arrays[name] = values[-1]
        if theory_variables()[name].dims[:1] == ("solution",):
            absent = np.full_like(values[0], np.nan)
            arrays[name] = np.stack([answer.get(name, absent) for answer in solved], axis=2)
    return len(problem.data.x), arrays
