"""Gradient steps with momentum."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from neuralrace.optimisers.base import Optimiser


class Momentum(Optimiser):
    """Heavy ball: steps along the sum of all gradients so far, each older one weighing less.

    With momentum beta, a gradient moves weights 1/(1 - beta) times as far in the end, and small
    learning rates follow gradient flow so much faster.

    Source: Polyak 1964.
    """

    example: ClassVar[Mapping[str, Any]] = {"momentum": 0.9}
    is_linear: ClassVar[bool] = True
    name: Literal["momentum"]
    momentum: Annotated[float, Field(gt=0, lt=1)]
    """Weight of a gradient after one step."""

    def transformation(self) -> Any:
        """See `Optimiser.transformation`."""
        import optax

        return optax.sgd(1.0, self.momentum)

    def flow_time(self, step: float) -> float:
        """See `Optimiser.flow_time`."""
        return step / (1 - self.momentum)
