"""Estimated memory of a cell, from its specification alone.

What cannot fit is refused before anything is loaded or allocated; a cluster is asked for this
much. What the compiled program needs is checked before it runs: see `neuralrace.training.memory`.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from neuralrace.config.cell import Cell, Ensemble
from neuralrace.config.variables import declared_variables
from neuralrace.datasets.base import Sizes
from neuralrace.extensions.model import ConfigModel
from neuralrace.networks.base import Arithmetic
from neuralrace.training.memory import COPIES

Key = tuple[str, ...]
PROCESS_MB = 700
"""Megabytes of a process that has imported everything."""


def estimate_mb(ensemble: Ensemble, each: Arithmetic, sizes: Sizes) -> int:
    """Estimated memory of a process that trains an ensemble, in megabytes.

    Args:
        ensemble: its specification.
        each: what one run computes.
        sizes: of the dataset.
    """
    return PROCESS_MB + int(4 * numbers(ensemble, each, sizes) * 8 / 1e6)


def too_large(cell: Cell, limit: int) -> tuple[Key, str] | None:
    """The key that makes a cell too large, and its value with the remedy; None if it can fit.

    Only what is needed at the least counts, as its program will tell what it needs in all.

    Args:
        cell: its specification.
        limit: bytes of memory of the machine that trains.

    Raises:
        UserError: gates or trained pairs that do not fit the domains; a dataset that cannot be
            loaded, where its size or pathways are not known without.
    """
    sizes = cell.dataset.sizes
    counts = (
        lambda: examples(cell, sizes),
        lambda: COPIES * recorded(cell, sizes),
        # last, as counting weights may load the dataset
        lambda: numbers(cell, cell.resolved.arithmetic(cell.dataset, sizes, cell.training), sizes),
    )
    for count in counts:
        try:
            needed = count() * (8 if cell.precision == "float64" else 4)
        except OverflowError:  # more than the largest number
            needed = math.inf
        if needed > limit:
            key, value, _ = max(_sizes(cell), key=lambda size: size[2])
            remedy = "record less often" if key == ("record", "every") else "use less"
            return key, (
                f"{value}: needs {needed / 1e9:.3g} GB of memory, and the machine has "
                f"{limit / 1e9:.3g} GB; {remedy}, or say by memory_mb what machines have"
            )
    return None


def numbers(ensemble: Ensemble, each: Arithmetic, sizes: Sizes) -> float:
    """Numbers held at once: weights and gradients, what all runs see, and what is recorded."""
    runs = len(ensemble.init_scales) * ensemble.seeds
    held = runs * (3 * each.weights + each.step ** (2 / 3))
    return held + examples(ensemble, sizes) + recorded(ensemble, sizes)


def examples(ensemble: Ensemble, sizes: Sizes) -> float:
    """Numbers in inputs and targets: of the dataset, and of the batches of a step."""
    batch = ensemble.training.batch
    drawn = 0 if batch.whole else ensemble.seeds * batch.samples(sizes.samples)
    return float(sizes.samples + drawn) * (sizes.inputs + sizes.outputs)


def recorded(ensemble: Ensemble, sizes: Sizes) -> float:
    """Numbers in the records of all runs: dimensions that sizes do not tell count as 1."""
    known = {
        "time": ensemble.training.steps // ensemble.record.every + 1,
        "snapshot": ensemble.record.snapshots + 1,
        "sample": sizes.samples,
        "input": sizes.inputs,
        "output": sizes.outputs,
        "mode": min(sizes.inputs, sizes.outputs),
    }
    variables = declared_variables("trajectory", ensemble.record.observables).values()
    each = sum(math.prod(known.get(dim, 1) for dim in variable.dims) for variable in variables)
    return float(len(ensemble.init_scales) * ensemble.seeds * each)


def _sizes(cell: Cell) -> Iterator[tuple[Key, int, int]]:
    """Whole numbers that say how much there is, by key: value, and how much that makes."""
    yield ("seeds",), cell.seeds, cell.seeds
    yield ("record", "every"), cell.record.every, cell.training.steps // cell.record.every
    parts = {("dataset",): cell.dataset, ("network",): cell.network}
    for key, part in (parts | {("training", "batch"): cell.training.batch}).items():
        for inside, number in _whole(part):
            yield (*key, *inside), number, number


def _whole(value: Any) -> Iterator[tuple[Key, int]]:
    """All whole numbers inside a value, by key, leaving out those that only name a draw."""
    if isinstance(value, ConfigModel | Mapping):
        for name, each in dict(value).items():
            if name != "seed":
                yield from (((name, *key), number) for key, number in _whole(each))
    elif isinstance(value, tuple):
        for place, each in enumerate(value):
            yield from (((str(place), *key), number) for key, number in _whole(each))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield (), value
