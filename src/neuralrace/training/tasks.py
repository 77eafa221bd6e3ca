"""The task of a run, which its network names."""

from importlib import import_module

from neuralrace.spec import Run
from neuralrace.training.base import Task


def task_of(run: Run) -> Task:
    """The task of a run.

    Raises:
        UserError: gates that do not fit the dataset, or missing files.
    """
    module, _, name = run.resolved.task(run.dataset).rpartition(".")
    return getattr(import_module(module), name).of(run)
