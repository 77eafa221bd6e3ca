"""Specification of a cell from Python arguments."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from neuralrace.api.arguments import by_argument, checked_arguments
from neuralrace.api.arrays import finite_matrix, matching, targets
from neuralrace.api.choices import (
    CHOSEN,
    MOST_SECONDS,
    MOST_STEPS,
    check_choosable,
    default_observables,
    fine_rate,
    fitting_records,
    learned_maps,
    needed_steps,
    small_scale,
)
from neuralrace.api.weights import are_weights, hidden_units, initial_arrays
from neuralrace.config.cell import Cell
from neuralrace.config.cost import estimate_cost
from neuralrace.config.load import read_plan
from neuralrace.datasets.file import File
from neuralrace.datasets.given import Parameters, give
from neuralrace.datasets.held_out import check_keys
from neuralrace.errors import UserError

Named = str | Mapping[str, Any]
"""A name, or the mapping that a configuration has in its place."""
SEEDS = 5
"""Runs at each init scale."""
PAPER, EXPERIMENT = "python", "simulate"
CELL_NAME = f"{PAPER}/{EXPERIMENT}/main"
"""Identifier of the cell."""
MOST_WRITTEN = 10_000
"""Most numbers of inputs and targets that a specification holds; of more it holds shapes and
checksum."""
SMALLEST = 1e-50
"""Smallest allowed maximum of inputs and targets: a product of eight such numbers is in range."""


@checked_arguments()
def specify(
    x: Any,
    y: Any = None,
    *,
    hidden: Sequence[int] | None = None,
    activation: str = "linear",
    gates: Any = None,
    network: Mapping[str, Any] | None = None,
    init: Any = "normal",
    init_scales: Sequence[float] | None = None,
    seeds: int | None = None,
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
    x_test: Any = None,
    y_test: Any = None,
    test: float | None = None,
) -> Cell:
    """Builds the specification of a cell, as a configuration would; nothing is trained.

    Args:
        x: inputs, an array (sample, input) of finite real numbers, a row for each sample: of NumPy,
            SciPy, pandas, polars, xarray, JAX or PyTorch, or nested lists. Or a dataset with its
            targets, in the place of both: by its name, such as "hierarchy", of those in
            `neuralrace list datasets`, or as a mapping of name and parameters, such as {"name":
            "modes", "singular_values": [3, 1], "inputs": 4, "outputs": 3}; see
            `neuralrace keys dataset`.
        y: targets, an array (sample, output) of finite real numbers, with as many rows as `x`; for
            classes, a column for each class with 1 or 0. A vector of floats is a single output.
            None with a dataset.
        hidden: units of each hidden layer, first layer first, such as [16]; [] for a single layer
            of weights. With `gates`, units of each pathway.
        activation: activation of the hidden units: linear, relu, erf, sigmoid or tanh. With
            `gates`, linear.
        gates: for a gated network of parallel pathways: an array (pathway, sample) with values
            from 0, closed, to 1, open; or a gating scheme by its name or as a mapping.
        network: any other network, as a mapping, in place of `hidden`, `activation` and `gates`.
        init: initialiser, by its name or as a mapping; "normal" draws independent normal weights
            with the init scale as their standard deviation. Or the initial weights: a list of
            arrays (out, in), first layer first; a state dict of PyTorch, parameters of Flax, or the
            list that Keras' `get_weights` gives. Biases must be zero. `hidden` may then be absent.
        init_scales: factors on every initial weight; there are `seeds` runs for each. When absent,
            theory chooses one (`theory.pace.small_scale`): modes start from at most 1% of their
            final strength. Weights that `init` gives keep their scale: it is 1.
        seeds: number of runs at each init scale; runs of one seed start in the same directions. 5
            when absent, and 1 with weights that `init` gives.
        optimiser: optimiser, by its name or as a mapping; "sgd" is plain gradient descent.
        loss: loss function: "squared_error", half the squared error of a sample, averaged over
            samples; "mse", the mean over samples and outputs, as `MSELoss` of PyTorch;
            "cross_entropy"; or a mapping such as {"name": "squared_error", "normalisation": "sum"}.
        batch: samples of each step: "full" for all, or a mapping.
        learning_rate: step size. When absent, theory chooses it (`theory.pace.flow_step`): steps
            change no rate of learning by more than 1%.
        steps: gradient steps. When absent, theory chooses them (`theory.pace.learning_time`): the
            slowest mode comes within 1% of its final strength at the smallest init scale; or as
            many as take about five minutes (`choices.MOST_SECONDS`).
        records: largest number of entries of the time axis after its first. It is reduced, to at
            least a quarter, until it divides `steps` and is a multiple of `snapshots`.
        snapshots: the same for large variables: weights and outputs.
        observables: names of recorded variables in addition to the loss. When absent, the loss on
            test samples if there are any ("test_loss"), mode strengths of linear networks
            ("mode_strength"), errors of trained and untrained pairs of domains ("pair_error"), and
            all that the metrics require; name these to keep them.
        metrics: names of metrics, which are computed at the end.
        theory: names of theoretical solutions.
        precision: floating-point precision of training, "float64" or "float32".
        x_test: inputs of test samples, which are not trained on, with the columns of `x`. Their
            loss is recorded as `test_loss`, beside the training loss `loss`.
        y_test: targets of the test samples, with the columns of `y`.
        test: share of the samples to test on, in place of `x_test` and `y_test`, such as 0.3: they
            are drawn at random, the same ones in all runs, and training has the others.

    Raises:
        UserError: an argument is unknown, of the wrong type or out of range, or does not fit the
            others.

    Example:
        >>> import neuralrace as nr
        >>> cell = nr.specify("hierarchy", hidden=[16], init_scales=[0.01], records=100)
        >>> cell.training.steps % 100, cell.record.observables
        (0, ('mode_strength',))
    """
    metrics, theory, observables = (
        [names] if isinstance(names, str) else names for names in (metrics, theory, observables)
    )
    with python_errors(network):
        records = fitting_records(records, snapshots, steps)
        training: dict[str, Any] = {
            "learning_rate": 1.0 if learning_rate is None else learning_rate,
            "steps": records if steps is None else int(steps),
            "optimiser": _by_name(optimiser),
            "loss": _by_name(loss),
            "batch": _by_name(batch),
        }
        record: dict[str, Any] = {"every": training["steps"] // records, "snapshots": snapshots}
        dataset = dataset_of(x, y, x_test, y_test, test)
        if isinstance(dataset, Parameters):
            samples = len(dataset.given.variables["x"][1])
        else:
            samples = None if y is None else len(dataset["x"])
        tested = {"test", "x_test"} & dataset.keys()
        if tested and gates is not None and not isinstance(gates, str | Mapping):
            raise UserError(
                "are those of single samples, and test samples have none",
                key="gates",
                remedy="give a gating scheme that depends on inputs, or leave out test samples",
            )
        if are_weights(init):
            init, hidden, init_scales, seeds = _given_weights(
                init, dataset, hidden, init_scales, seeds, network is None and gates is None
            )
        specification = {
            "dataset": dataset,
            **plain_arguments(
                network=_network(network, hidden, activation, gates, samples),
                init=_by_name(init),
                init_scales=[1.0] if init_scales is None else init_scales,
                seeds=SEEDS if seeds is None else seeds,
                training=training,
                record=record,
                precision=precision,
            ),
        }
        cell = _validated(specification)
        choices = dict(zip(CHOSEN, (init_scales, learning_rate, steps), strict=True))
        if absent := [name for name, value in choices.items() if value is None]:
            check_choosable(cell, absent, network)
            maps = learned_maps(cell)
        # copies need no validation, which reads all numbers of the data; the result is validated
        if init_scales is None:
            scale = small_scale(cell, maps)
            specification["init_scales"] = [scale]
            cell = cell.model_copy(update={"init_scales": (scale,)})
        if learning_rate is None:
            training["learning_rate"] = fine_rate(cell, maps)
            cell = _with_training(cell, training, record)
        if steps is None:
            needed = min(needed_steps(cell, maps).steps, MOST_STEPS)
            record["every"] = ceil(needed / records)
            training["steps"] = record["every"] * records
            cell = _with_training(cell, training, record)
            affordable = MOST_SECONDS / estimate_cost(cell).train
            if affordable < 1:
                record["every"] = max(1, int(affordable * record["every"]))
                training["steps"] = record["every"] * records
        record["observables"] = (
            default_observables(cell, metrics) if observables is None else observables
        )
        solutions, metrics = (() if names is None else names for names in (theory, metrics))
        specification |= plain_arguments(
            training=training, record=record, solutions=solutions, metrics=metrics
        )
        return _validated(specification)


@contextmanager
def python_errors(network: Any) -> Iterator[None]:
    """Errors inside name arguments of `specify` in place of keys; `network` is that argument."""
    try:
        yield
    except UserError as error:
        raise by_argument(error, f"experiments.{PAPER}.{EXPERIMENT}", network) from None


def _by_name(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def dataset_of(x: Any, y: Any, x_test: Any = None, y_test: Any = None, test: Any = None) -> Any:
    """These arguments as the parameters of one dataset, which may stand for `x` alone.

    Raises:
        UserError: they are neither arrays that fit each other nor a dataset.
    """
    if isinstance(x, Parameters):
        return x
    # a dataset of xarray and a sparse array of SciPy are mappings, too
    if isinstance(x, str | Mapping) and not (hasattr(x, "data_vars") or hasattr(x, "nnz")):
        if isinstance(x, str) and Path(x).suffix.lower() in File.readers:
            remedy = f"give {{'name': 'file', 'path': {x!r}}} to read it"
            raise UserError("is a file path", key="x", value=x, remedy=remedy)
        if isinstance(x, Mapping) and "name" not in x:
            raise UserError(
                f"is a {type(x).__name__} without the key 'name' of a dataset",
                key="x",
                remedy="give x and y as two arrays, or a dataset such as {'name': 'hierarchy'}",
            )
        if y is not None:
            name = x if isinstance(x, str) else x["name"]
            raise UserError(
                f"must be absent, as the dataset {name!r} has targets",
                key="y",
                remedy="leave it out",
            )
        dataset = plain_arguments(dataset=_by_name(x))["dataset"]
        if x_test is None and y_test is None and test is None:
            return dataset
        if x_test is not None or y_test is not None or dataset["name"] not in ("table", "file"):
            key = "test" if test is not None else "x_test" if x_test is not None else "y_test"
            problem = f"is for arrays, and x is the dataset {dataset['name']!r}"
            raise UserError(problem, key=key, remedy="leave it out")
        return dataset | plain_arguments(test=test)
    if y is None:
        remedy = "give targets (sample, output), or a dataset as x"
        raise UserError("is missing", key="y", remedy=remedy)
    inputs, outputs = finite_matrix("x", x, "(sample, input)"), targets(y)
    matching(inputs, outputs)
    for argument, array in (("x", inputs), ("y", outputs)):
        _check_size(argument, array)
    arrays = {"x": inputs, "y": outputs}
    check_keys(x_test, y_test, test)
    if x_test is not None:
        arrays["x_test"] = finite_matrix("x_test", x_test, "(sample, input)")
        arrays["y_test"] = targets(y_test, "y_test")
        for argument in ("x_test", "y_test"):
            _check_size(argument, arrays[argument])
    share = {} if test is None else plain_arguments(test=test)
    if sum(array.size for array in arrays.values()) <= MOST_WRITTEN:
        return {"name": "table"} | {n: array.tolist() for n, array in arrays.items()} | share
    axes = {"x": ("sample", "input"), "y": ("sample", "output")}
    axes |= {"x_test": ("test_sample", "input"), "y_test": ("test_sample", "output")}
    parameters = give("file", {name: (axes[name], array) for name, array in arrays.items()})
    parameters.update({name: name for name in arrays if name.endswith("_test")} | share)
    return parameters


def _given_weights(
    init: Any, dataset: Any, hidden: Any, init_scales: Any, seeds: Any, layered: bool
) -> tuple[Parameters, Any, Any, int]:
    """Arguments `init`, `hidden`, `init_scales` and `seeds` for weights that `init` gives."""
    if seeds not in (None, 1):
        problem = "init gives the weights of one run, and all runs would be the same"
        raise UserError(problem, key="seeds", value=seeds, remedy="leave it out")
    probe = {"network": {"name": "layered", "hidden": [1]}, "init": {"name": "normal"}}
    probe |= {"init_scales": [1.0], "seeds": 1, "record": {"every": 1}}
    probe |= {"training": {"learning_rate": 1.0, "steps": 1}, "dataset": dataset}
    sizes = _validated(probe).dataset.sizes
    arrays = initial_arrays(init, sizes.inputs, sizes.outputs)
    units = {
        name: ((f"{name}_unit", f"{name}_input"), array.astype(float))
        for name, array in arrays.items()
    }
    return (
        give("file", units),
        hidden_units(arrays, hidden) if layered else hidden,
        [1.0] if init_scales is None else init_scales,
        1,
    )


def _check_size(argument: str, array: np.ndarray) -> None:
    if not array.any():
        problem = "all numbers are 0, so that there is nothing to learn"
        raise UserError(problem, key=argument, remedy="give others")
    if not SMALLEST <= (largest := max(array.max(), -array.min())) <= 1 / SMALLEST:
        raise UserError(
            f"the largest number is {largest:.1e}, and products of such numbers are out of range",
            key=argument,
            remedy=f"scale it to between {SMALLEST:.0e} and {1 / SMALLEST:.0e}",
        )


def _network(network: Any, hidden: Any, activation: str, gates: Any, samples: int | None) -> Any:
    if network is not None:
        if hidden is not None or gates is not None or activation != "linear":
            raise UserError(
                "replaces hidden, activation and gates", key="network", remedy="leave them out"
            )
        return _by_name(network)
    if hidden is None:
        remedy = "give the units of each hidden layer, such as [16]"
        raise UserError("is missing", key="hidden", remedy=remedy)
    if gates is None:
        return {"name": "layered", "hidden": hidden, "activation": activation}
    if activation != "linear":
        problem = "gated pathways are linear"
        raise UserError(problem, key="activation", value=activation, remedy="leave it out")
    return {"name": "gated", "hidden": hidden, "gates": _gates(gates, samples)}


def _gates(gates: Any, samples: int | None) -> Any:
    if isinstance(gates, str | Mapping):
        return _by_name(gates)
    rows = finite_matrix("gates", gates, "(pathway, sample)")
    if odd := int(((rows < 0) | (rows > 1)).sum()):
        problem = f"{odd} {'value is' if odd == 1 else 'values are'} not between 0, closed, and 1"
        raise UserError(f"{problem}, open", key="gates", remedy="give others")
    if samples is not None and rows.shape[1] != samples:
        transposed = "; did you mean gates.T?" if len(rows) == samples else ""
        raise UserError(
            f"has shape {rows.shape}, and there are {samples} samples",
            key="gates",
            remedy=f"give an array (pathway, sample), here (..., {samples}){transposed}",
        )
    return {"name": "listed", "rows": rows.tolist()}


def _with_training(cell: Cell, training: Mapping[str, Any], record: Mapping[str, Any]) -> Cell:
    """The cell with another learning rate, other steps and another recording interval."""
    changes = {key: training[key] for key in ("learning_rate", "steps")}
    parts = {
        "training": cell.training.model_copy(update=changes),
        "record": cell.record.model_copy(update={"every": record["every"]}),
    }
    return cell.model_copy(update=parts)


def _validated(specification: Mapping[str, Any]) -> Cell:
    return read_plan({"experiments": {PAPER: {EXPERIMENT: specification}}}, {}).cells[CELL_NAME]


def plain_arguments(**arguments: Any) -> dict[str, Any]:
    """Arguments as a configuration would have them: mappings, lists, texts and numbers."""
    return {key: json.loads(_as_json(key, value)) for key, value in arguments.items()}


def _as_json(argument: str, value: Any) -> str:
    """An argument as JSON: arrays of any library as lists, unknown types as text."""
    try:
        return json.dumps(value, default=lambda v: v.tolist() if hasattr(v, "tolist") else str(v))
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(
            str(error),
            key=argument,
            remedy="give names, numbers, lists, and mappings with names as keys",
        ) from None
