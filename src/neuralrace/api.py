"""Experiments in a few lines of Python: what a configuration says, as arguments.

The same `Cell` is made from them, by the same validation, and trained, solved and measured by the
same code as in the workflow.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import cleandoc, signature
from math import ceil
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, Literal, TypeVar, cast

import numpy as np
import xarray as xr

from neuralrace.config.cell import Cell, Ensemble, SolvedEnsemble
from neuralrace.config.load import read_plan
from neuralrace.config.requirements import unmet
from neuralrace.errors import UserError, did_you_mean
from neuralrace.extensions.registry import METRICS, OBSERVABLES, SOLUTIONS
from neuralrace.metrics.measure import metrics_dataset
from neuralrace.results.axes import record_steps
from neuralrace.results.cells import CellResults
from neuralrace.results.theory import theory_dataset
from neuralrace.results.trajectory import trajectory_dataset
from neuralrace.theory import pace
from neuralrace.theory.reduction import aligned_strengths, reduction_flow, reduction_loss
from neuralrace.theory.reln import find
from neuralrace.theory.solutions.gated import ALIGNED
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.training.environment import warn_of_environment
from neuralrace.training.trainer import train

F = TypeVar("F", bound=Callable)
Named = str | Mapping[str, Any]
"""By its name, or as the mapping that a configuration has in its place."""
Theory = Literal["auto"] | Sequence[str] | None
PATH = ("python", "simulate")
NAME = "/".join((*PATH, "main"))
"""Identifier of the cell."""
STANDARD = {"mode_strength": "linear", "pair_error": ""}
"""What is recorded beside the loss when nothing is said, with what it needs beyond its own."""
OF_THE_NETWORK = frozenset(
    [
        "layered",
        "gated",
        "graph",
        "routing",
        "given_gates",
        "no_hidden",
        "hidden",
        "one_hidden",
        "two_hidden",
        "several_hidden",
        "linear",
        "relu",
        "relu_units",
        "unit_pathways",
        "trained_readout",
        "mean_readout",
        "context_family",
        "common_pathway",
        "candidates",
        "trained_candidates",
    ]
)
"""Requirements of a theory that say which networks it is for; see `config.requirements`."""
FOR_RELU = (
    "theory: none is solved for ReLU networks on any data; nr.find_reln(x, y, pathways=...) finds "
    "the gated network that yours imitates and predicts its loss, and metrics=['balance'] measures "
    "what gradient flow conserves in both"
)
OF_ALL = ("paper", "experiment", "cell", "device", "precision", "xla_flags")
"""Attributes of a trajectory that stand at the root of a tree."""
CHOSEN = ("init_scales", "learning_rate", "steps")
"""Arguments that theory chooses when they are absent."""
FEWER = 4
"""Share of the wanted entries of the time axis, one in so many, that is left at least."""
SMALLEST = 1e-50
"""The largest input or target is at least this: products of eight such numbers are in range."""
MOST_LINES = 5
"""Lines of a message: mistakes of one kind may be many."""


ARGUMENT = re.compile(r"^    (\w+): .*(?:\n {8}.*)*\n", re.MULTILINE)
"""An argument in a docstring."""


def _with_arguments_of_specify(function: F) -> F:
    """Puts the arguments of `specify` in the place of `**asked`, and refuses all others by name.

    They stand in the signature and in the docstring, for help and completion; what the function
    says of an argument counts there.
    """
    own = signature(function)
    shown = dict(own.parameters)
    text = cleandoc(function.__doc__ or "")
    if shown.pop("asked", None):
        shown = {**signature(specify).parameters, **shown}
        meant = {
            match[1]: match[0]
            for docstring in (specify.__doc__ or "", text)
            for match in ARGUMENT.finditer(docstring)
        }
        before, _, after = re.split(r"^(Args:\n(?: {4}.*\n)+)", text, flags=re.MULTILINE)
        text = before + "Args:\n" + "".join(meant[name] for name in shown) + after
    full = own.replace(parameters=list(shown.values()))

    @wraps(function)
    def checked(*arguments: Any, **named: Any) -> Any:
        for name in named.keys() - shown.keys():
            raise UserError(
                f"{name}: is no argument of {function.__name__}; "
                f"{did_you_mean(name, shown)}there are {', '.join(shown)}"
            )
        try:
            full.bind(*arguments, **named)
        except TypeError as error:
            raise UserError(
                f"{function.__name__}: {error}; give x and y first and all else by name, such as "
                "hidden=[16]"
            ) from None
        return function(*arguments, **named)

    checked.__doc__ = text
    vars(checked)["__signature__"] = full
    return cast(F, checked)


@_with_arguments_of_specify
def specify(
    x: Any,
    y: Any = None,
    *,
    hidden: Sequence[int] | None = None,
    activation: str = "linear",
    gates: Any = None,
    network: Mapping[str, Any] | None = None,
    init: Named = "normal",
    init_scales: Sequence[float] | None = None,
    seeds: int = 5,
    optimiser: Named = "sgd",
    loss: Named = "squared_error",
    batch: Named = "full",
    learning_rate: float | None = None,
    steps: int | None = None,
    records: int = 200,
    snapshots: int = 1,
    observables: Sequence[str] | None = None,
    metrics: Sequence[str] | None = (),
    theory: Sequence[str] | None = (),
    precision: str = "float64",
) -> Cell:
    """The cell that a configuration with these values gives; nothing is trained.

    Args:
        x: inputs, an array (sample, input) of real numbers: of NumPy, pandas, or nested lists. Or a
            dataset, by its name, such as "hierarchy", or as a mapping; it has the targets too.
        y: targets, an array (sample, output) with as many rows as `x`; None beside a dataset.
        hidden: units of each hidden layer, first layer first, such as [16]; [] for a single layer
            of weights. Beside `gates`, units of each pathway.
        activation: of hidden units: linear, relu, erf, sigmoid or tanh. Beside `gates`, linear.
        gates: for a gated network of pathways side by side: an array (pathway, sample) with values
            from 0, closed, to 1, open; or a gating scheme by its name or as a mapping.
        network: any other network, as a mapping, in place of `hidden`, `activation` and `gates`.
        init: initialisation law, by its name or as a mapping; "normal" draws independent normal
            entries with the init scale as their standard deviation.
        init_scales: factors on every initial weight; there are `seeds` runs for each. When absent,
            theory chooses one (`theory.pace.small_scale`): modes start from at most 1% of the
            strength that they end at.
        seeds: number of runs at each init scale; equal seeds start from the same directions.
        optimiser: how gradients become steps, by its name or as a mapping; "sgd" is plain gradient
            descent.
        loss: what is minimised: "squared_error", or a mapping such as {"name": "cross_entropy",
            "normalisation": "mean"}.
        batch: samples of each step: "full" for all, or a mapping.
        learning_rate: step size. When absent, theory chooses it (`theory.pace.flow_step`): steps
            change no rate of learning by more than 1%.
        steps: gradient steps. When absent, theory chooses them (`theory.pace.learning_time`): the
            slowest mode comes within 1% of its end at the smallest init scale.
        records: entries of the time axis after its first, at most: as many as divide `steps` and
            are a multiple of `snapshots`. A quarter of this number has to be left.
        snapshots: the same of what is large, weights and outputs.
        observables: names of what is recorded beside the loss. When absent, mode strengths of
            linear networks, errors of trained and untrained pairs of domains, and what the metrics
            need.
        metrics: names of what is measured at the end.
        theory: names of the solutions that are solved.
        precision: arithmetic of training, "float64" or "float32".

    Raises:
        UserError: an argument that is unknown, of the wrong type or out of range, or that does not
            fit the others.

    Example:
        >>> import neuralrace as nr
        >>> cell = nr.specify("hierarchy", hidden=[16], init_scales=[0.01], records=100)
        >>> cell.training.steps % 100, cell.record.observables
        (0, ('mode_strength',))
    """
    with _by_argument(network):
        records = _records(records, snapshots, steps)
        training: dict[str, Any] = {
            "learning_rate": 1.0 if learning_rate is None else learning_rate,
            "steps": records if steps is None else int(steps),
            "optimiser": _named(optimiser),
            "loss": _named(loss),
            "batch": _named(batch),
        }
        record: dict[str, Any] = {"every": training["steps"] // records, "snapshots": snapshots}
        asked: dict[str, Any] = {
            "dataset": _dataset(x, y),
            "network": _network(network, hidden, activation, gates),
            "init": _named(init),
            "init_scales": [1.0] if init_scales is None else init_scales,
            "seeds": seeds,
            "training": training,
            "record": record,
            "precision": precision,
        }
        cell = _cell(asked)
        arguments = {"init_scales": init_scales, "learning_rate": learning_rate, "steps": steps}
        if missing := [name for name in CHOSEN if arguments[name] is None]:
            _refuse_to_choose(cell, missing)
        if init_scales is None:
            asked["init_scales"] = [_small_scale(cell)]
            cell = _cell(asked)
        if learning_rate is None or steps is None:
            training["learning_rate"], training["steps"] = _pace(cell, learning_rate, steps)
            record["every"] = training["steps"] // records
        record["observables"] = _standard(cell, metrics) if observables is None else observables
        named = {"solutions": theory, "metrics": metrics}
        return _cell(asked | {key: () if value is None else value for key, value in named.items()})


@_with_arguments_of_specify
def simulate(
    x: Any, y: Any = None, *, theory: Theory = "auto", progress: bool = True, **asked: Any
) -> xr.DataTree:
    """Trains networks on your data, solves the theory beside them, and measures both.

    `x`, `y` and `hidden` are enough for linear networks; all else has a default. There is a run for
    each init scale and seed. Datasets, networks, metrics and solutions have the names that
    `neuralrace list` shows.

    Args:
        x: inputs, an array (sample, input) of real numbers: of NumPy, pandas, or nested lists. Or a
            dataset, by its name, such as "hierarchy", or as a mapping; it has the targets too.
        y: targets, an array (sample, output) with as many rows as `x`; None beside a dataset.
        theory: names of the solutions that are solved; "auto" for all that are for this network and
            these data, None for none. A name that does not fit is refused with the reason.
        progress: whether to print to stderr what was chosen and how far training is.
        **asked: all other arguments of `specify`.

    Returns:
        A tree with a dataset for each kind of result. `trajectory` holds the loss and what else was
        recorded, with dimensions (init_scale, seed, time, ...). `theory` holds the same as theory
        predicts it, for each `solution`; it is absent where nothing was solved. `metrics` holds
        what was measured. Attributes: `spec`, the specification as JSON, which gives the same
        numbers in the workflow; `status`, how many runs diverged; `left_out`, a line for each
        reason why theory of such networks was not solved, empty when `theory` was named.

    Raises:
        UserError: as `specify`, or what training, theory or a metric refuses.

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
    tell = _teller(progress)
    with _by_argument(asked.get("network")):
        cell, answers, left_out = _solved(x, y, theory, asked, tell)
        trained = train(cell.only(Ensemble), report=tell)
        tell(f"trained {trained.diverged_at.size} runs of {cell.training.steps} steps", True)
        made = {"trajectory": trajectory_dataset(NAME, cell.only(Ensemble), trained)}
        if answers:
            made["theory"] = theory_dataset(NAME, cell.only(SolvedEnsemble), answers)
        results = CellResults(
            NAME, Path(), cell, made["trajectory"], made.get("theory", xr.Dataset())
        )
        made["metrics"] = metrics_dataset(results)
    shared = {key: made["trajectory"].attrs[key] for key in OF_ALL}
    versions = [each for dataset in made.values() for each in dataset.attrs["versions"].split(", ")]
    for dataset in made.values():  # all that a file says of itself would fill two pages of a tree
        dataset.attrs = {"spec": dataset.attrs["spec"]}
    tree = xr.DataTree.from_dict(made, name=NAME.replace("/", "."))
    diverged = int((trained.diverged_at >= 0).sum())
    tree.attrs = shared | {
        "spec": cell.canonical(),
        "status": f"{diverged} of {trained.diverged_at.size} runs diverged",
        "left_out": left_out,
        "versions": ", ".join(dict.fromkeys(versions)),
    }
    return tree


@_with_arguments_of_specify
def solve(
    x: Any, y: Any = None, *, theory: Theory = "auto", progress: bool = True, **asked: Any
) -> xr.Dataset:
    """Theory alone, without training.

    Args:
        x: inputs, an array (sample, input); or a dataset by its name or as a mapping.
        y: targets, an array (sample, output); None beside a dataset.
        theory: names of the solutions that are solved; "auto" for all that are for this network and
            these data.
        progress: whether to print to stderr what was chosen and what is being solved.
        **asked: all other arguments of `specify`.

    Returns:
        The dataset `theory` of `simulate`, with dimensions (init_scale, seed, solution, time, ...);
        its attribute `left_out` tells which theory of such networks was not solved, and why.

    Raises:
        UserError: as `specify`, what theory refuses, or nothing is left to solve.

    Example:
        >>> import numpy as np
        >>> import neuralrace as nr
        >>> x, y = np.eye(4), np.diag([4.0, 3, 2, 1])
        >>> theory = nr.solve(x, y, hidden=[16], init_scales=[0.01], theory=["aligned_modes"])
        >>> theory["mode_strength"].dims
        ('init_scale', 'seed', 'solution', 'time', 'mode')
    """
    warn_of_environment()
    with _by_argument(asked.get("network")):
        cell, answers, left_out = _solved(x, y, theory, asked, _teller(progress))
        if not answers:
            raise UserError(f"theory: {theory!r}: no solution is for this ensemble\n{left_out}")
        solved = theory_dataset(NAME, cell.only(SolvedEnsemble), answers)
    return solved.assign_attrs(left_out=left_out)


@_with_arguments_of_specify
def find_reln(
    x: Any, y: Any = None, *, pathways: int, controls: bool = True, **asked: Any
) -> find.Reln:
    """The rectified linear network that imitates ReLU networks; see `reln.find.find_reln`.

    When absent, `activation` is "relu" and `snapshots` is 20; there has to be one init scale.

    Args:
        x: inputs, an array (sample, input); or a dataset by its name or as a mapping.
        y: targets, an array (sample, output); None beside a dataset.
        pathways: number of pathways to find, a positive whole number.
        controls: whether to do the same from the gates of the start and of the end alone.
        **asked: all other arguments of `specify`.

    Returns:
        The gates (`gating.gates`, (pathway, sample)), the training of the ReLU networks and of
        their imitation, and how far these are apart (`output_error`, `loss_gap`).

    Raises:
        UserError: as `specify`, or `reln.find.find_reln`.

    Example:
        >>> import numpy as np
        >>> import neuralrace as nr
        >>> x, y = np.eye(4), np.diag([4.0, 3, 2, 1])
        >>> options = {"hidden": [40], "init_scales": [0.01], "seeds": 2, "controls": False}
        >>> reln = nr.find_reln(x, y, pathways=4, **options)
        >>> reln.gating.gates.shape  # (pathway, sample)
        (4, 4)
        >>> reln.output_error.shape  # (init_scale, seed, snapshot)
        (1, 2, 21)
    """
    warn_of_environment()
    _whole("pathways", pathways)
    if not {"network", "gates"} & asked.keys():
        asked = {"activation": "relu"} | asked
    asked = {"snapshots": 20} | asked
    cell = specify(x, y, **asked)
    with _by_argument(asked.get("network")):
        return find.find_reln(cell.only(Ensemble), pathways, cell.record.snapshots, controls)


@_with_arguments_of_specify
def reduce_race(x: Any, y: Any = None, **asked: Any) -> xr.Dataset:
    """The neural race reduction of a network with given gates: a number for each edge and mode.

    When absent, `init` is "aligned", so that init scales are strengths of edges, and `seeds` is 1.

    Args:
        x: inputs, an array (sample, input); or a dataset by its name or as a mapping.
        y: targets, an array (sample, output); None beside a dataset.
        **asked: all other arguments of `specify`.

    Returns:
        `strength` (init_scale, seed, time, edge, mode) and `loss` (init_scale, seed, time) along
        gradient-flow `time` in units of tau, and what the pathways learn from: `s` (pathway, mode)
        and `d` (pathway, other_pathway, mode). `violation` is the share of correlations that lies
        off the common modes, as `spec` an attribute.

    Raises:
        UserError: as `specify`; a network without given gates, pathways without common modes, or a
            start that is not aligned with them.

    Source: Saxe, Sodhani, Lewallen 2022, "The Neural Race Reduction", gradient flow reduction.

    Example:
        >>> import numpy as np
        >>> import neuralrace as nr
        >>> senses = {
        ...     "name": "graph",
        ...     "nodes": {"eye": 2, "ear": 2, "hidden": 8, "name": 2},
        ...     "edges": [["eye", "hidden"], ["ear", "hidden"], ["hidden", "name"]],
        ...     "gates": {"eye": [1, 0], "ear": [0, 1]},
        ... }
        >>> seen_or_heard = {
        ...     "name": "table",
        ...     "x": np.eye(4),  # two things seen, then the same two heard
        ...     "y": [[3, 0], [0, 1], [3, 0], [0, 1]],
        ...     "contexts": [0, 0, 1, 1],
        ... }
        >>> race = nr.reduce_race(seen_or_heard, network=senses, init_scales=[0.05])
        >>> end = race["strength"].isel(init_scale=0, seed=0, time=-1)
        >>> (end.sel(edge="eye->hidden") * end.sel(edge="hidden->name")).values.round(1).tolist()
        [3.0, 1.0]
    """
    warn_of_environment()
    asked = {"init": "aligned", "seeds": 1} | asked | {"theory": ["reduction"]}
    cell = specify(x, y, **asked)
    with _by_argument(asked.get("network")):
        problem = Problem(cell, record_steps(cell)[0])
        effective = problem.wiring.effective
        start = aligned_strengths(effective, problem.weights, ALIGNED)
        path = reduction_flow(problem.time, effective, start)
    graph = effective.architecture
    names = ["->".join(pathway.nodes) for pathway in graph.pathways]
    runs = ("init_scale", "seed", "time")
    return xr.Dataset(
        {
            "strength": ((*runs, "edge", "mode"), path),
            "loss": (runs, problem.as_trained(reduction_loss(effective, path))),
            "s": (("pathway", "mode"), effective.modes.s),
            "d": (("pathway", "other_pathway", "mode"), effective.modes.d),
        },
        {
            "init_scale": list(cell.init_scales),
            "seed": list(cell.seed_numbers),
            "time": problem.time,
            "edge": [graph.edge_name(edge) for edge in range(len(graph.edges))],
            "mode": np.arange(1, effective.modes.s.shape[1] + 1),
            "pathway": names,
            "other_pathway": names,
        },
        {"spec": cell.canonical(), "violation": effective.modes.violation},
    )


# Arguments as a configuration -----------------------------------------------------------------


def _dataset(x: Any, y: Any) -> Any:
    """A dataset as a configuration names it, or a table of two arrays."""
    if isinstance(x, str | Mapping):
        if y is not None:
            name = x if isinstance(x, str) else x.get("name", dict(x))
            raise UserError(f"y: is given beside the dataset {name!r}; leave it out")
        return _named(x)
    if y is None:
        raise UserError("y: is missing: give the target of each sample, (sample, output)")
    return {"name": "table", "x": _samples("x", x), "y": _samples("y", y)}


def _samples(name: str, values: Any) -> list[list[float]]:
    """Inputs or targets as a configuration has them: a row for each sample."""
    array = _matrix(name, values, f"(sample, {'input' if name == 'x' else 'output'})")
    if not array.any():
        raise UserError(f"{name}: all numbers are 0: there is nothing to learn; give others")
    if not SMALLEST <= (largest := np.abs(array).max()) <= 1 / SMALLEST:
        raise UserError(
            f"{name}: the largest number is {largest:.1e}, and products of such numbers are out of "
            f"range; scale it to between {SMALLEST:.0e} and {1 / SMALLEST:.0e}"
        )
    return array.tolist()


def _matrix(name: str, values: Any, axes: str) -> np.ndarray:
    """An array of any library, or nested lists, as finite numbers along two axes."""
    kind = type(values).__name__
    if np.ma.is_masked(values):
        raise UserError(f"{name}: {kind} with masked entries; leave those rows out")
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            raise TypeError
        with np.errstate(over="ignore"):  # of longer numbers, to be told as not finite
            array = array.astype(float)
    except (TypeError, ValueError, RuntimeError):
        raise UserError(
            f"{name}: {kind} with rows of unequal length, or entries that are no real numbers; "
            f"give an array {axes} of real numbers"
        ) from None
    if array.ndim != 2 or not array.size:
        raise UserError(
            f"{name}: has shape {array.shape}; give an array with two axes {axes}, as "
            f"{name}.reshape({len(array) if array.ndim else 1}, -1) makes of numbers by row"
        )
    if odd := int((~np.isfinite(array)).sum()):
        raise UserError(f"{name}: {odd} numbers are not finite; leave those rows out")
    return array


def _network(network: Any, hidden: Any, activation: str, gates: Any) -> Any:
    """A network as a configuration has it."""
    if network is not None:
        if hidden is not None or gates is not None or activation != "linear":
            raise UserError("network: says all; leave hidden, activation and gates out beside it")
        return _named(network)
    if hidden is None:
        raise UserError("hidden: is missing: give the units of each hidden layer, such as [16]")
    if gates is None:
        return {"name": "layered", "hidden": hidden, "activation": activation}
    if activation != "linear":
        raise UserError(f"activation: {activation!r}: gated pathways are linear; leave it out")
    return {"name": "gated", "hidden": hidden, "gates": _gates(gates)}


def _gates(gates: Any) -> Any:
    """A gating scheme as a configuration has it."""
    if isinstance(gates, str | Mapping):
        return _named(gates)
    rows = _matrix("gates", gates, "(pathway, sample)")
    if odd := int(((rows < 0) | (rows > 1)).sum()):
        raise UserError(f"gates: {odd} values are not between 0, closed, and 1, open; give others")
    return {"name": "listed", "rows": rows.tolist()}


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def _cell(asked: Mapping[str, Any]) -> Cell:
    """The cell of a configuration that holds it alone."""
    paper, experiment = PATH
    raw = {key: json.loads(_text(key, value)) for key, value in asked.items()}
    return read_plan({"experiments": {paper: {experiment: raw}}}, {}).cells[NAME]


def _text(key: str, value: Any) -> str:
    """An argument as JSON: arrays of any library as lists, all else that it does not know as text.

    Raises:
        UserError: it cannot be written down.
    """
    try:
        return json.dumps(value, default=lambda v: v.tolist() if hasattr(v, "tolist") else str(v))
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(
            f"{key}: {error}; give names, numbers, lists, and mappings with names as keys"
        ) from None


@contextmanager
def _by_argument(network: Any) -> Iterator[None]:
    """Messages name arguments in place of the keys of a configuration."""
    try:
        yield
    except UserError as error:
        lines = _as_arguments(str(error), network).splitlines()
        if (more := len(lines) - MOST_LINES) > 1:
            lines = [*lines[:MOST_LINES], f"and {more} more lines like these"]
        raise UserError("\n".join(lines)) from None


def _as_arguments(message: str, network: Any) -> str:
    """A message about a configuration with arguments in place of its keys."""
    keys = {
        rf"^configuration: experiments\.{'.'.join(PATH)}(\.|: )": "",
        r"\btraining\.(?=learning_rate|steps|optimiser|loss|batch)": "",
        r"\brecord\.(?=observables|snapshots)": "",
        r"\bdataset\.(?=[xy]\b)": "",
        r"^dataset\.name: 'table'": "x: an array",
        r"^dataset\b": "x",
        r"\bsolutions(?=\b(?! have))": "theory",
        r", or say by memory_mb what machines have": "",
    } | ({} if network is not None else {r"\bnetwork\.(?=hidden|activation|gates)": ""})
    for key, name in keys.items():
        message = re.sub(key, name, message, flags=re.MULTILINE)
    return message


# What is chosen -------------------------------------------------------------------------------


def _standard(cell: Cell, metrics: Any) -> list[str]:
    """What is recorded when nothing is said: the standard, and what metrics need."""
    chosen = [
        name
        for name, more in STANDARD.items()
        if not unmet(cell, f"{OBSERVABLES[name].declaration.requires} {more}")
    ]
    names = metrics if isinstance(metrics, list | tuple) else ()  # else refused by validation
    for metric in (name for name in names if isinstance(name, str)):
        wanted = METRICS[metric].declaration.observables if metric in METRICS else ""
        for names in (each.split("|") for each in wanted.split()):
            if not set(names) & set(chosen):
                fitting = [n for n in names if not unmet(cell, OBSERVABLES[n].declaration.requires)]
                chosen.append((fitting or names)[0])
    return chosen


def _records(records: Any, snapshots: Any, steps: Any) -> int:
    """Entries of the time axis that fit: they divide the steps, and snapshots divide them.

    Raises:
        UserError: a number that is none, more snapshots than entries, or steps that only a few
            entries divide.
    """
    for name, value in {"records": records, "snapshots": snapshots, "steps": steps}.items():
        if name != "steps" or value is not None:
            _whole(name, value)
    most = int(min(records, steps or records))
    if snapshots > most:
        raise UserError(f"snapshots: {snapshots}: give at most one for each record, {most}")
    most -= most % int(snapshots)
    for fitting in range(most, ceil(most / FEWER) - 1, -int(snapshots)):
        if steps is None or steps % fitting == 0:
            return fitting
    near = max(1, round(steps / most)) * most
    raise UserError(
        f"steps: {steps}: no number of records from {ceil(most / FEWER)} to {most} divides it and "
        f"has {snapshots} as a divisor; use {near}, or give records"
    )


def _whole(name: str, value: Any) -> None:
    """Refuses what is no positive whole number."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise UserError(f"{name}: {value!r}: expected a positive whole number")


def _refuse_to_choose(cell: Cell, missing: Sequence[str]) -> None:
    """Refuses a choice that there is no theory for."""
    steps = "" if [*missing] == ["init_scales"] else "full_batch gradient_flow"
    if wrong := unmet(
        cell, f"linear|relu trained_readout squared_error {steps} domains_spelled_out"
    ):
        one, all_ = {1: ("it", "it"), 2: ("them", "both")}.get(len(missing), ("them", "all"))
        raise UserError(
            f"{', '.join(missing)}: theory cannot choose {one} here; give {all_}, or {wrong}"
        )


def _small_scale(cell: Cell) -> float:
    """The init scale that theory chooses, for a cell whose init scale is 1."""
    problem = Problem(cell, np.arange(1))
    return float(f"{pace.small_scale(problem.data, _pathways(problem)):.2g}")


def _pace(cell: Cell, learning_rate: float | None, steps: int | None) -> tuple[float, int]:
    """Learning rate and steps; of those that are not given, the choice of theory."""
    problem = Problem(cell, np.arange(1))
    data, weights, records = problem.data, problem.weights, cell.training.steps
    wired = not unmet(cell, "given_gates")
    levels = problem.wiring.architecture.levels if wired else range(len(weights))
    norms = [np.linalg.norm(w, 2, axis=(-2, -1)) for w in weights]
    layers = [
        np.stack([norm for norm, at in zip(norms, levels, strict=True) if at == level], axis=-1)
        for level in range(max(levels) + 1)
    ]
    unit = cell.training.flow_step(len(data.x))
    if learning_rate is None:
        learning_rate = float(f"{pace.flow_step(data, layers) / unit:.2g}")
    else:
        unit /= cell.training.learning_rate
    if steps is None:
        time = pace.learning_time(data, _pathways(problem))
        steps = ceil(time / (unit * learning_rate) / records) * records
    return learning_rate, steps


def _pathways(problem: Problem) -> list[pace.Pathway]:
    """What each pathway learns from, and its weights at the smallest init scale."""
    cell, data = problem.ensemble, problem.data
    weights = [w[int(np.argmin(cell.init_scales))] for w in problem.weights]
    if unmet(cell, "given_gates"):
        # by symmetry of the law, ReLU units are open on each sample half of the time
        share = 0.5 ** len(cell.layered.hidden) if unmet(cell, "linear") else 1.0
        return [(share * data.sigma_yx, share * data.sigma_xx, weights)]
    effective = problem.wiring.effective
    return [
        (effective.sigma_yx[p], effective.sigma_xx[p, p], [weights[e] for e in path.edges])
        for p, path in enumerate(effective.architecture.pathways)
        if (p, p) in effective.sigma_xx
    ]


def _solved(
    x: Any, y: Any, theory: Theory, asked: dict[str, Any], tell: Callable[..., None]
) -> tuple[Cell, dict[str, Arrays], str]:
    """The cell with its theory, what each solution gives, and why others were left out."""
    automatic = isinstance(theory, str)
    if automatic and theory != "auto":
        raise UserError(f"theory: {theory!r}: give 'auto', a list of names or None")
    # what can be measured may rest on what can be solved
    first: dict[str, Any] = {"metrics": ()} if automatic else {"theory": theory}
    cell = specify(x, y, **asked | first)
    chosen = _chosen(cell, asked)
    if chosen:
        tell("chosen: " + ", ".join(f"{name}={value}" for name, value in chosen.items()), True)
    answers: dict[str, Arrays] = {}
    left_out: dict[str, list[str]] = {}
    problem = Problem(cell, record_steps(cell)[0])
    for name in SOLUTIONS if automatic else cell.solutions:
        needs = SOLUTIONS[name].declaration.requires
        if automatic and (wrong := unmet(cell, needs, data=True)):
            of_network = [n for n in needs.split() if {*n.split("|")} & OF_THE_NETWORK]
            if not unmet(cell, " ".join(of_network)):  # others are for other networks
                left_out.setdefault(str(wrong), []).append(name)
            continue
        tell(f"solving {name}")
        try:
            answers[name] = SOLUTIONS[name].load()(problem)
        except RuntimeError as error:  # the solver gives up
            if not automatic:
                why = str(error).removeprefix("solutions: ")
                raise UserError(f"theory: {name!r}: {why}; leave it out") from error
            left_out.setdefault(str(error).removeprefix("solutions: "), []).append(name)
    network = asked.get("network")
    lines = [
        f"{', '.join(names)}: {_as_arguments(why, network)}" for why, names in left_out.items()
    ]
    if automatic and not answers:
        lines.insert(0, _as_arguments(_nothing_solved(cell), network))
        tell(lines[0], True)
    asked = asked | chosen | {"theory": [*answers]}
    return specify(x, y, **asked), answers, "\n".join(lines)


def _chosen(cell: Cell, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What was chosen for a cell: all that was not given, and entries of time where others fit."""
    missing = [name for name in CHOSEN if asked.get(name) is None]
    values = {"init_scales": [*cell.init_scales], **vars(cell.training)}
    chosen = {name: values[name] for name in missing}
    records = cell.training.steps // cell.record.every
    wanted = asked.get("records", signature(specify).parameters["records"].default)
    return chosen if records == wanted else chosen | {"records": records}


def _nothing_solved(cell: Cell) -> str:
    """One line on what there is where no theory was solved."""
    if not unmet(cell, "layered relu"):
        return FOR_RELU
    why = unmet(cell, "linear") or "see left_out for each"
    return f"theory: none is solved for this network; {why}"


def _teller(progress: Any) -> Callable[..., None]:
    """What prints a line, or nothing where no progress is wanted."""
    if not isinstance(progress, bool):
        raise UserError(f"progress: {progress!r}: give True or False")
    return _tell if progress else lambda *_: None


def _tell(line: str, done: bool = False) -> None:
    """A line on stderr.

    In a terminal and in a notebook it takes the place of the last one, unless that was done.
    """
    start, end = "", "\n"
    notebook = type(sys.stderr).__module__.startswith("ipykernel")
    if notebook or sys.stderr.isatty():
        width = get_terminal_size().columns - 1  # a line that wraps could not be rewritten
        line = f"{line[:width]:{width}}"  # blanks over what is left of a longer one
        start, end = "\r", "\n" if done else ""
    print(f"{start}{line}", end=end, file=sys.stderr, flush=True)
