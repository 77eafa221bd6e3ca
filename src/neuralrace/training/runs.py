"""What the trainer reads of a configuration."""

from typing import Literal, Protocol, runtime_checkable

from neuralrace.datasets.base import Dataset
from neuralrace.training.settings import Record, Training
from neuralrace.training.task import Task


@runtime_checkable
class Runs(Protocol):
    """All runs of a cell, one for each init scale and seed.

    `neuralrace.config.cell.Ensemble` is one; training knows no network by name.
    """

    @property
    def dataset(self) -> Dataset:
        """Dataset that is trained on."""
        ...

    @property
    def init_scales(self) -> tuple[float, ...]:
        """Factors on every initial weight."""
        ...

    @property
    def seed_numbers(self) -> range:
        """Seeds of the runs."""
        ...

    @property
    def training(self) -> Training:
        """Loss, batches, optimiser and steps."""
        ...

    @property
    def record(self) -> Record:
        """What is recorded, and how often."""
        ...

    @property
    def precision(self) -> Literal["float32", "float64"]:
        """Arithmetic of training."""
        ...

    @property
    def matmul_precision(self) -> Literal["default", "high", "highest"]:
        """Matrix products of float32."""
        ...

    def task(self) -> Task:
        """The network on its dataset, as the trainer takes it.

        Raises:
            UserError: gates that do not fit the dataset, or missing files.
        """
        ...
