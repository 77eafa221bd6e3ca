"""Simulation and theory from Python arguments."""

import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, Literal

import xarray as xr

from neuralrace.api.arguments import checked_arguments, reason_by_argument
from neuralrace.api.choices import CHOSEN
from neuralrace.api.specification import CELL_NAME, python_errors, specify
from neuralrace.config.cell import Cell, Ensemble, SolvedEnsemble
from neuralrace.config.requirements import OF_NETWORK, unmet
from neuralrace.errors import UserError
from neuralrace.extensions.registry import SOLUTIONS
from neuralrace.metrics.dataset import metrics_dataset
from neuralrace.results.axes import record_steps
from neuralrace.results.cells import CellResults
from neuralrace.results.theory import theory_dataset
from neuralrace.results.trajectory import trajectory_dataset
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.training.environment import warn_of_environment
from neuralrace.training.trainer import train

Theory = Literal["auto"] | Sequence[str] | None
NO_THEORY_OF_RELU = (
    "theory: none is solved for ReLU networks on any data; nr.find_reln(x, y, pathways=...) finds "
    "the gated network that yours imitates and predicts its loss, and metrics=['balance'] measures "
    "what gradient flow conserves in both"
)
TREE_ATTRIBUTES = ("paper", "experiment", "cell", "device", "precision", "xla_flags")
"""Attributes of a trajectory that are written to the root of a tree."""


@checked_arguments(specify)
def simulate(
    x: Any, y: Any = None, *, theory: Theory = "auto", progress: bool = True, **options: Any
) -> xr.DataTree:
    """Trains networks on your data, solves the theory of them, and computes metrics of both.

    `x`, `y` and `hidden` are enough for linear networks; all other arguments have defaults. There
    is a run for each init scale and seed. `neuralrace list` shows the names of datasets, networks,
    metrics and solutions.

    Args:
        x: inputs, an array (sample, input) of real numbers: of NumPy, pandas, or nested lists. Or a
            dataset with its targets, by its name, such as "hierarchy", or as a mapping.
        y: targets, an array (sample, output) with as many rows as `x`; None with a dataset.
        theory: names of theoretical solutions; "auto" for all that apply to this network and these
            data, without baselines such as `linearised`; None for none. A solution that does not
            apply is refused with the reason.
        progress: whether to print choices and progress to stderr.
        **options: all other arguments of `specify`.

    Returns:
        A tree with up to three datasets. `trajectory` holds the loss and other recorded variables,
        with dimensions (init_scale, seed, time, ...). `theory` holds their predictions by each
        `solution`; it is absent if nothing was solved. `metrics` holds the metrics. Attributes:
        `spec`, the specification as JSON, which gives the same numbers in the workflow; `status`,
        the number of diverged runs; `left_out`, a line for each reason why solutions for such
        networks do not apply, empty when `theory` was given.

    Raises:
        UserError: as `specify`; or training, theory or a metric fails for this specification.

    Example:
        >>> import numpy as np
        >>> import neuralrace as nr
        >>> x, y = np.eye(4), np.diag([4.0, 3, 2, 1])
        >>> tree = nr.simulate(x, y, hidden=[16], init_scales=[0.01], seeds=3)
        >>> learned = tree["trajectory"]["mode_strength"].isel(init_scale=0, time=-1)
        >>> learned.mean("seed").values.round(1).tolist()
        [4.0, 3.0, 2.0, 1.0]
        >>> tree.attrs["status"]
        '0 of 3 runs diverged'
        >>> figure = nr.plot(tree)
    """
    warn_of_environment()
    report = progress_printer(progress)
    with python_errors(options.get("network")):
        cell, answers, left_out = _solve(x, y, theory, options, report)
        trained = train(cell.only(Ensemble), report=report)
        report(f"trained {trained.diverged_at.size} runs of {cell.training.steps} steps", True)
        part = cell.only(Ensemble)
        datasets = {"trajectory": trajectory_dataset(CELL_NAME, part, trained, in_memory=True)}
        if answers:
            part = cell.only(SolvedEnsemble)
            datasets["theory"] = theory_dataset(CELL_NAME, part, answers, in_memory=True)
        solved = datasets.get("theory", xr.Dataset())
        results = CellResults(CELL_NAME, Path(), cell, datasets["trajectory"], solved)
        datasets["metrics"] = metrics_dataset(results, in_memory=True)
    attributes = {key: datasets["trajectory"].attrs[key] for key in TREE_ATTRIBUTES}
    versions = [v for dataset in datasets.values() for v in dataset.attrs["versions"].split(", ")]
    for dataset in datasets.values():  # all attributes of files would print on two pages
        dataset.attrs = {"spec": dataset.attrs["spec"]}
    tree = xr.DataTree.from_dict(datasets, name=CELL_NAME.replace("/", "."))
    diverged = int((trained.diverged_at >= 0).sum())
    tree.attrs = attributes | {
        "spec": cell.canonical(),
        "status": f"{diverged} of {trained.diverged_at.size} runs diverged",
        "left_out": left_out,
        "versions": ", ".join(dict.fromkeys(versions)),
    }
    return tree


@checked_arguments(specify)
def solve(
    x: Any, y: Any = None, *, theory: Theory = "auto", progress: bool = True, **options: Any
) -> xr.Dataset:
    """Solves the theory without training.

    Args:
        x: inputs, an array (sample, input); or a dataset by its name or as a mapping.
        y: targets, an array (sample, output); None with a dataset.
        theory: names of theoretical solutions; "auto" for all that apply to this network and these
            data, without baselines such as `linearised`.
        progress: whether to print choices and progress to stderr.
        **options: all other arguments of `specify`.

    Returns:
        The dataset `theory` of `simulate`, with dimensions (init_scale, seed, solution, time, ...).
        Its attribute `left_out` has a line for each reason why solutions for such networks do not
        apply.

    Raises:
        UserError: as `specify`; or a solution fails, or none is left to solve.

    Example:
        >>> import numpy as np
        >>> import neuralrace as nr
        >>> x, y = np.eye(4), np.diag([4.0, 3, 2, 1])
        >>> theory = nr.solve(x, y, hidden=[16], init_scales=[0.01], theory=["aligned_modes"])
        >>> theory["mode_strength"].dims
        ('init_scale', 'seed', 'solution', 'time', 'mode')
    """
    warn_of_environment()
    with python_errors(options.get("network")):
        cell, answers, left_out = _solve(x, y, theory, options, progress_printer(progress))
        if not answers:
            problem = f"no solution is for this ensemble\n{left_out}"
            raise UserError(problem, key="theory", value=theory)
        solved = theory_dataset(CELL_NAME, cell.only(SolvedEnsemble), answers)
    return solved.assign_attrs(left_out=left_out)


def _solve(
    x: Any, y: Any, theory: Theory, options: dict[str, Any], report: Callable[..., None]
) -> tuple[Cell, dict[str, Arrays], str]:
    """The complete cell, the variables of each solution, and the attribute `left_out`."""
    automatic = isinstance(theory, str)
    if automatic and theory != "auto":
        raise UserError("give 'auto', a list of names or None", key="theory", value=theory)
    # without metrics, since these may require solutions that are not chosen yet
    first: dict[str, Any] = {"metrics": ()} if automatic else {"theory": theory}
    cell = specify(x, y, **options | first)
    chosen = _chosen_values(cell, options)
    if chosen:
        report("chosen: " + ", ".join(f"{name}={value}" for name, value in chosen.items()), True)
    network = options.get("network")
    answers: dict[str, Arrays] = {}
    left_out: dict[str, list[str]] = {}
    problem = Problem(cell, record_steps(cell)[0])
    no_baselines = [name for name, entry in SOLUTIONS.items() if not entry.declaration.baseline]
    for name in no_baselines if automatic else cell.solutions:
        requirements = SOLUTIONS[name].declaration.requires
        if automatic and (reason := unmet(cell, requirements, data=True)):
            of_network = [n for n in requirements.split() if {*n.split("|")} & OF_NETWORK]
            if not unmet(cell, " ".join(of_network)):
                left_out.setdefault(reason_by_argument(reason, network), []).append(name)
            continue
        report(f"solving {name}")
        try:
            answers[name] = SOLUTIONS[name].load()(problem)
        except RuntimeError as error:  # the solver gives up
            if not automatic:
                raise UserError(
                    str(error), key="theory", value=name, remedy="leave it out"
                ) from error
            left_out.setdefault(str(error), []).append(name)
    lines = [f"{', '.join(names)}: {reason}" for reason, names in left_out.items()]
    if automatic and not answers:
        lines.insert(0, _no_theory(cell, network))
        report(lines[0], True)
    options = options | chosen | {"theory": [*answers]}
    return specify(x, y, **options), answers, "\n".join(lines)


def _chosen_values(cell: Cell, options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that were absent or changed, with their values in the cell."""
    values = {"init_scales": [*cell.init_scales], **vars(cell.training)}
    chosen = {name: values[name] for name in CHOSEN if options.get(name) is None}
    records = cell.training.steps // cell.record.every
    requested = options.get("records", signature(specify).parameters["records"].default)
    return chosen if records == requested else chosen | {"records": records}


def _no_theory(cell: Cell, network: Any) -> str:
    """A line about a network to which no theory applies."""
    if not unmet(cell, "layered relu"):
        return NO_THEORY_OF_RELU
    reason = unmet(cell, "linear") or "see left_out for each"
    return f"theory: none is solved for this network; {reason_by_argument(reason, network)}"


def progress_printer(progress: Any) -> Callable[..., None]:
    """A function that prints a line of progress to stderr, or does nothing.

    Raises:
        UserError: `progress` is neither true nor false.
    """
    if not isinstance(progress, bool):
        raise UserError("give True or False", key="progress", value=progress)
    return _print_progress if progress else lambda *_: None


def _print_progress(line: str, done: bool = False) -> None:
    """Prints a line to stderr.

    In a terminal and in a notebook, the next line replaces it unless it is done.
    """
    start, end = "", "\n"
    notebook = type(sys.stderr).__module__.startswith("ipykernel")
    if notebook or sys.stderr.isatty():
        width = get_terminal_size().columns - 1  # a wrapped line could not be replaced
        line = f"{line[:width]:{width}}"  # blanks hide the rest of a longer line before it
        start, end = "\r", "\n" if done else ""
    print(f"{start}{line}", end=end, file=sys.stderr, flush=True)
