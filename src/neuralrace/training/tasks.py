"""The task of a run, by the kind of its network."""

from typing import cast

import numpy as np

from neuralrace.datasets import DomainDataset
from neuralrace.datasets.image_domains import ImageDomainDataset
from neuralrace.errors import UserError
from neuralrace.spec import Gated, Graph, Layered, Routing, Run
from neuralrace.training.base import Task
from neuralrace.training.domain_tasks import ImageTask, RoutingTask
from neuralrace.training.sample_tasks import GraphTask, LayeredTask, ParallelTask


def task_of(run: Run) -> Task:
    """The task of a run.

    Raises:
        UserError: gates that do not fit the dataset, or missing files.
    """
    network, dataset = run.network, run.dataset
    if isinstance(network, Routing):
        if isinstance(dataset, ImageDomainDataset):
            return ImageTask(run, network, dataset.image_domains())
        return RoutingTask(run, network, cast(DomainDataset, dataset).domains())
    data = dataset.load()
    one_hot = (data.y >= 0).all() and np.allclose(data.y.sum(axis=1), 1)
    probabilities = one_hot or (data.y.shape[1] == 1 and ((data.y >= 0) & (data.y <= 1)).all())
    if run.training.loss.name == "cross_entropy" and not probabilities:
        raise UserError(
            "training.loss.name: 'cross_entropy': the targets of dataset "
            f"{type(run.dataset).__name__} are no class probabilities; use squared_error"
        )
    if "accuracy" in run.record.observables and data.y.shape[1] == 1:
        raise UserError(
            f"record.observables: 'accuracy': dataset {type(run.dataset).__name__} has one output, "
            "and classes are told from the largest of several; leave it out"
        )
    match run.resolved:
        case Layered() as layered:
            return LayeredTask(run, layered, data)
        case Gated() as gated:
            return ParallelTask(run, gated, data)
    return GraphTask(run, cast(Graph, network), data)
