"""Adam (Kingma and Ba 2015, algorithm 1)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from neuralrace.training.optimisers.base import Optimiser


class Adam(Optimiser):
    """Adam: the mean of past gradients divided by the root of the mean of their squares.

    Both means are exponential and corrected for their start at zero. Each weight moves by about the
    learning rate in a step, however large its gradient is, so that small learning rates do not
    follow gradient flow.

    Source: Kingma and Ba 2015, algorithm 1.
    """

    name: Literal["adam"]
    b1: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """Decay rate of the mean of gradients."""
    b2: Annotated[float, Field(ge=0, lt=1)] = 0.999
    """Decay rate of the mean of squared gradients."""
    eps: Annotated[float, Field(gt=0)] = 1e-8
    """Added to the root, against division by zero."""

    def transformation(self) -> Any:
        """See `Optimiser.transformation`."""
        import jax
        import optax

        adam = optax.adam(1.0, self.b1, self.b2, self.eps)

        def update(updates: Any, state: Any, params: Any = None) -> Any:
            # Optax raises a float to an integer power, which strict promotion refuses
            with jax.numpy_dtype_promotion("standard"):
                return adam.update(updates, state, params)

        return optax.GradientTransformation(adam.init, update)

    def flow_time(self, step: float) -> None:
        """See `Optimiser.flow_time`."""
