"""The state of a training that checkpoints save, and the interface that saves it.

`neuralrace.workflow.checkpoints` implements the interface with files.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

Parts = list[dict[str, np.ndarray]]


@dataclass(frozen=True)
class State:
    """State of a training after some steps.

    Attributes:
        step: number of gradient steps made.
        members: weights, optimiser state and the like: a pytree of device arrays.
        series: recorded variables, in parts that follow each other along the leading time axis;
            all parts have the same names.
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
        """The state that was saved last; None to start from the beginning.

        Args:
            members: freshly built members or their shapes.
            report: called with one line: the step that training continues from, or why it starts
                from the beginning.
        """
        ...

    def save(self, state: State) -> None:
        """Saves a state and replaces the previous one."""
        ...
