"""Observables of the tasks of a sequence."""

from collections.abc import Mapping
from typing import Any

import jax
from jax import Array

from neuralrace.extensions.registry import Observable
from neuralrace.training.observables.view import View


@Observable(
    requires="task_sequence",
    variables={
        "task_loss": ("time task", "loss of each task of a sequence, trained at present or not")
    },
)
def task_loss(view: View) -> Mapping[str, Array]:
    """Loss of each task of a sequence; its rise for an earlier task is what is forgotten."""

    def loss(arrays: Any) -> Array:
        return view.task.whole_loss(view.network, arrays, view.per_run)

    losses = jax.vmap(loss)(view.data["tasks"])
    return {"task_loss": view.training.loss.factor(view.task.samples) * losses}
