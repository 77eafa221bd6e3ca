"""Networks that map inputs to outputs, sample by sample: layered, gated, or any graph."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from neuralrace.config.cell import Ensemble
from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.networks.gated import Gated
from neuralrace.networks.graph import Graph
from neuralrace.networks.layered import Layered
from neuralrace.networks.modules.gated import ParallelNetwork, side_by_side
from neuralrace.networks.modules.graph import GatedNetwork
from neuralrace.networks.modules.layered import LayeredNetwork
from neuralrace.training.losses import LOSSES
from neuralrace.training.task import Task


class SampleTask(Task):
    """A network that maps inputs to outputs, sample by sample."""

    def __init__(self, ensemble: Ensemble, network: Any, data: Data):
        self.ensemble, self.spec, self.samples = ensemble, network, len(data.x)
        self.sample_loss = LOSSES[ensemble.training.loss.name]

    @classmethod
    def of(cls, ensemble: Ensemble) -> Task:
        """See `Task.of`."""
        dataset, data = type(ensemble.dataset).__name__, ensemble.dataset.load()
        one_hot = (data.y >= 0).all() and np.allclose(data.y.sum(axis=1), 1)
        probabilities = one_hot or (data.y.shape[1] == 1 and ((data.y >= 0) & (data.y <= 1)).all())
        if not ensemble.training.loss.squared and not probabilities:
            raise UserError(
                f"training.loss.name: {ensemble.training.loss.name!r}: the targets of dataset "
                f"{dataset} are no class probabilities; use squared_error"
            )
        if "accuracy" in ensemble.record.observables and data.y.shape[1] == 1:
            raise UserError(
                f"record.observables: 'accuracy': dataset {dataset} has one output, and classes "
                "are told from the largest of several; leave it out"
            )
        return cls(ensemble, ensemble.resolved, data)

    def loss(self, network: Any, batch: Any, own: Mapping[str, Array]) -> Array:
        """See `Task.loss`."""
        x, y = batch
        return jnp.mean(self.sample_loss(network(x), y))


class LayeredTask(SampleTask):
    """A layered network on samples."""

    def __init__(self, ensemble: Ensemble, network: Layered, data: Data):
        super().__init__(ensemble, network, data)
        self.data = data
        named = {"x": data.x, "y": data.y, "u": data.modes.u, "v": data.modes.v}
        on_moments = network.linear and ensemble.training.on_moments
        compressed = second_moments(data.x, data.y) if on_moments else (data.x, data.y)
        self.arrays = {**named, "loss": compressed}

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        return self.spec.initial(self.ensemble.init, self, scales, seeds)

    def network(self, weights: Any) -> LayeredNetwork:
        """See `Task.network`."""
        biases = [jnp.zeros(len(w), w.dtype) for w in weights] if self.spec.bias else None
        trained = self.spec.readout == "trained"
        return LayeredNetwork(weights, biases, self.spec.activation, trained_readout=trained)


class ParallelTask(SampleTask):
    """Gated pathways side by side, which are a linear network of their gated inputs."""

    def __init__(self, ensemble: Ensemble, network: Gated, data: Data):
        super().__init__(ensemble, network, data)
        self.wiring = network.wiring(data)
        gated = self.wiring.gated_inputs
        on_moments = ensemble.training.on_moments
        compressed = second_moments(gated, data.y) if on_moments else (gated, data.y)
        self.arrays = {"x": gated, "y": data.y, "loss": compressed}

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        edges = self.spec.initial(self.ensemble.init, self, scales, seeds)
        return side_by_side(edges, self.wiring.architecture)

    def network(self, weights: Any) -> ParallelNetwork:
        """See `Task.network`."""
        return ParallelNetwork(weights, trained_readout=self.spec.readout == "trained")


class GraphTask(SampleTask):
    """A gated network on samples, or on the effective datasets of its pathways."""

    def __init__(self, ensemble: Ensemble, network: Graph, data: Data):
        super().__init__(ensemble, network, data)
        self.wiring = network.wiring(data)
        samples = {"x": data.x, "y": data.y, "gates": dict(self.wiring.gates)}
        self.arrays = dict(samples)
        # as many numbers as correlations have, for any number of samples
        if ensemble.training.on_moments:
            effective = self.wiring.effective
            self.keys = list(effective.sigma_xx)
            correlations = [effective.sigma_xx[key] for key in self.keys]
            y_power = np.asarray(effective.y_power)
            self.arrays["loss"] = (list(effective.sigma_yx), correlations, y_power)
        else:
            self.arrays["loss"] = samples

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        return self.spec.initial(self.ensemble.init, self, scales, seeds)

    def network(self, weights: Any) -> GatedNetwork:
        """See `Task.network`."""
        return GatedNetwork(self.wiring.architecture, weights)

    def loss(self, network: Any, batch: Any, own: Mapping[str, Array]) -> Array:
        """See `Task.loss`."""
        if not self.ensemble.training.on_moments:
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
