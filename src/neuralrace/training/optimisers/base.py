"""What training asks of an optimiser."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from neuralrace.extensions.model import ConfigModel


class Optimiser(ConfigModel, ABC):
    """An optimiser as a person writes it in `config/`: a name and its parameters."""

    is_plain: ClassVar[bool] = False
    """Whether a step is the learning rate times the gradient, with nothing else."""
    is_linear: ClassVar[bool] = False
    """Whether updates are weighted sums of gradients so far: they commute with changes of axes."""

    @abstractmethod
    def transformation(self) -> Any:
        """What turns gradients into updates of weights at learning rate 1, as Optax has it.

        The learning rate multiplies these updates. Optax is imported here, not when a
        configuration is read.
        """

    @abstractmethod
    def flow_time(self, step: float) -> float | None:
        """Gradient-flow time of a step, in the limit of small learning rates.

        Args:
            step: that of a plain gradient step, in units of tau.

        Returns:
            The time in units of tau; None where that limit is not gradient flow.
        """

    @property
    def follows_flow(self) -> bool:
        """Whether small learning rates follow gradient flow."""
        return self.flow_time(1.0) is not None
