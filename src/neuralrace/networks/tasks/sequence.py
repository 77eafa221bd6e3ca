"""Training on a sequence of tasks."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int

from neuralrace.errors import UserError
from neuralrace.training.task import Task


class SequenceTask(Task):
    """Tasks that one network is trained on, one after another.

    The network, its initial weights and its loss are those of the first task. Arrays of all tasks
    are stacked, so that the number of the present task is an argument of the compiled program.

    Args:
        tasks: tasks with arrays of equal shapes, for one network.
        starts: first step of each task.

    Raises:
        UserError: arrays differ in shape.
    """

    def __init__(self, tasks: Sequence[Task], starts: Sequence[int]):
        self.first, *others = tasks
        shapes = [jax.tree.map(np.shape, task.arrays) for task in tasks]
        for number, shape in enumerate(shapes):
            if shape != shapes[0]:
                raise UserError(
                    f"task {number + 1} differs from the first one in size or in its pathways",
                    key="dataset.tasks",
                    remedy="use datasets of equal sizes",
                )
        self.samples, self.by_sample = self.first.samples, self.first.by_sample
        stacked = jax.tree.map(
            lambda *arrays: np.stack(arrays), self.first.arrays, *(task.arrays for task in others)
        )
        self.arrays = {"tasks": stacked, "starts": np.asarray(starts)}

    @property
    def items(self) -> int:
        """See `Task.items`."""
        return self.first.items

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        return self.first.weights(scales, seeds)

    def network(self, weights: Any) -> Any:
        """See `Task.network`."""
        return self.first.network(weights)

    def loss(self, network: Any, batch: Any, per_run: Mapping[str, Array]) -> Array:
        """See `Task.loss`."""
        return self.first.loss(network, batch, per_run)

    def present(self, data: Mapping[str, Any], step: Int[Array, ""] | int) -> Mapping[str, Any]:
        """See `Task.present`."""
        number = jnp.searchsorted(data["starts"], step, side="right") - 1
        return {**data, **jax.tree.map(lambda arrays: arrays[number], data["tasks"])}
