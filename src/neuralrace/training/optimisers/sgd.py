"""Plain gradient descent."""

from typing import Any, ClassVar, Literal

from neuralrace.training.optimisers.base import Optimiser


class Sgd(Optimiser):
    """Plain gradient descent: a step is the learning rate times the gradient."""

    name: Literal["sgd"] = "sgd"
    is_plain: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True

    def transformation(self) -> Any:
        """See `Optimiser.transformation`."""
        import optax

        return optax.sgd(1.0)

    def flow_time(self, step: float) -> float:
        """See `Optimiser.flow_time`."""
        return step
