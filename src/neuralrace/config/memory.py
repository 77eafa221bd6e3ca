"""Estimated memory of a cell, from its specification alone.

Planning refuses a cell that cannot fit, before anything is loaded or allocated. Cluster jobs
request this much memory. The trainer checks what the compiled program needs before it runs it; see
`neuralrace.training.memory`.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from neuralrace.config.cell import Cell, Ensemble
from neuralrace.config.variables import declared_variables
from neuralrace.datasets.base import Sizes
from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel
from neuralrace.networks.base import Arithmetic
from neuralrace.training.memory import COPIES

PROCESS_MB = 700
"""Megabytes of a process that has imported everything."""


def estimate_mb(ensemble: Ensemble, run: Arithmetic, sizes: Sizes) -> int:
    """Estimated memory of a process that trains an ensemble, in megabytes.

    Args:
        ensemble: its specification.
        run: arithmetic of one run.
        sizes: sizes of the dataset.
    """
    return PROCESS_MB + int(4 * numbers(ensemble, run, sizes) * 8 / 1e6)


def too_large(cell: Cell, limit: int) -> UserError | None:
    """An error about the largest size in a cell that cannot fit into memory; None if it can.

    This is a lower bound: the trainer checks the whole of its compiled program.

    Args:
        cell: its specification.
        limit: bytes of memory of the machine that trains.

    Raises:
        UserError: gates or trained pairs do not fit the domains; or a dataset cannot be loaded
            whose sizes or pathways are not known without loading it.
    """
    sizes = cell.dataset.sizes
    counts = (
        lambda: examples(cell, sizes),
        lambda: COPIES * recorded(cell, sizes),
        # last, as counting weights may load the dataset
        lambda: numbers(
            cell, cell.resolved.arithmetic(cell.dataset, sizes, cell.init, cell.training), sizes
        ),
    )
    for count in counts:
        try:
            needed = count() * (8 if cell.precision == "float64" else 4)
        except OverflowError:  # more than the largest float
            needed = math.inf
        if needed > limit:
            key, value, _ = max(_sizes(cell), key=lambda size: size[2])
            remedy = "record less often" if key == "record.every" else "use less"
            return UserError(
                f"needs {needed / 1e9:.3g} GB of memory, and the machine has {limit / 1e9:.3g} GB",
                key=key,
                value=value,
                remedy=f"{remedy}, or say by memory_mb what machines have",
            )
    return None


def numbers(ensemble: Ensemble, run: Arithmetic, sizes: Sizes) -> float:
    """Numbers in memory at once: weights and gradients, examples, and records."""
    runs = len(ensemble.init_scales) * ensemble.seeds
    weights = runs * (3 * run.weights + run.step ** (2 / 3))
    return weights + examples(ensemble, sizes) + recorded(ensemble, sizes)


def examples(ensemble: Ensemble, sizes: Sizes) -> float:
    """Numbers in inputs and targets of all tasks, and of the batches of one step."""
    batch = ensemble.training.batch
    drawn = 0 if batch.whole else ensemble.seeds * batch.samples(sizes.samples)
    samples = sizes.samples * len(ensemble.dataset.phases)
    return float(samples + drawn) * (sizes.inputs + sizes.outputs)


def recorded(ensemble: Ensemble, sizes: Sizes) -> float:
    """Numbers in the records of all runs; dimensions of unknown size count as 1."""
    known = {
        "time": ensemble.training.steps // ensemble.record.every + 1,
        "snapshot": ensemble.record.snapshots + 1,
        "sample": sizes.samples,
        "input": sizes.inputs,
        "output": sizes.outputs,
        "mode": min(sizes.inputs, sizes.outputs),
    }
    variables = declared_variables("trajectory", ensemble.record.observables).values()
    per_run = sum(math.prod(known.get(dim, 1) for dim in variable.dims) for variable in variables)
    return float(len(ensemble.init_scales) * ensemble.seeds * per_run)


def _sizes(cell: Cell) -> Iterator[tuple[str, int, int]]:
    """Keys that set a size: dotted key, value, and the number of things that it makes."""
    yield "seeds", cell.seeds, cell.seeds
    yield "record.every", cell.record.every, cell.training.steps // cell.record.every
    parts = {"dataset": cell.dataset, "network": cell.network}
    for key, part in (parts | {"training.batch": cell.training.batch}).items():
        for inner, number in _integers(part):
            yield key + inner, number, number


def _integers(value: Any) -> Iterator[tuple[str, int]]:
    """All integers inside a value with their keys, such as `.hidden.0`, except seeds."""
    if isinstance(value, ConfigModel | Mapping | tuple):
        items = enumerate(value) if isinstance(value, tuple) else dict(value).items()
        for name, item in items:
            if name != "seed":
                yield from ((f".{name}{key}", number) for key, number in _integers(item))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield "", value
