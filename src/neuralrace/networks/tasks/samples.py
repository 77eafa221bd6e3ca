"""Base class of tasks that map inputs to outputs, sample by sample."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.networks.base import Network
from neuralrace.networks.initialisers.base import Initialiser
from neuralrace.training.settings import Training
from neuralrace.training.task import Task

AT_ONCE = 2**23
"""Most numbers of inputs and targets that are factorised at once."""


class SampleTask(Task):
    """A network that maps inputs to outputs, sample by sample.

    Args:
        network: its configuration.
        examples: the dataset, as `Network.examples` returns it.
        initialiser: draws the initial weights.
        training: loss, batches and optimiser.

    Raises:
        UserError: cross-entropy is configured, and targets are no class probabilities.
    """

    by_sample = True

    def __init__(
        self, network: Network, examples: Any, initialiser: Initialiser, training: Training
    ):
        self.spec, self.examples = network, examples
        self.initialiser, self.training = initialiser, training
        y = self.data.y
        self.samples = len(y)
        one_hot = (y >= 0).all() and np.allclose(y.sum(axis=1), 1)
        probabilities = one_hot or (y.shape[1] == 1 and ((y >= 0) & (y <= 1)).all())
        if not training.loss.squared and not probabilities:
            raise UserError(
                "the targets of the dataset are no class probabilities",
                key="training.loss.name",
                value=training.loss.name,
                remedy="use squared_error",
            )

    @property
    def data(self) -> Data:
        """The samples."""
        return self.examples.data

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        return self.spec.initial(self.initialiser, self.examples, scales, seeds)

    def test_inputs(self, examples: Any) -> tuple[Any, ...]:
        """Arguments of the network for test samples; see `Network.test_examples`."""
        return (examples.x,)

    def test_arrays(self) -> dict[str, Any]:
        """The test samples in `arrays`, as `test_loss` takes them; nothing if there are none."""
        if (test := self.data.test) is None:
            return {}
        inputs = self.test_inputs(self.spec.test_examples(self.examples, test))
        return {"test": (inputs, test.y)}

    def test_loss(self, network: Any, data: Mapping[str, Any]) -> Array:
        """Loss on the test samples, before normalisation; `data` is `arrays` on the device."""
        inputs, y = data["test"]
        return jnp.mean(self.training.loss.per_sample(network(*inputs), y))

    def loss(self, network: Any, batch: Any, per_run: Mapping[str, Array]) -> Array:
        """See `Task.loss`."""
        x, y = batch
        return jnp.mean(self.training.loss.per_sample(network(x), y))


def second_moments(
    x: Float[np.ndarray, "sample input"], y: Float[np.ndarray, "sample output"]
) -> tuple[Float[np.ndarray, "row input"], Float[np.ndarray, "row output"]]:
    """At most inputs + outputs samples with the same squared error for every linear network.

    Squared error of a linear network depends on second moments alone. The triangular factor of
    [X Y] has the same moments, and so the same loss and gradient.
    """
    # in parts, as the factor of all samples at once would take three copies of them
    columns = x.shape[1] + y.shape[1]
    rows = max(AT_ONCE // columns, 4 * columns)
    parts = [
        np.linalg.qr(np.hstack([x[start : start + rows], y[start : start + rows]]), mode="r")
        for start in range(0, len(x), rows)
    ]
    factor = np.linalg.qr(np.vstack(parts), mode="r") if len(parts) > 1 else parts[0]
    factor *= np.sqrt(len(factor) / len(x))
    left, right = np.split(factor, [x.shape[1]], axis=1)
    return left, right
