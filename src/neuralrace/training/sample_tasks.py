"""Networks that map inputs to outputs, sample by sample: layered, gated, or any graph."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from neuralrace.datasets import Data
from neuralrace.models.graph import GatedNetwork
from neuralrace.models.initialisation import initial_edges, initial_weights
from neuralrace.models.layered import LayeredNetwork
from neuralrace.models.parallel import ParallelNetwork, side_by_side
from neuralrace.spec import Gated, Graph, Layered, Run
from neuralrace.training.base import Task
from neuralrace.training.losses import LOSSES


class SampleTask(Task):
    """A network that maps inputs to outputs, sample by sample."""

    def __init__(self, run: Run):
        self.run = run
        self.sample_loss = LOSSES[run.training.loss.name]

    def loss(self, network: Any, batch: Any, own: Mapping[str, Array]) -> Array:
        """See `Task.loss`."""
        x, y = batch
        return jnp.mean(self.sample_loss(network(x), y))


class LayeredTask(SampleTask):
    """A layered network on samples."""

    def __init__(self, run: Run, network: Layered, data: Data):
        super().__init__(run)
        self.spec, self.data, self.samples = network, data, len(data.x)
        named = {"x": data.x, "y": data.y, "u": data.modes.u, "v": data.modes.v}
        self.arrays = {**named, "loss": self._compressed()}

    def _compressed(self) -> tuple[np.ndarray, np.ndarray]:
        """Samples for the loss."""
        training = self.run.training
        linear = self.spec.activation == "linear" and not self.spec.bias
        if linear and training.loss.name == "squared_error" and training.batch.name == "full":
            return second_moments(self.data.x, self.data.y)
        return self.data.x, self.data.y

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        widths = (self.data.x.shape[1], *self.spec.hidden, self.data.y.shape[1])
        mean = self.spec.readout == "mean"
        return initial_weights(self.run.init, widths, self.data.modes, scales, seeds, mean)

    def network(self, weights: Any) -> LayeredNetwork:
        """See `Task.network`."""
        biases = [jnp.zeros(len(w), w.dtype) for w in weights] if self.spec.bias else None
        trained = self.spec.readout == "trained"
        return LayeredNetwork(weights, biases, self.spec.activation, trained_readout=trained)


class ParallelTask(SampleTask):
    """Gated pathways side by side, which are a linear network of their gated inputs."""

    def __init__(self, run: Run, network: Gated, data: Data):
        super().__init__(run)
        self.spec, self.samples, self.wiring = network, len(data.x), network.wiring(data)
        gated = self.wiring.gated_inputs
        compressed = gated, data.y
        if run.training.loss.name == "squared_error":
            compressed = second_moments(gated, data.y)
        self.arrays = {"x": gated, "y": data.y, "loss": compressed}

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        wiring = self.wiring
        edges = initial_edges(
            self.run.init,
            wiring.architecture,
            lambda _: wiring.effective,
            scales,
            seeds,
            wiring.sees,
            self.spec.readout == "mean",
        )
        return side_by_side(edges, wiring.architecture)

    def network(self, weights: Any) -> ParallelNetwork:
        """See `Task.network`."""
        return ParallelNetwork(weights, trained_readout=self.spec.readout == "trained")


class GraphTask(Task):
    """A gated network on samples, or on the effective datasets of its pathways."""

    def __init__(self, run: Run, network: Graph, data: Data):
        self.run, self.samples = run, len(data.x)
        self.wiring = network.wiring(data)
        self.squared = run.training.loss.name == "squared_error"
        self.sample_loss = LOSSES[run.training.loss.name]
        samples = {"x": data.x, "y": data.y, "gates": dict(self.wiring.gates)}
        self.arrays = dict(samples)
        if self.squared:  # as many numbers as correlations have, for any number of samples
            effective = self.wiring.effective
            self.keys = list(effective.sigma_xx)
            correlations = [effective.sigma_xx[key] for key in self.keys]
            y_power = np.asarray(effective.y_power)
            self.arrays["loss"] = (list(effective.sigma_yx), correlations, y_power)
        else:
            self.arrays["loss"] = samples

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        wiring = self.wiring
        return initial_edges(
            self.run.init, wiring.architecture, lambda _: wiring.effective, scales, seeds
        )

    def network(self, weights: Any) -> GatedNetwork:
        """See `Task.network`."""
        return GatedNetwork(self.wiring.architecture, weights)

    def loss(self, network: Any, batch: Any, own: Mapping[str, Array]) -> Array:
        """See `Task.loss`."""
        if not self.squared:
            return jnp.mean(self.sample_loss(network(batch["x"], batch["gates"]), batch["y"]))
        sigma_yx, sigma_xx, y_power = batch
        maps = network.pathway_maps()
        loss = 0.5 * y_power
        for total, sigma in zip(maps, sigma_yx, strict=True):
            loss -= jnp.sum(total * sigma)
        for (j, p), sigma in zip(self.keys, sigma_xx, strict=True):
            loss += 0.5 * jnp.sum((maps[j] @ sigma) * maps[p])
        return loss


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
