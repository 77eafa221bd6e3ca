"""Base class of optimisers."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from neuralrace.extensions.model import ConfigModel


class Optimiser(ConfigModel, ABC):
    """Configuration of an optimiser: a name and its parameters."""

    is_plain: ClassVar[bool] = False
    """Whether a step is the learning rate times the gradient, with nothing else."""
    is_linear: ClassVar[bool] = False
    """Whether updates are weighted sums of past gradients: they commute with changes of axes."""

    @abstractmethod
    def transformation(self) -> Any:
        """The `optax.GradientTransformation` from gradients to updates at learning rate 1.

        The trainer multiplies these updates by the learning rate. Import Optax inside this method:
        configurations are read without it.
        """

    @abstractmethod
    def flow_time(self, step: float) -> float | None:
        """Gradient-flow time of a step, in the limit of small learning rates.

        Args:
            step: flow time of a plain gradient step, in units of tau.

        Returns:
            The time in units of tau; None if that limit is not gradient flow.
        """

    @property
    def follows_flow(self) -> bool:
        """Whether small learning rates follow gradient flow."""
        return self.flow_time(1.0) is not None
