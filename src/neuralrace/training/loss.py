"""Loss functions and their normalisation.

Functions of a single sample import JAX when they are called: configurations are read without JAX.
"""

from collections.abc import Callable
from typing import Any, Literal

from jaxtyping import Float
from pydantic import model_validator

from neuralrace.errors import UserError
from neuralrace.extensions.model import ConfigModel

LossFunction = Callable[..., Float[Any, "*samples"]]
"""A function of outputs and targets, and of the axis along which they lie, the last by default."""


def squared_error(outputs: Any, targets: Any, axis: int = -1) -> Float[Any, "*samples"]:
    """1/2 |y - yhat|^2."""
    import jax.numpy as jnp

    return 0.5 * jnp.sum((targets - outputs) ** 2, axis=axis)


def cross_entropy(outputs: Any, targets: Any, axis: int = -1) -> Float[Any, "*samples"]:
    """-log p of the softmax; of the logistic function where there is one output."""
    import jax
    import jax.numpy as jnp

    if outputs.shape[axis] == 1:
        return jnp.squeeze(jax.nn.softplus(outputs) - targets * outputs, axis)
    return -jnp.sum(targets * jax.nn.log_softmax(outputs, axis=axis), axis=axis)


LOSSES: dict[str, LossFunction] = {"squared_error": squared_error, "cross_entropy": cross_entropy}
"""Per-sample losses by the names that a configuration uses."""


class Loss(ConfigModel):
    """The function that training minimises, with its normalisation over samples."""

    name: Literal["squared_error", "cross_entropy"] = "squared_error"
    """Squared error, or cross-entropy of the softmax of the outputs; of the logistic function where
    there is one output."""
    normalisation: Literal["half_mean", "half_sum", "mean", "sum"] = "half_mean"
    """Over samples: 1/2 mean, 1/2 sum, mean or sum; cross-entropy accepts mean and sum."""

    @model_validator(mode="after")
    def _no_half_cross_entropy(self) -> "Loss":
        if not self.squared and self.normalisation.startswith("half"):
            raise UserError(
                "is for squared_error",
                key="normalisation",
                value=self.normalisation,
                remedy="use mean or sum for cross_entropy",
            )
        return self

    @property
    def squared(self) -> bool:
        """Whether it is squared error, which depends on samples through correlations alone."""
        return self.name == "squared_error"

    @property
    def per_sample(self) -> LossFunction:
        """The loss of each sample, before normalisation."""
        return LOSSES[self.name]

    def factor(self, samples: int) -> float:
        """Ratio of this loss to the average of `per_sample` over so many samples."""
        per_sample = 0.5 if self.squared else 1.0
        factors = {"half_mean": 0.5, "half_sum": 0.5 * samples, "mean": 1.0, "sum": float(samples)}
        return factors[self.normalisation] / per_sample
