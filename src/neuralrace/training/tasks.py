"""The task of an ensemble, which its network names."""

from importlib import import_module

from neuralrace.config.cell import Ensemble
from neuralrace.training.task import Task


def task_of(ensemble: Ensemble) -> Task:
    """The task of an ensemble.

    Raises:
        UserError: gates that do not fit the dataset, or missing files.
    """
    module, _, name = ensemble.resolved.task(ensemble.dataset).rpartition(".")
    return getattr(import_module(module), name).of(ensemble)
