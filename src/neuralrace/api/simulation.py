"""Simulation and theory from Python arguments."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, Literal

import numpy as np
import xarray as xr

from neuralrace.api.arguments import checked_arguments, reason_by_argument, refuse_unknown
from neuralrace.api.choices import CHOSEN, Needed, default_observables, learned_maps, needed_steps
from neuralrace.api.outcome import count_diverged, describe_outcome, describe_test
from neuralrace.api.specification import (
    CELL_NAME,
    EXPERIMENT,
    PAPER,
    dataset_of,
    plain_arguments,
    python_errors,
    specify,
)
from neuralrace.api.weights import are_weights
from neuralrace.config.cell import Cell, Ensemble, SolvedEnsemble
from neuralrace.config.cost import estimate_cost
from neuralrace.config.location import Location
from neuralrace.config.requirements import OF_NETWORK, unmet
from neuralrace.config.sweep import MOST_CELLS, expand_sweep
from neuralrace.datasets.given import Parameters
from neuralrace.errors import UserError
from neuralrace.extensions.registry import METRICS, SOLUTIONS
from neuralrace.metrics.dataset import metrics_dataset
from neuralrace.results.axes import record_steps
from neuralrace.results.cells import DATA, CellResults, given_arrays
from neuralrace.results.theory import theory_dataset
from neuralrace.results.trajectory import trajectory_dataset
from neuralrace.theory.integration import INTEGRATED, refuse_path
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.training.environment import warn_of_environment
from neuralrace.training.trainer import train

Theory = Literal["auto"] | Sequence[str] | None
NO_THEORY_OF_RELU = (
    "theory: none is solved for ReLU networks on any data; nr.find_reln(x, y, pathways=...) finds "
    "the gated network that yours imitates and predicts its loss, and metrics=['balance'] measures "
    "what gradient flow conserves in both"
)
LONG, LARGE = 20.0, 2000
"""Core-seconds and megabytes above which the estimated cost is printed."""
MANY_SEEDS, DRAW = 20_000, 4e-4
"""Seeds whose initial weights take long to draw, and the seconds for each, as they are drawn up to
four times: for the init scale, the learning rate, training and theory."""
TESTS = ("x_test", "y_test", "test")
"""Arguments of test samples."""
ORIGIN = ("paper", "experiment", "cell", "device", "precision", "xla_flags")
"""Attributes of a trajectory that are written to the tree of its cell."""


@checked_arguments(specify)
def simulate(
    x: Any,
    y: Any = None,
    *,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    theory: Theory = "auto",
    progress: bool = True,
    **options: Any,
) -> xr.DataTree:
    """Trains networks on your data, solves the theory of them, and computes metrics of both.

    `x`, `y` and `hidden` are enough for linear networks; all other arguments have defaults. There
    is a run for each init scale and seed. `neuralrace list` shows the names of datasets, networks,
    metrics and solutions.

    Args:
        x: as in `specify`.
        y: as in `specify`.
        sweep: values to try for other arguments, such as {"hidden": [[8], [64]]}: one simulation
            for each combination. Keys and values are those of a `sweep` in a configuration, with
            arguments in place of keys: "x.seed" is inside a dataset that is a mapping, and
            "learning_rate, steps" takes lists of two values.
        theory: names of theoretical solutions; "auto" for all that apply to this network and these
            data, without baselines such as `linearised`; None for none. A solution that does not
            apply is refused with the reason.
        progress: whether to print choices and progress to stderr.
        **options: all other arguments of `specify`.

    Returns:
        A tree with up to three datasets. `trajectory` holds the loss and other recorded variables,
        with dimensions (init_scale, seed, time, ...). `theory` holds their predictions by each
        `solution`; it is absent if nothing was solved. `metrics` holds the metrics. Attributes:
        `status`, how many runs diverged, and how low the loss of the others became compared with
        the best that the network could reach, where this is known; `left_out`, a line for each
        reason why solutions for such networks do not apply, empty when `theory` was given; `spec`,
        the specification as JSON, which gives the same numbers in the workflow. Of more than
        10,000 numbers in `x` and `y`, it has shapes and checksum, and a dataset `data` has the
        arrays. With `sweep`, a tree of such trees, by labels such as "hidden-8_learning_rate-0.1";
        its `status` counts the runs of all, and the arrays that all have are its own `data`.

    Raises:
        UserError: as `specify`; an invalid sweep; or training, theory or a metric fails for this
            specification.

    Example:
        >>> import numpy as np
        >>> import neuralrace as nr
        >>> x, y = np.eye(4), np.diag([4.0, 3, 2, 1])
        >>> tree = nr.simulate(x, y, hidden=[16], init_scales=[0.01], seeds=3)
        >>> learned = tree["trajectory"]["mode_strength"].isel(init_scale=0, time=-1)
        >>> learned.mean("seed").values.round(1).tolist()
        [4.0, 3.0, 2.0, 1.0]
        >>> tree.attrs["status"].split(";")[0]
        '0 of 3 runs diverged'
        >>> figure = nr.plot(tree)
    """
    warn_of_environment()
    report = progress_printer(progress)
    arguments = {"x": x, "y": y, "theory": theory, **options}
    with python_errors(options.get("network")):
        if sweep is None:
            return _simulated(CELL_NAME, arguments, report)[0]
        cells = _swept(arguments, sweep, report)
        trees, diverged, runs = {}, 0, 0
        for number, (label, each) in enumerate(cells.items(), 1):
            report(f"{label}: {number} of {len(cells)}", True)
            trees[label], status = _simulated(f"{PAPER}/{EXPERIMENT}/{label}", each, report)
            diverged, runs = diverged + int((status >= 0).sum()), runs + status.size
    shared = _shared_arrays(trees)
    tree = xr.DataTree(name=f"{PAPER}.{EXPERIMENT}", children=trees).assign(shared)
    tree.attrs = {
        "status": count_diverged(diverged, runs),
        "sweep": json.dumps(plain_arguments(**sweep)),
    }
    return tree


def _swept(
    arguments: Mapping[str, Any], sweep: Any, report: Callable[..., None]
) -> dict[str, dict[str, Any]]:
    """Arguments of each cell of a sweep, by label.

    Raises:
        UserError: an invalid sweep, or arguments of a cell that do not fit; nothing is trained yet.
    """
    location = Location({}, ("experiments", PAPER, EXPERIMENT))
    raw = {**arguments, **plain_arguments(sweep=sweep)}
    keys = ",".join(raw["sweep"]) if isinstance(raw["sweep"], Mapping) else ""
    if not {"x", "y", *TESTS} & {key.strip().partition(".")[0] for key in keys.split(",")}:
        raw = _read_once(raw)
    cells = {cell.label: cell.specification for cell in expand_sweep(raw, location, MOST_CELLS)}
    specified = []
    for each in cells.values():
        refuse_unknown(each, specify, "sweep.")
        specified.append(_specified(**each))
    _report_cost(specified, report)
    return cells


def _read_once(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `specify` in which large arrays need not be converted again."""
    tests = {name: arguments[name] for name in TESTS if name in arguments}
    dataset = dataset_of(arguments["x"], arguments["y"], **tests)
    if not isinstance(dataset, Parameters):
        return {**arguments}
    others = {name: value for name, value in arguments.items() if name not in TESTS}
    return {**others, "x": dataset, "y": None}


def _shared_arrays(trees: dict[str, xr.DataTree]) -> dict[str, xr.DataTree]:
    """The arrays given in Python, taken out of the trees of a sweep if all have the same."""
    data = [tree.children[DATA] for tree in trees.values() if DATA in tree.children]
    checksums = [{n: each.attrs["checksum"] for n, each in some.items()} for some in data]
    if len(data) < len(trees) or any(each != checksums[0] for each in checksums):
        return {}
    for label, tree in trees.items():
        trees[label] = tree.drop_nodes(DATA)
    return {DATA: data[0].copy()}


def _report_cost(cells: Sequence[Cell], report: Callable[..., None]) -> None:
    """Says about how much time and memory training takes, if it is much."""
    costs = [estimate_cost(cell) for cell in cells]
    seconds, largest = sum(each.seconds() for each in costs), max(each.memory_mb for each in costs)
    if seconds > LONG or largest > LARGE:
        what = "training" if len(cells) == 1 else f"training of {len(cells)} cells"
        memory = f"{largest / 1000:.2g} GB of memory"
        report(f"{what}: {_duration(seconds)} on one core, {memory}", True)


def _report_shortage(cell: Cell, needed: Needed, report: Callable[..., None]) -> None:
    """Says what learning would take, why, and what helps."""
    steps = cell.training.steps
    whole = _duration(estimate_cost(cell).train * needed.steps / steps)
    report(f"learning this task takes about {needed.steps:.2g} steps, {whole} on one core", True)
    if needed.ill_conditioned:
        number = f"{needed.condition:.2g}"
        report(f"the condition number of the inputs is {number}: standardise or whiten x", True)
    report(
        f"training stops after {steps} steps; for more, give steps or a larger learning_rate", True
    )


def _simulated(
    name: str, arguments: Mapping[str, Any], report: Callable[..., None]
) -> tuple[xr.DataTree, np.ndarray]:
    """The tree of a cell, and the step at which each run diverged, or -1."""
    planned = _planned(report=report, **arguments)
    if planned.needed is not None and planned.needed.steps > planned.cell.training.steps:
        _report_shortage(planned.cell, planned.needed, report)
    _report_cost([planned.cell], report)
    trained = train(planned.cell.only(Ensemble), report=report)
    diverged_at = trained.diverged_at
    counts = _count(diverged_at.size, "run"), _count(planned.cell.training.steps, "step")
    report(f"trained {' of '.join(counts)}", True)
    cell, answers, left_out = _solved(planned, report)
    datasets = {
        "trajectory": trajectory_dataset(name, cell.only(Ensemble), trained, in_memory=True)
    }
    if answers:
        datasets["theory"] = theory_dataset(
            name, cell.only(SolvedEnsemble), answers, in_memory=True
        )
    solved = datasets.get("theory", xr.Dataset())
    results = CellResults(name, Path(), cell, datasets["trajectory"], solved)
    datasets["metrics"] = metrics_dataset(results, in_memory=True)
    origin = {key: datasets["trajectory"].attrs[key] for key in ORIGIN}
    versions = [v for dataset in datasets.values() for v in dataset.attrs["versions"].split(", ")]
    status = describe_outcome(
        cell,
        datasets["trajectory"]["loss"],
        diverged_at,
        None if planned.needed is None else planned.needed.steps,
    )
    status += describe_test(datasets["trajectory"], diverged_at)
    report(status, True)
    if given := given_arrays(cell):
        datasets[DATA] = given
    for dataset in datasets.values():  # a notebook would show the specification in full for each
        dataset.attrs = {}
    tree = xr.DataTree.from_dict(datasets, name=name.replace("/", "."))
    # at least ten attributes, which a notebook folds away
    tree.attrs = {
        "status": status,
        "left_out": left_out,
        **origin,
        "versions": ", ".join(dict.fromkeys(versions)),
        "spec": cell.canonical(),
    }
    return tree, diverged_at


@checked_arguments(specify)
def solve(
    x: Any, y: Any = None, *, theory: Theory = "auto", progress: bool = True, **options: Any
) -> xr.Dataset:
    """Solves the theory without training.

    Args:
        x: as in `specify`.
        y: as in `specify`.
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
        report = progress_printer(progress)
        cell, answers, left_out = _solved(_planned(x, y, theory, report, **options), report)
        if not answers:
            problem = f"no solution is for this ensemble\n{left_out}"
            raise UserError(problem, key="theory", value=theory)
        solved = theory_dataset(CELL_NAME, cell.only(SolvedEnsemble), answers)
    return solved.assign_attrs(left_out=left_out)


def _automatic(theory: Theory) -> bool:
    return isinstance(theory, str) and theory == "auto"


def _specified(x: Any, y: Any, theory: Theory, **options: Any) -> Cell:
    """The cell without the solutions that "auto" will choose, and without metrics of them."""
    if _automatic(theory):
        metrics = options.pop("metrics", None)
        for number, metric in enumerate(metrics if isinstance(metrics, list | tuple) else ()):
            if isinstance(metric, str):  # before theory is solved, which may take long
                METRICS.known(metric, f"metrics.{number}")
        return specify(x, y, **options)
    return specify(x, y, **options, theory=theory)


@dataclass(frozen=True)
class _Planned:
    """A cell with all solutions to try.

    Attributes:
        cell: its specification.
        build: makes this specification with other solutions.
        network: the argument of that name.
        automatic: whether a solution that fails is left out.
        left_out: names of other solutions of such networks, by the reason why they do not apply.
        needed: what it takes to learn the task, if theory chose the steps.
    """

    cell: Cell
    build: Callable[[Sequence[str]], Cell]
    network: Any
    automatic: bool
    left_out: Mapping[str, Sequence[str]]
    needed: Needed | None


def _planned(
    x: Any, y: Any, theory: Theory, report: Callable[..., None], **options: Any
) -> _Planned:
    """The specification, complete but for solutions that will fail; nothing is trained or solved.

    Raises:
        UserError: as `specify`, or the weights along a named flow do not fit into memory.
    """
    options = _read_once({"x": x, "y": y, **options})
    x, y = options.pop("x"), options.pop("y")
    automatic, network = _automatic(theory), options.get("network")
    seeds = options.get("seeds")
    if (
        isinstance(seeds, int)
        and seeds > MANY_SEEDS
        and any(options.get(n) is None for n in CHOSEN)
    ):
        report(f"drawing the initial weights of {seeds} seeds: {_duration(DRAW * seeds)}", True)
    cell = _specified(x, y, theory, **options)
    if data := cell.dataset.describe():
        report(f"data: {data}", True)
    chosen = _chosen_values(cell, options)
    if chosen:
        report("chosen: " + ", ".join(f"{name}={value}" for name, value in chosen.items()), True)
    if options.get("observables") is not None:
        usual = default_observables(cell, ())
        if missing := [name for name in usual if name not in cell.record.observables]:
            report(f"not recorded, as observables is given: {', '.join(missing)}", True)
    names, left_out = [*cell.solutions], dict[str, list[str]]()
    for name, entry in SOLUTIONS.items() if automatic else ():
        if entry.declaration.baseline:
            continue
        requirements = entry.declaration.requires
        if reason := unmet(cell, requirements, data=True):
            of_network = [n for n in requirements.split() if {*n.split("|")} & OF_NETWORK]
            if not unmet(cell, " ".join(of_network)):
                left_out.setdefault(reason_by_argument(reason, network), []).append(name)
        else:
            names.append(name)
    if automatic and not names:
        report(_no_theory(cell, network), True)
    for name in {*names} & {*INTEGRATED} if not automatic else ():  # before training
        problem = Problem(cell, record_steps(cell)[0])
        try:
            refuse_path(len(problem.step), sum(each.size for each in problem.weights))
        except RuntimeError as error:
            raise _given_up(name, error) from error

    def build(theory: Sequence[str]) -> Cell:
        complete: dict[str, Any] = {**options, **chosen, "theory": [*theory]}
        return specify(x, y, **complete)

    needed = needed_steps(cell, learned_maps(cell)) if options.get("steps") is None else None
    return _Planned(build(names), build, network, automatic, left_out, needed)


def _solved(planned: _Planned, report: Callable[..., None]) -> tuple[Cell, dict[str, Arrays], str]:
    """The cell with what was solved, the variables of each solution, and `left_out`.

    Raises:
        UserError: a named solution fails.
    """
    cell, answers = planned.cell, dict[str, Arrays]()
    left_out = {reason: [*names] for reason, names in planned.left_out.items()}
    problem = Problem(cell, record_steps(cell)[0])
    for name in cell.solutions:
        report(f"solving {name}")
        try:
            answers[name] = SOLUTIONS[name].load()(problem)
        except RuntimeError as error:  # the solver gives up
            if not planned.automatic:
                raise _given_up(name, error) from error
            left_out.setdefault(str(error), []).append(name)
    lines = [f"{', '.join(names)}: {reason}" for reason, names in left_out.items()]
    if planned.automatic and not answers:
        lines.insert(0, _no_theory(cell, planned.network))
        if cell.solutions:  # each of them failed
            report(lines[0], True)
    if [*answers] != [*cell.solutions]:
        cell = planned.build([*answers])
    return cell, answers, "\n".join(lines)


def _given_up(name: str, error: RuntimeError) -> UserError:
    """An error about a solution whose solver gave up."""
    return UserError(str(error), key="theory", value=name, remedy="or leave it out")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    """About how long something takes, in its largest unit."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"about {seconds / length:.2g} {unit}"
    return f"about {seconds:.2g} seconds"


def _chosen_values(cell: Cell, options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that were absent or changed, with their values in the cell."""
    values = {"init_scales": [*cell.init_scales], **vars(cell.training)}
    chosen = {name: values[name] for name in CHOSEN if options.get(name) is None}
    if are_weights(options.get("init")):  # they keep their scale
        chosen.pop("init_scales", None)
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
