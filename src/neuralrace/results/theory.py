"""Theory as datasets."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from jaxtyping import Int

from neuralrace.results.axes import axes, provenance_attributes, record_steps
from neuralrace.results.schema import build, theory_variables
from neuralrace.extensions.registry import SOLUTIONS
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.config.cell import SolvedEnsemble


def theory_dataset(
    cell_id: str, ensemble: SolvedEnsemble, answers: Mapping[str, Arrays] | None = None
) -> xr.Dataset:
    """Every configured solution of an ensemble, as it is written to `theory.nc`.

    It shares the axes of the trajectory and follows from the same specification, without training.

    Args:
        cell_id: `paper/experiment/label`.
        ensemble: what is solved.
        answers: what each solution gives; solved here when absent.

    Raises:
        UserError: a theory that is not for these data or initial weights.
    """
    step, _ = record_steps(ensemble)
    samples, arrays = solve(ensemble, step, answers)
    attrs = provenance_attributes(cell_id, ensemble, "solve", ("scipy", "xarray", "netcdf4"))
    attrs |= {"title": f"Theory of {cell_id}", "precision": "float64"}
    coords = axes(ensemble, samples)
    for name in ("snapshot", "snapshot_flow_time"):
        del coords[name]
    coords["solution"] = ("solution", np.array(ensemble.solutions), "1")
    if any("candidate" in theory_variables()[name].dims for name in arrays):
        coords["candidate"] = ("candidate", np.array(list(ensemble.candidates)), "1")
    return build("theory", arrays, coords, attrs)


def solve(
    ensemble: SolvedEnsemble,
    step: Int[np.ndarray, " time"],
    answers: Mapping[str, Arrays] | None = None,
) -> tuple[int, Arrays]:
    """Every configured solution of an ensemble, at the given gradient steps.

    Args:
        ensemble: what is solved.
        step: gradient steps.
        answers: what each solution gives; solved here when absent.

    Returns:
        Number of samples that the loss is over, and arrays by name, axes (init_scale, seed, *dims
        of the variable). An axis `solution` is in the order of `ensemble.solutions`, with NaN for
        those that do not give the variable.

    Raises:
        UserError: a theory that is not for these data or initial weights.
        KeyError: a variable that no solution declares.
    """
    problem = Problem(ensemble, step)
    if answers is None:
        answers = {name: SOLUTIONS[name].load()(problem) for name in ensemble.solutions}
    each = [answers[name] for name in ensemble.solutions]
    arrays: Arrays = {}
    for name in dict.fromkeys(name for answer in each for name in answer):
        given = [answer[name] for answer in each if name in answer]
        arrays[name] = given[-1]
        if theory_variables()[name].dims[:1] == ("solution",):
            absent = np.full_like(given[0], np.nan)
            arrays[name] = np.stack([answer.get(name, absent) for answer in each], axis=2)
    return len(problem.data.x), arrays
