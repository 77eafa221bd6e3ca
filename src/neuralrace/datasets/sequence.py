"""Sequences of tasks, for continual and reversal learning."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator

from neuralrace.datasets.base import Data, Dataset, DomainDataset, Sizes
from neuralrace.errors import UserError
from neuralrace.extensions.model import Positive
from neuralrace.extensions.registry import ChoiceOf


class Sequence(Dataset):
    """Tasks of equal sizes, trained one after another (continual learning, reversal learning).

    Loss, gradient and observables are those of the task of the present step; `task_loss` records
    the loss of every task. Initialisers see the modes of the first task. For reversal learning, let
    `changed_targets` follow the dataset that it changes.

    Source: Braun, Dominé, Fitzgerald, Saxe 2022, for continual and reversal learning.
    """

    model_config = ConfigDict(defer_build=True)
    example: ClassVar[Mapping[str, Any]] = {
        "tasks": [
            {"name": "modes", "singular_values": [3.0, 2.0], "inputs": 3, "outputs": 2},
            {"name": "modes", "singular_values": [1.0], "inputs": 3, "outputs": 2},
        ],
        "switches": [10],
    }
    name: Literal["sequence"]
    tasks: Annotated[
        tuple[Annotated[Dataset, ChoiceOf("datasets", without=("sequence",))], ...],
        Field(min_length=2),
    ]
    """The datasets of the tasks, in order; one that returns is listed again."""
    switches: tuple[Positive, ...]
    """The step at which each task after the first begins, counted from 0, increasing; the last one
    is before the end of training."""

    @model_validator(mode="after")
    def _tasks_follow_each_other(self) -> "Sequence":
        if len(self.switches) != len(self.tasks) - 1:
            raise UserError(
                f"has {len(self.switches)} entries for {len(self.tasks)} tasks",
                key="switches",
                remedy="give one for each task after the first",
            )
        if any(later <= earlier for earlier, later in pairwise(self.switches)):
            raise UserError(
                "does not increase", key="switches", value=self.switches, remedy="sort the entries"
            )
        for number, task in enumerate(self.tasks):
            if isinstance(task, DomainDataset):
                raise UserError(
                    "a sequence has no tasks between domains",
                    key=f"tasks.{number}",
                    remedy="use datasets of samples",
                )
        return self

    @property
    def phases(self) -> tuple[tuple[int, Dataset], ...]:
        """See `Dataset.phases`."""
        return tuple(zip((0, *self.switches), self.tasks, strict=True))

    @property
    def sizes(self) -> Sizes:
        """Those of the first task, which all others have too."""
        return self.tasks[0].sizes

    def load(self) -> Data:
        """The sample of the first task."""
        return self.tasks[0].load()
