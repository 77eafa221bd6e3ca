"""Steps of a size that gradients do not set."""

from typing import Annotated, Any, Literal

from pydantic import Field

from neuralrace.training.optimisers.base import Optimiser


class Adam(Optimiser):
    """Means of past gradients over roots of means of their squares, both corrected for their start.

    Each weight moves about a learning rate a step, however large its gradient is: small learning
    rates do not follow gradient flow.

    Source: Kingma and Ba 2015, algorithm 1.
    """

    name: Literal["adam"]
    b1: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """What the mean of gradients keeps in a step."""
    b2: Annotated[float, Field(ge=0, lt=1)] = 0.999
    """What the mean of squared gradients keeps in a step."""
    eps: Annotated[float, Field(gt=0)] = 1e-8
    """Added to the root."""

    def transformation(self) -> Any:
        """See `Optimiser.transformation`."""
        import jax
        import optax

        adam = optax.adam(1.0, self.b1, self.b2, self.eps)

        def update(updates: Any, state: Any, params: Any = None) -> Any:
            with jax.numpy_dtype_promotion("standard"):  # Optax raises floats to whole powers
                return adam.update(updates, state, params)

        return optax.GradientTransformation(adam.init, update)

    def flow_time(self, step: float) -> None:
        """See `Optimiser.flow_time`."""
