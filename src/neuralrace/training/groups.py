"""Groups of runs: which runs are trained together, and which in turn.

Runs that are trained together share the cost of starting operations. But a step reads and writes
all their weights, and weights that do not fit into the cache are read from memory at every step. So
runs of small networks are trained together, and runs of large ones in turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from neuralrace.training import memory


@dataclass(frozen=True)
class Groups:
    """Groups of equal size, which are trained in turn.

    Attributes:
        runs: numbers of the runs of each group, scale by scale.
    """

    runs: Int[np.ndarray, "group run"]

    @property
    def size(self) -> int:
        """Runs in each group."""
        return self.runs.shape[1]

    def divide(self, tree: Any) -> list[Any]:
        """The part of each group, of arrays with a leading axis of runs."""
        if len(self.runs) == 1:
            return [tree]
        return [jax.tree.map(itemgetter(group), tree) for group in self.runs]

    def join(self, parts: Sequence[Any], axis: int = 0) -> Any:
        """The inverse of `divide`, in NumPy; runs are on this axis."""

        def joined(*arrays: Any) -> np.ndarray:
            return np.take(np.concatenate(arrays, axis), self._places, axis)

        return jax.tree.map(joined, *parts)

    @cached_property
    def _places(self) -> Int[np.ndarray, " run"]:
        return np.argsort(self.runs.ravel())


def groups(scales: int, seeds: int, run_bytes: int, by_seed: bool) -> Groups:
    """The largest groups whose state fits into `memory.CACHE`; of single runs, where none does.

    All runs are one group on a GPU, which has other caches and many more operations at once.

    Args:
        scales: number of init scales.
        seeds: number of seeds.
        run_bytes: bytes that training changes in one run.
        by_seed: whether runs of a seed must stay together, as they share their samples.
    """
    runs, unit = np.arange(scales * seeds), 1
    if by_seed:
        runs, unit = runs.reshape(scales, seeds).T, scales
    units = runs.size // unit
    fits = units if jax.default_backend() != "cpu" else max(memory.CACHE // (unit * run_bytes), 1)
    together = max(n for n in range(1, units + 1) if units % n == 0 and n <= fits)
    return Groups(np.sort(runs.reshape(-1, together * unit), axis=1))
