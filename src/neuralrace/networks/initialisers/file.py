"""Initial weights from a file, such as the trajectory of an earlier run."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from neuralrace.datasets.base import Modes
from neuralrace.datasets.user_file import (
    ARRAY_LISTERS,
    ARRAY_READERS,
    Arrays,
    Lister,
    Reader,
    UserFile,
)
from neuralrace.errors import UserError, listed, shorten
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.initialisers.base import Effective, Initialiser, Weights

LABELS = ("init_scale", "seed")
"""Arrays that number the entries of these axes."""


class FromFile(UserFile, Initialiser):
    """Initial weights from a file, NumPy arrays (`.npz`) or NetCDF (`.nc`).

    Arrays are `weight_1`, `weight_2` and so on for the layers of a layered network, first layer
    first. For other networks they have the names of edges: `a->b` in a graph, `x->hidden 1 of
    pathway 1` in a gated network. The shape of an array is one of

    - (out, in): all seeds start from the same weights;
    - (seed, out, in): the run of seed n takes entry n, or the one that an array `seed` labels n;
    - (init_scale, seed, snapshot, out, in), as `trajectory.nc` has it where the observable
      `weights` is recorded: the last snapshot, by seed.

    Weights are those of the file times the init scale: use 1 to continue a run. Biases start at
    zero, and a file that has some is refused. Trajectories have weights of layered networks only.
    """

    example: ClassVar[Mapping[str, Any]] = {"path": "my.npz", "checksum": "0" * 64}
    for_graphs: ClassVar[bool] = True
    readers: ClassVar[Mapping[str, Reader]] = ARRAY_READERS
    listers: ClassVar[Mapping[str, Lister]] = ARRAY_LISTERS
    name: Literal["file"]
    path: str
    """Path of the file; `.npz` or `.nc`."""
    recorded_scale: Annotated[float, Field(gt=0)] | None = None
    """Init scale of the recorded runs to start from; may be absent if the file has only one."""

    def draw(self, seed: int, widths: tuple[int, ...], modes: Modes) -> Weights:
        """See `Initialiser.draw`."""
        shapes = {
            f"weight_{number}": (n_out, n_in)
            for number, (n_in, n_out) in enumerate(pairwise(widths), start=1)
        }
        return self._weights(seed, shapes, (f"weight_{len(widths)}", "bias_1"))

    def draw_edges(self, seed: int, architecture: Architecture, effective: Effective) -> Weights:
        """See `Initialiser.draw_edges`."""
        nodes = architecture.nodes
        shapes = {
            architecture.edge_name(number): (nodes[target], nodes[source])
            for number, (source, target) in enumerate(architecture.edges)
        }
        return self._weights(seed, shapes)

    def _weights(
        self, seed: int, shapes: Mapping[str, tuple[int, int]], unknown: Sequence[str] = ()
    ) -> Weights:
        """The matrices of a seed, by their names and shapes.

        Args:
            seed: run seed.
            shapes: (out, in) of each matrix.
            unknown: names of arrays that belong to another network.
        """
        names = (*shapes, *unknown, *LABELS)
        arrays = _arrays(self, names)  # pyright: ignore[reportArgumentType]  see `File.load`
        for name in unknown:
            if name in arrays:
                raise UserError(
                    "the network has no such initial weights",
                    file=self.path,
                    key=name,
                    remedy="remove the array, or use a network that fits the file",
                )
        return [self._matrix(seed, name, shape, arrays) for name, shape in shapes.items()]

    def _matrix(self, seed: int, name: str, shape: tuple[int, int], arrays: Arrays) -> np.ndarray:
        if name not in arrays:
            problem = f"is missing; the file has {listed(self.names())}"
            remedy = f"add this array of shape {shape}, (out, in)"
            raise UserError(problem, file=self.path, key=name, remedy=remedy)
        array = arrays[name]
        if array.shape[-2:] != shape or array.ndim not in (2, 3, 5) or not array.size:
            raise UserError(
                f"has the shape {array.shape}, and the network needs {shape}, (out, in)",
                file=self.path,
                key=name,
                remedy="use that shape, or (seed, ...) or (init_scale, seed, snapshot, ...)",
            )
        if array.ndim == 5:
            scale = self._entry("init_scale", self.recorded_scale, array, arrays)
            array = array[scale, :, -1]
        elif self.recorded_scale is not None:
            raise UserError(
                f"{self.path} has weights without init scales",
                key="init.recorded_scale",
                value=self.recorded_scale,
                remedy="leave it out",
            )
        if array.ndim == 3:
            array = array[self._entry("seed", seed, array, arrays)]
        with np.errstate(over="ignore"):  # longdouble can exceed the range of float64
            weights = array.astype(np.float64)
        if not np.isfinite(weights).all():
            problem = f"has weights that are not finite for seed {seed}"
            remedy = "use runs that did not diverge"
            raise UserError(problem, file=self.path, key=name, remedy=remedy)
        return weights

    def _entry(
        self, axis: str, label: int | float | None, array: np.ndarray, arrays: Arrays
    ) -> int:
        """Index of a label on the first axis; 0 if the label is None and there is only one."""
        labels = arrays.get(axis, np.arange(len(array)))
        if labels.shape != array.shape[:1]:
            raise UserError(
                f"has the shape {labels.shape}, and weights have {len(array)} entries on this axis",
                file=self.path,
                key=axis,
                remedy="give one number for each",
            )
        found = np.arange(len(array)) if label is None else np.flatnonzero(labels == label)
        if len(found) != 1:
            raise UserError(
                f"{self.path} has weights of {axis} {shorten(', '.join(map(str, labels)), 80)}",
                key={"init_scale": "init.recorded_scale", "seed": "seeds"}[axis],
                value=label,
                remedy="use one of them",
            )
        return int(found[0])


@lru_cache(maxsize=1)  # every seed needs the same arrays
def _arrays(file: FromFile, names: tuple[str, ...]) -> Arrays:
    return file.arrays(names)
