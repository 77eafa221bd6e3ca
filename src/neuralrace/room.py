"""What cannot fit: told from a specification, before anything is loaded or allocated."""

import os
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from neuralrace.base import Strict
from neuralrace.cost import examples, numbers, recorded
from neuralrace.spec import Cell

MOST = 100_000
"""Cells of a plan, at most."""
COPIES = 3
"""How often records are held at once: as they came, as arrays of all runs, and read back."""
Key = tuple[str, ...]


def memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def excess(cell: Cell, room: int) -> tuple[Key, str] | None:
    """What makes a cell too large: its key, and the value with the remedy; None if it can fit.

    Only what is needed at the least counts: `neuralrace.training.memory` knows better, later.

    Args:
        cell: its specification.
        room: bytes of memory of the machine that trains.

    Raises:
        UserError: gates or trained pairs that do not fit the domains; a dataset that cannot be
            loaded, where its size or pathways are not known without.
    """
    # to count weights may take loading the dataset: last
    sizes = cell.dataset.sizes
    counts = (
        lambda: examples(cell, sizes),
        lambda: COPIES * recorded(cell, sizes),
        lambda: numbers(cell, cell.resolved.arithmetic(cell.dataset, sizes, cell.training), sizes),
    )
    for count in counts:
        try:
            needed = count() * (8 if cell.precision == "float64" else 4)
        except OverflowError:  # more than the largest number
            needed = inf
        if needed > room:
            key, value, _ = max(_sizes(cell), key=lambda size: size[2])
            remedy = "record less often" if key == ("record", "every") else "use less"
            return key, (
                f"{value}: needs {needed / 1e9:.3g} GB of memory, and the machine has "
                f"{room / 1e9:.3g} GB; {remedy}, or say by memory_mb what machines have"
            )
    return None


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
    if isinstance(value, Strict | Mapping):
        for name, each in dict(value).items():
            if name != "seed":
                yield from (((name, *key), number) for key, number in _whole(each))
    elif isinstance(value, tuple):
        for place, each in enumerate(value):
            yield from (((str(place), *key), number) for key, number in _whole(each))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield (), value
