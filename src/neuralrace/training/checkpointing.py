"""Checkpoints as the trainer sees them: the state that is saved, and when.

Where they are stored is not its business: `neuralrace.workflow.checkpoints` keeps them in files.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

Parts = list[dict[str, np.ndarray]]


@dataclass(frozen=True)
class State:
    """Training after some steps.

    Attributes:
        step: gradient steps made.
        members: what changes in training, a pytree of device arrays.
        series: what was recorded, in parts that follow each other along their leading time axis;
            each part has the same names.
        snapshots: large observables, likewise; may be empty.
    """

    step: int
    members: Any
    series: Parts
    snapshots: Parts


@runtime_checkable
class Checkpoints(Protocol):
    """Saves and restores the state of one training."""

    def due(self) -> bool:
        """Whether it is time to save."""
        ...

    def restore(self, members: Any, report: Callable[[str], None]) -> State | None:
        """The state that was saved last; None to start anew.

        Args:
            members: freshly built members or their shapes.
            report: takes one line: the step that training continues from, or why it starts anew.
        """
        ...

    def save(self, state: State) -> None:
        """Saves a state in the place of the last one."""
        ...
