"""What a cell costs, from its specification alone."""

from dataclasses import dataclass
from typing import Literal

from neuralrace.spec import Cell

Place = Literal["cpu", "gpu"]


@dataclass(frozen=True)
class Cost:
    """Core-seconds of each stage, and where the cell is trained."""

    train: float
    solve: float
    measure: float
    place: Place = "cpu"
    memory_mb: int = 2000

    @property
    def seconds(self) -> float:
        """Of all stages."""
        return self.train + self.solve + self.measure


def cost_of(cell: Cell, gpu: bool) -> Cost:
    """The estimated cost of a cell."""
    del gpu
    return Cost(3.0, 0.3 * bool(cell.solutions), 0.5)
