"""Base of the tasks of networks that map inputs to outputs, sample by sample."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.networks.base import Network
from neuralrace.networks.initialisers.base import Initialiser, Weights
from neuralrace.training.losses import LOSSES
from neuralrace.training.settings import Training
from neuralrace.training.task import Task


class SampleTask(Task):
    """A network that maps inputs to outputs, sample by sample."""

    def __init__(self, network: Network, seen: Any, law: Initialiser, training: Training):
        """Prepares the samples; `seen` is the dataset as `Network.view` gives it.

        Raises:
            UserError: targets that are no class probabilities, where cross-entropy asks for them.
        """
        self.spec, self.seen, self.law, self.training = network, seen, law, training
        self.sample_loss = LOSSES[training.loss.name]
        y = self.data.y
        self.samples = len(y)
        one_hot = (y >= 0).all() and np.allclose(y.sum(axis=1), 1)
        probabilities = one_hot or (y.shape[1] == 1 and ((y >= 0) & (y <= 1)).all())
        if not training.loss.squared and not probabilities:
            raise UserError(
                f"training.loss.name: {training.loss.name!r}: the targets of the dataset "
                "are no class probabilities; use squared_error"
            )

    @property
    def data(self) -> Data:
        """The samples."""
        return self.seen.data

    def initial(self, scales: Sequence[float], seeds: Sequence[int]) -> Weights:
        """Initial weights of every run; see `Network.initial`."""
        return self.spec.initial(self.law, self.seen, scales, seeds)

    def loss(self, network: Any, batch: Any, own: Mapping[str, Array]) -> Array:
        """See `Task.loss`."""
        x, y = batch
        return jnp.mean(self.sample_loss(network(x), y))


def second_moments(
    x: Float[np.ndarray, "sample input"], y: Float[np.ndarray, "sample output"]
) -> tuple[Float[np.ndarray, "row input"], Float[np.ndarray, "row output"]]:
    """Fewer samples that a linear network with squared error cannot tell from the given ones.

    It sees them through their second moments alone: the triangular factor of [X Y] has the same
    loss and gradient with at most inputs + outputs rows.
    """
    factor = np.linalg.qr(np.hstack([x, y]), mode="r")
    factor *= np.sqrt(len(factor) / len(x))
    left, right = np.split(factor, [x.shape[1]], axis=1)
    return left, right
