"""Experiments in a few lines of Python: what a configuration says, as arguments.

The same `Cell` is made from them, by the same validation, and trained, solved and measured by the
same code as in the workflow.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from math import ceil
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, Literal, TypeVar

import numpy as np
import xarray as xr

from neuralrace.environment import warn_of_influences
from neuralrace.errors import UserError
from neuralrace.metrics.measure import metrics_dataset
from neuralrace.needs import unmet
from neuralrace.plan import read_plan
from neuralrace.records.axes import record_steps
from neuralrace.records.results import CellResults
from neuralrace.records.theory import theory_dataset
from neuralrace.records.trajectory import trajectory_dataset
from neuralrace.registry import METRICS, OBSERVABLES, SOLUTIONS
from neuralrace.reln import find
from neuralrace.solutions.gated import ALIGNED
from neuralrace.solutions.problem import Arrays, Problem
from neuralrace.spec import Cell, Ensemble, SolvedEnsemble
from neuralrace.theory import pace
from neuralrace.theory.reduction import aligned_strengths, reduction_flow, reduction_loss
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


def specify(
    x: Any,
    y: Any = None,
    *,
    hidden: Sequence[int] | None = None,
    activation: str = "linear",
    gates: Any = None,
    network: Mapping[str, Any] | None = None,
    init: Named = "normal",
    init_scales: Sequence[float],
    seeds: int = 5,
    optimiser: Named = "sgd",
    loss: Named = "squared_error",
    batch: Named = "full",
    learning_rate: float | None = None,
    steps: int | None = None,
    records: int = 200,
    snapshots: int = 1,
    observables: Sequence[str] | None = None,
    metrics: Sequence[str] = (),
    theory: Sequence[str] = (),
    precision: str = "float64",
) -> Cell:
    """The cell that a configuration with these values gives; nothing is trained.

    Args:
        x: inputs, an array (sample, input); or a dataset by its name or as a mapping.
        y: targets, an array (sample, output), where x is an array.
        hidden: units of each hidden layer, `[]` for a single layer of weights; of each pathway
            where there are gates.
        activation: of the hidden layers, where there are no gates.
        gates: for pathways side by side: a gating scheme by its name or as a mapping, or an array
            (pathway, sample) with values in [0, 1].
        network: any other network, as a mapping, in place of `hidden`, `activation` and `gates`.
        init: initialisation law.
        init_scales: factors on every initial weight.
        seeds: number of runs at each init scale.
        optimiser: how gradients become steps.
        loss: what is minimised.
        batch: samples of a step.
        learning_rate: step size; when absent, by `theory.pace.flow_step`.
        steps: gradient steps; when absent, until `theory.pace.learning_time` at the smallest init
            scale, rounded up to a multiple of `records`.
        records: entries of the time axis after its first.
        snapshots: the same of large observables (weights, outputs); divides `records`.
        observables: what is recorded beside the loss; when absent, mode strengths of linear
            networks, errors of trained and untrained pairs of domains, and what the metrics need.
        metrics: what is measured.
        theory: what is solved.
        precision: arithmetic of training, `float64` or `float32`.

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
        for name, value in {"records": records, "snapshots": snapshots}.items():
            if not isinstance(value, int) or value < 1:
                raise UserError(f"{name}: {value!r}: expected a positive whole number")
        if records % snapshots:
            raise UserError(f"snapshots: {snapshots}: has to divide records, {records}")
        training: dict[str, Any] = {
            "learning_rate": 1.0 if learning_rate is None else learning_rate,
            "steps": records if steps is None else steps,
            "optimiser": _named(optimiser),
            "loss": _named(loss),
            "batch": _named(batch),
        }
        every = 1
        if isinstance(training["steps"], int):
            every, rest = divmod(training["steps"], records)
            if rest:
                raise UserError(
                    f"steps: {steps}: has to be a multiple of records, {records}; change one"
                )
        record: dict[str, Any] = {"every": max(every, 1), "snapshots": snapshots}
        asked: dict[str, Any] = {
            "dataset": _dataset(x, y),
            "network": _network(network, hidden, activation, gates),
            "init": _named(init),
            "init_scales": init_scales,
            "seeds": seeds,
            "training": training,
            "record": record,
            "precision": precision,
        }
        cell = _cell(asked)
        if learning_rate is None or steps is None:
            training["learning_rate"], training["steps"] = _pace(cell, learning_rate, steps)
            record["every"] = training["steps"] // records
        record["observables"] = _standard(cell, metrics) if observables is None else observables
        return _cell(asked | {"solutions": theory, "metrics": metrics})


def _spelt_out(function: F) -> F:
    """Shows the arguments of `specify` in place of `**asked`, for help and completion."""
    own = signature(function)
    shown = {**signature(specify).parameters, **own.parameters}
    del shown["asked"]
    vars(function)["__signature__"] = own.replace(parameters=list(shown.values()))
    return function


@_spelt_out
def simulate(
    x: Any, y: Any = None, *, theory: Theory = "auto", progress: bool = True, **asked: Any
) -> xr.DataTree:
    """Trains all runs, solves the theory that stands beside them, and measures both.

    Args:
        x: as of `specify`.
        y: likewise.
        theory: solutions by their names; `auto` for all that are for this ensemble and can be
            solved; None for none.
        progress: whether to tell on stderr what was chosen and how far training is.
        **asked: all other arguments of `specify`; it says what they mean.

    Returns:
        What files of the cell would hold, as its children `trajectory`, `theory` (where there is
        any) and `metrics`. Its attributes: `spec`, the canonical specification; `status`, which
        says how many runs diverged; `left_out`, why each other solution was left out, as JSON.

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
    warn_of_influences()
    tell = _tell if progress else lambda *_: None
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
    tree = xr.DataTree.from_dict(made, name=NAME.replace("/", "."))
    diverged = int((trained.diverged_at >= 0).sum())
    tree.attrs = {
        "spec": cell.canonical(),
        "status": f"{diverged} of {trained.diverged_at.size} runs diverged",
        "left_out": json.dumps(left_out),
    }
    return tree


@_spelt_out
def solve(
    x: Any, y: Any = None, *, theory: Theory = "auto", progress: bool = True, **asked: Any
) -> xr.Dataset:
    """Theory alone, without training.

    Args:
        x: as of `specify`.
        y: likewise.
        theory: as of `simulate`.
        progress: likewise.
        **asked: all other arguments of `specify`.

    Returns:
        The `theory` of `simulate`; its attribute `left_out` says why others were left out.

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
    warn_of_influences()
    with _by_argument(asked.get("network")):
        cell, answers, left_out = _solved(
            x, y, theory, asked, _tell if progress else lambda *_: None
        )
        if not answers:
            reasons = "".join(f"\n  {name}: {why}" for name, why in left_out.items())
            raise UserError(f"theory: {theory!r}: no solution is for this ensemble{reasons}")
        solved = theory_dataset(NAME, cell.only(SolvedEnsemble), answers)
    return solved.assign_attrs(left_out=json.dumps(left_out))


@_spelt_out
def find_reln(
    x: Any, y: Any = None, *, pathways: int, controls: bool = True, **asked: Any
) -> find.Reln:
    """The rectified linear network that imitates ReLU networks; see `reln.find.find_reln`.

    Args:
        x: as of `specify`.
        y: likewise.
        pathways: number of pathways to find.
        controls: whether to do the same from the gates of the start and of the end alone.
        **asked: all other arguments of `specify`; when absent, there are 20 `snapshots`, and
            without `network` or `gates` the `activation` is `relu`.

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
    warn_of_influences()
    if not {"network", "gates"} & asked.keys():
        asked = {"activation": "relu"} | asked
    asked = {"snapshots": 20} | asked
    cell = specify(x, y, **asked)
    with _by_argument(asked.get("network")):
        return find.find_reln(cell.only(Ensemble), pathways, cell.record.snapshots, controls)


@_spelt_out
def reduce(x: Any, y: Any = None, **asked: Any) -> xr.Dataset:
    """The neural race reduction of a network with given gates: a number for each edge and mode.

    Args:
        x: as of `specify`.
        y: likewise.
        **asked: all other arguments of `specify`; when absent, `init` is `aligned`, so that init
            scales are strengths, and there is one seed.

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
        >>> race = nr.reduce(seen_or_heard, network=senses, init_scales=[0.05])
        >>> end = race["strength"].isel(init_scale=0, seed=0, time=-1)
        >>> (end.sel(edge="eye->hidden") * end.sel(edge="hidden->name")).values.round(1).tolist()
        [3.0, 1.0]
    """
    warn_of_influences()
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
            raise UserError(f"y: is given beside the dataset {_named(x)['name']!r}; leave it out")
        return _named(x)
    if y is None:
        raise UserError("y: is missing: give the target of each sample, (sample, output)")
    return {"name": "table", "x": _rows("x", x), "y": _rows("y", y)}


def _rows(name: str, values: Any) -> list[list[float]]:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise UserError(
            f"{name}: {type(values).__name__} with rows of unequal length, or entries that are no "
            "numbers; give a row of as many numbers for each sample"
        ) from None
    if array.ndim != 2:
        raise UserError(
            f"{name}: has shape {array.shape}; give two axes, one row for each sample, as "
            "reshape(samples, -1) makes them"
        )
    if odd := int((~np.isfinite(array)).sum()):
        raise UserError(f"{name}: {odd} numbers are not finite; leave those samples out")
    if not array.any():
        raise UserError(f"{name}: all numbers are 0: there is nothing to learn; give others")
    return array.tolist()


def _network(network: Any, hidden: Any, activation: str, gates: Any) -> Any:
    """A network as a configuration has it."""
    if network is not None:
        if hidden is not None or gates is not None or activation != "linear":
            raise UserError("network: says all; leave hidden, activation and gates out beside it")
        return network
    if hidden is None:
        raise UserError("hidden: is missing: give the units of each hidden layer, such as [16]")
    if gates is None:
        return {"name": "layered", "hidden": hidden, "activation": activation}
    if activation != "linear":
        raise UserError(f"activation: {activation!r}: gated pathways are linear; leave it out")
    scheme = (
        _named(gates) if isinstance(gates, str | Mapping) else {"name": "listed", "rows": gates}
    )
    return {"name": "gated", "hidden": hidden, "gates": scheme}


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def _cell(asked: Mapping[str, Any]) -> Cell:
    """The cell of a configuration that holds it alone."""
    # arrays of any library become lists; all else that JSON does not know is told as text
    text = json.dumps(asked, default=lambda v: v.tolist() if hasattr(v, "tolist") else str(v))
    paper, experiment = PATH
    return read_plan({"experiments": {paper: {experiment: json.loads(text)}}}, {}).cells[NAME]


@contextmanager
def _by_argument(network: Any) -> Iterator[None]:
    """Mistakes are told with the arguments' names in place of the keys of a configuration."""
    keys = {
        rf"^configuration: experiments\.{'.'.join(PATH)}(\.|: )": "",
        r"\btraining\.(?=learning_rate|steps|optimiser|loss|batch)": "",
        r"\brecord\.(?=observables|snapshots)": "",
        r"\bdataset\.(?=[xy]\b)": "",
        r"^dataset\b": "x",
        r"\bsolutions(?=\b(?! have))": "theory",
        r", or say by memory_mb what machines have": "",
    } | ({} if network else {r"\bnetwork\.(?=hidden|activation|gates)": ""})
    try:
        yield
    except UserError as error:
        message = str(error)
        for key, name in keys.items():
            message = re.sub(key, name, message, flags=re.MULTILINE)
        raise UserError(message) from None


# What is chosen -------------------------------------------------------------------------------


def _standard(cell: Cell, metrics: Sequence[str]) -> list[str]:
    """What is recorded when nothing is said: the standard, and what metrics need."""
    chosen = [
        name
        for name, more in STANDARD.items()
        if not unmet(cell, f"{OBSERVABLES[name].declaration.needs} {more}")
    ]
    for metric in metrics:
        wanted = METRICS[metric].declaration.observables if metric in METRICS else ""
        for names in (each.split("|") for each in wanted.split()):
            if not set(names) & set(chosen):
                fitting = [n for n in names if not unmet(cell, OBSERVABLES[n].declaration.needs)]
                chosen.append((fitting or names)[0])
    return chosen


def _pace(cell: Cell, learning_rate: float | None, steps: int | None) -> tuple[float, int]:
    """Learning rate and steps; of those that are not given, the choice of theory."""
    if wrong := unmet(
        cell,
        "linear|relu trained_readout squared_error full_batch gradient_flow domains_spelled_out",
    ):
        raise UserError(
            f"learning_rate, steps: theory cannot choose them here; give both, or {wrong}"
        )
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
        smallest = int(np.argmin(cell.init_scales))
        weights = [w[smallest] for w in weights]
        if wired:
            effective = problem.wiring.effective
            pathways = [
                (effective.sigma_yx[p], effective.sigma_xx[p, p], [weights[e] for e in path.edges])
                for p, path in enumerate(effective.architecture.pathways)
                if (p, p) in effective.sigma_xx
            ]
        else:
            # by symmetry of the law, ReLU units are open on each sample half of the time
            share = 0.5 ** len(cell.layered.hidden) if unmet(cell, "linear") else 1.0
            pathways = [(share * data.sigma_yx, share * data.sigma_xx, weights)]
        time = pace.learning_time(data, pathways)
        steps = ceil(time / (unit * learning_rate) / records) * records
    return learning_rate, steps


def _solved(
    x: Any, y: Any, theory: Theory, asked: dict[str, Any], tell: Callable[..., None]
) -> tuple[Cell, dict[str, Arrays], dict[str, str]]:
    """The cell with its theory, what each solution gives, and why others were left out."""
    if isinstance(theory, str) and theory != "auto":
        raise UserError(f"theory: {theory!r}: give 'auto', a list of names or None")
    automatic = theory == "auto"
    # what can be measured may rest on what can be solved
    first: dict[str, Any] = {"metrics": ()} if automatic else {"theory": theory or ()}
    cell = specify(x, y, **asked | first)
    paced = ("learning_rate", "steps")
    chosen = {n: getattr(cell.training, n) for n in paced if asked.get(n) is None}
    if chosen:
        tell("chosen: " + ", ".join(f"{name}={value}" for name, value in chosen.items()), True)
    answers: dict[str, Arrays] = {}
    left_out: dict[str, str] = {}
    problem = Problem(cell, record_steps(cell)[0])
    for name in SOLUTIONS if automatic else cell.solutions:
        if wrong := unmet(cell, SOLUTIONS[name].declaration.needs, data=True):
            left_out[name] = wrong
            continue
        tell(f"solving {name}")
        try:
            answers[name] = SOLUTIONS[name].load()(problem)
        except RuntimeError as error:  # the solver gives up
            if not automatic:
                raise
            left_out[name] = str(error)
    asked = asked | chosen | {"theory": [*answers]}
    return specify(x, y, **asked), answers, left_out


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
