"""Gradient descent with momentum (Polyak 1964)."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from neuralrace.training.optimisers.base import Optimiser


class Momentum(Optimiser):
    """Gradient descent with momentum: steps along a decaying sum of all gradients so far.

    Over all later steps, a gradient moves the weights 1/(1 - momentum) times as far as a plain step
    does. Small learning rates therefore follow gradient flow that much faster.

    Source: Polyak 1964.
    """

    example: ClassVar[Mapping[str, Any]] = {"momentum": 0.9}
    is_linear: ClassVar[bool] = True
    name: Literal["momentum"]
    momentum: Annotated[float, Field(gt=0, lt=1)]
    """Weight of a gradient one step later."""

    def transformation(self) -> Any:
        """See `Optimiser.transformation`."""
        import optax

        return optax.sgd(1.0, self.momentum)

    def flow_time(self, step: float) -> float:
        """See `Optimiser.flow_time`."""
        return step / (1 - self.momentum)
