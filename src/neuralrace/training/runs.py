"""The interface between a configuration and the trainer."""

from typing import Literal, Protocol, runtime_checkable

from neuralrace.datasets.base import Dataset
from neuralrace.training.settings import Record, Training
from neuralrace.training.task import Task


@runtime_checkable
class Runs(Protocol):
    """The runs of a cell, one for each init scale and seed.

    `neuralrace.config.cell.Ensemble` implements it. With this interface the trainer does not depend
    on the configuration, and any object with these attributes can be trained.
    """

    @property
    def dataset(self) -> Dataset:
        """Training data."""
        ...

    @property
    def init_scales(self) -> tuple[float, ...]:
        """Factors on all initial weights."""
        ...

    @property
    def seed_numbers(self) -> range:
        """Seeds of the runs."""
        ...

    @property
    def training(self) -> Training:
        """Loss, batches, optimiser and number of steps."""
        ...

    @property
    def record(self) -> Record:
        """Observables, and how often they are recorded."""
        ...

    @property
    def precision(self) -> Literal["float32", "float64"]:
        """Floating-point type of training."""
        ...

    @property
    def matmul_precision(self) -> Literal["default", "high", "highest"]:
        """Precision of matrix products in float32."""
        ...

    def task(self) -> Task:
        """The network on its dataset.

        Raises:
            UserError: gates do not fit the dataset, or files are missing.
        """
        ...
