"""The benchmark from Python: your theory, your network or your data on a board."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from neuralrace.api.arguments import checked_arguments
from neuralrace.api.simulation import progress_printer
from neuralrace.board.build import board
from neuralrace.board.held_out import PAPER, configured
from neuralrace.config.cell import APPLICABLE, Cell, Ensemble, SolvedEnsemble
from neuralrace.config.load import read_file, read_plan
from neuralrace.errors import UserError, did_you_mean
from neuralrace.extensions.registry import SOLUTIONS
from neuralrace.metrics.benchmark import OTHER_SEEDS
from neuralrace.metrics.dataset import metrics_dataset
from neuralrace.results.axes import record_steps
from neuralrace.results.cells import CellResults
from neuralrace.results.schema import theory_variables
from neuralrace.results.theory import theory_dataset
from neuralrace.results.trajectory import trajectory_dataset
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.training.environment import warn_of_environment
from neuralrace.training.trainer import train

Entry = str | Callable[[Problem], Arrays]
OWN = "own"
"""Name of a task that is given as an experiment or a cell."""


@checked_arguments()
def benchmark(
    task: str | Mapping[str, Any] | Cell,
    entries: Sequence[Entry] = (APPLICABLE,),
    *,
    progress: bool = True,
) -> xr.DataTree:
    """Scores theories on a task of the benchmark, or on your own network and data.

    Nothing is written. `neuralrace benchmark` scores installed theories on all tasks.

    Args:
        task: name of a task, such as "linear_width"; an experiment as in a configuration, which may
            have a `sweep`; or the result of `specify`.
        entries: names of solutions, "applicable" for all that apply, and functions of your own from
            a `Problem` (data, initial weights, recorded times) to a mapping of variables, such as
            `loss`, an array (init_scale, seed, time).
        progress: whether to print progress to stderr.

    Returns:
        The board; see `neuralrace.board.build.board`.

    Raises:
        UserError: no such task or solution, a mistake in the task, a solution that does not apply
            to any of its cells, or a function that raises an exception or whose arrays have another
            shape.

    Example:
        >>> import neuralrace as nr
        >>> import numpy as np
        >>> def never_learns(problem):
        ...     scales, seeds = problem.weights[0].shape[:2]
        ...     loss = np.full((scales, seeds, len(problem.step)), problem.data.y_power / 2)
        ...     return {"loss": problem.as_trained(loss)}
        >>> cell = nr.specify("hierarchy", hidden=[4])
        >>> board = nr.benchmark(cell, entries=["flow", never_learns], progress=False)
        >>> error = board["own"]["loss_error"].mean(("value", "init_scale", "seed"))
        >>> bool(error.sel(entry="flow") < 0.1), bool(error.sel(entry="never_learns") > 0.9)
        (True, True)
    """
    warn_of_environment()
    report = progress_printer(progress)
    if isinstance(entries, str):
        remedy = "give a list of names of solutions and of functions"
        raise UserError("expected a list", key="entries", value=entries, remedy=remedy)
    named = [each for each in entries if isinstance(each, str)]
    own: dict[str, Callable[[Problem], Arrays]] = {}
    for each in entries:
        if isinstance(each, str):
            continue
        name = getattr(each, "__name__", None)
        if not callable(each) or name is None:
            problem = "is neither a name nor a function with a name"
            remedy = "name a solution, or define a function by def"
            raise UserError(problem, key="entries", value=each, remedy=remedy)
        if name in own or name in (*SOLUTIONS, OTHER_SEEDS):
            problem = f"is the name of {'two functions' if name in own else 'another entry'}"
            raise UserError(problem, key="entries", value=name, remedy="rename the function")
        own[name] = each
    for name in named:
        if name != APPLICABLE:
            SOLUTIONS.known(name, "entries")
    finished = []
    for number, (name, cell) in enumerate(cells := _cells(task, named), 1):
        report(f"{name.removeprefix(f'{PAPER}/')}: cell {number} of {len(cells)}")
        finished.append(_finished(name, cell, own))
    report(f"scored {len(cells)} cells", True)
    return board(finished)


def _cells(task: Any, named: Sequence[str]) -> list[tuple[str, Cell]]:
    """The cells of a task with the solutions to solve, by identifier."""
    if isinstance(task, Cell):
        cells = {f"{PAPER}/{OWN}/main": task}
    else:
        if isinstance(task, str):
            known = read_file(configured("tasks.yaml"))["experiments"][PAPER]
            if task not in known:
                remedy = f"{did_you_mean(task, known)}there is {', '.join(known)}"
                raise UserError("no such task", key="task", value=task, remedy=remedy)
            name, experiment = task, known[task]
        elif isinstance(task, Mapping) and not isinstance(task, xr.DataTree):
            name, experiment = OWN, task
        else:
            remedy = "give the name of a task, an experiment, or the result of specify"
            raise UserError(f"is {type(task).__name__}", key="task", remedy=remedy)
        bare = {k: v for k, v in experiment.items() if k not in ("solutions", "metrics")}
        content = {"experiments": {PAPER: {name: bare}}}
        cells = dict(read_plan(content, {"task": content}).cells)
    solved = []
    for identifier, cell in cells.items():
        applicable = cell.applicable_solutions()
        chosen = applicable if APPLICABLE in named else [n for n in named if n in applicable]
        solved.append((identifier, cell.model_copy(update={"solutions": tuple(chosen)})))
    for name in named:
        if name != APPLICABLE and not any(name in cell.solutions for _, cell in solved):
            remedy = "`neuralrace show` says why for a cell in a file"
            problem = "does not apply to any cell of the task"
            raise UserError(problem, key="entries", value=name, remedy=remedy)
    return solved


def _finished(name: str, cell: Cell, own: Mapping[str, Callable[[Problem], Arrays]]) -> CellResults:
    """A cell that is trained, solved and scored in memory."""
    part = cell.only(Ensemble)
    trajectory = trajectory_dataset(name, part, train(part), in_memory=True)
    problem = Problem(cell, record_steps(cell)[0])
    answers = {each: SOLUTIONS[each].load()(problem) for each in cell.solutions}
    shapes = {str(each): array.shape for each, array in trajectory.data_vars.items()}
    if not {"weight_1", "pathway_maps"}.isdisjoint(shapes):
        fields = CellResults(name, Path(), cell, trajectory).receptive_fields
        shapes["receptive_fields"] = fields.isel(snapshot=-1).shape
    shapes |= {v: array.shape for answer in answers.values() for v, array in answer.items()}
    answers |= {each: _checked(each, theory, problem, shapes) for each, theory in own.items()}
    # functions are no registered solutions, which validation would ask for
    cell = cell.model_copy(update={"solutions": tuple(answers), "metrics": ("theory_scores",)})
    solved = xr.Dataset()
    if answers:
        part = cell.only(SolvedEnsemble)
        solved = theory_dataset(name, part, answers, in_memory=True, problem=problem)
    results = CellResults(name, Path(), cell, trajectory, solved)
    results.metrics = metrics_dataset(results, in_memory=True)
    return results


def _checked(
    name: str,
    theory: Callable[[Problem], Any],
    problem: Problem,
    shapes: Mapping[str, tuple[int, ...]],
) -> Arrays:
    """The variables that a function of the user returns, as arrays.

    Args:
        name: of the function.
        theory: the function.
        problem: what it is called with.
        shapes: of simulated variables, and of those of solutions.

    Raises:
        UserError: it returns something else, or raises an exception.
    """
    try:
        answer = theory(problem)
    except Exception as error:
        message = f"{name} raises {type(error).__name__}: {error}"
        remedy = "correct the function; the traceback above shows where"
        raise UserError(message, key="entries", remedy=remedy) from error
    if not isinstance(answer, Mapping):
        raise UserError(f"{name} returns no mapping of variables", key="entries")
    ensemble = problem.ensemble
    runs = (len(ensemble.init_scales), ensemble.seeds)
    # others come from one solution, and have no axis of entries
    known = {name: v for name, v in theory_variables().items() if v.dims[:1] == ("solution",)}
    arrays = {}
    for variable, values in answer.items():
        declared = known.get(variable)
        if declared is None:
            remedy = f"{did_you_mean(str(variable), known)}there is {', '.join(known)}"
            raise UserError(f"{name} returns {variable!r}", key="entries", remedy=remedy)
        own_dims = [dim for dim in declared.dims if dim != "solution"]
        expected = (*runs, *(len(problem.step) for dim in own_dims if dim == "time"))
        expected = shapes.get(variable, expected)
        remedy = f"give ({', '.join(('init_scale', 'seed', *own_dims))}), "
        remedy += "here" if variable in shapes else "which begins with"
        remedy += f" {expected}"
        try:
            array = np.asarray(values)
        except ValueError:  # lists of different lengths
            array = np.asarray(None)
        if array.dtype.kind not in "biuf":
            message = f"{name} returns {variable!r}, which is no array of numbers"
            raise UserError(message, key="entries", remedy=remedy)
        if array.ndim != 2 + len(own_dims) or array.shape[: len(expected)] != expected:
            message = f"{name} returns {variable!r} of shape {array.shape}"
            raise UserError(message, key="entries", remedy=remedy)
        if not np.isfinite(array).all():
            message = f"{name} returns {variable!r} with values that are not finite"
            remedy = "mend it, or leave the variable out"
            raise UserError(message, key="entries", remedy=remedy)
        arrays[variable] = array.astype(float)
    return arrays
