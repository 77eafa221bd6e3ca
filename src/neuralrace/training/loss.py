"""Loss functions and their normalisation.

Functions of a single sample import JAX when they are called: configurations are read without JAX.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from jaxtyping import Float
from pydantic import Field, ValidationError, field_validator, model_validator

from neuralrace.errors import UserError, did_you_mean
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
FACTORS: dict[str, Callable[[int], float]] = {
    "half_mean": lambda samples: 0.5,
    "half_sum": lambda samples: 0.5 * samples,
    "mean": lambda samples: 1.0,
    "sum": float,
}
"""Factor of each normalisation on the mean over so many samples of |y - yhat|^2, or of -log p."""


MSE = "mse"
"""In a file or a call: squared error with the mean over samples and outputs, without 1/2, as
`MSELoss` of PyTorch. `neuralrace.config.load` replaces it: it takes the dataset to know the number
of outputs."""


class Loss(ConfigModel):
    """The function that training minimises, with its normalisation over samples."""

    name: Literal["squared_error", "mse", "cross_entropy"] = "squared_error"
    """Squared error, or cross-entropy of the softmax of the outputs; of the logistic function where
    there is one output. `mse`, without `normalisation`, is the mean squared error over samples and
    outputs, as `MSELoss` of PyTorch: squared error with the normalisation 1 / outputs."""
    normalisation: (
        Literal["half_mean", "half_sum", "mean", "sum"] | Annotated[float, Field(gt=0)]
    ) = "half_mean"
    """Over samples: 1/2 mean, 1/2 sum, mean, sum, or a number times the mean. Cross-entropy accepts
    all but the halves; when absent, it has the mean."""

    @model_validator(mode="before")
    @classmethod
    def _add_normalisation(cls, raw: Any) -> Any:
        cross_entropy = isinstance(raw, dict) and raw.get("name") == "cross_entropy"
        return {"normalisation": "mean"} | raw if cross_entropy else raw

    @field_validator("normalisation", mode="wrap")
    @classmethod
    def _known(cls, value: Any, check: Callable[[Any], Any]) -> Any:
        try:
            return check(value)
        except ValidationError:  # one for each alternative
            names = ", ".join(FACTORS)
            similar = did_you_mean(str(value), FACTORS)
            problem = f"expected one of {names}, or a positive number"
            raise UserError(problem, value=value, remedy=similar.rstrip()) from None

    @model_validator(mode="after")
    def _fits(self) -> "Loss":
        if self.name == MSE:
            raise UserError(
                "mse is the mean over samples and outputs",
                key="normalisation",
                value=self.normalisation,
                remedy="leave it out, or use squared_error",
            )
        if not self.squared and str(self.normalisation).startswith("half"):
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
        if isinstance(self.normalisation, str):
            return FACTORS[self.normalisation](samples) / per_sample
        return self.normalisation / per_sample
