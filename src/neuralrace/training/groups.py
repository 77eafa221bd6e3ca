"""Groups of runs: which runs are trained together, and which in turn.

Runs that are trained together share the fixed cost of each operation. But a step reads and writes
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

from neuralrace.extensions.representation import short_repr
from neuralrace.training.memory import at_once

FIXED_COST = 1 / 4
"""Cost of a step that does not grow with the runs of a group, in costs of a run. It is small for
large networks, where a group is small, and several times this for the smallest ones."""


@dataclass(frozen=True)
class Groups:
    """Groups of equal size, which are trained in turn.

    Attributes:
        runs: numbers of the runs of each group, scale by scale. The last groups may repeat runs, as
            all groups have one size and so one program.
    """

    runs: Int[np.ndarray, "group run"]

    __repr__ = short_repr

    @property
    def size(self) -> int:
        """Runs in each group."""
        return self.runs.shape[1]

    def divide(self, tree: Any) -> list[Any]:
        """Splits arrays along their leading axis of runs, one part for each group."""
        if len(self.runs) == 1:
            return [tree]
        # in NumPy: JAX would compile a program for each shape
        tree = jax.tree.map(np.asarray, tree)
        return [jax.device_put(jax.tree.map(itemgetter(group), tree)) for group in self.runs]

    def join(self, parts: Sequence[Any], axis: int = 0) -> Any:
        """The inverse of `divide`, in NumPy, for arrays with this axis of runs."""

        def joined(*arrays: Any) -> np.ndarray:
            return np.take(np.concatenate(arrays, axis), self._places, axis)

        return jax.tree.map(joined, *parts)

    @cached_property
    def _places(self) -> Int[np.ndarray, " run"]:
        return np.unique(self.runs, return_index=True)[1]


def groups(scales: int, seeds: int, run_bytes: int, by_seed: bool) -> Groups:
    """The groups that take least time, among those whose weights may be used at once.

    Args:
        scales: number of init scales.
        seeds: number of seeds.
        run_bytes: bytes of the weights of a run, and of what its optimiser keeps.
        by_seed: whether runs of a seed must stay together, as they share their samples.

    Returns:
        Groups that fit into `memory.at_once`; of single runs, or single seeds, where none does.
    """
    runs, unit = np.arange(scales * seeds)[:, None], 1
    if by_seed:
        runs, unit = runs.reshape(scales, seeds).T, scales
    fits = max(at_once() // (unit * run_bytes), 1)

    def cost(size: int) -> tuple[float, int]:
        return -(-len(runs) // size) * (size + FIXED_COST / unit), -size

    size = min(range(1, min(fits, len(runs)) + 1), key=cost)
    padded = np.arange(-(-len(runs) // size) * size) % len(runs)
    return Groups(np.sort(runs[padded].reshape(-1, size * unit), axis=1))
