"""What the engine trains: for each kind of network, how it is built and what its loss is."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Float

from neuralrace.datasets import Data, Domains
from neuralrace.errors import UserError
from neuralrace.gates.wiring import routing_architecture
from neuralrace.models.graph import GatedNetwork
from neuralrace.models.initialisation import initial_edges, initial_weights
from neuralrace.models.layered import LayeredNetwork
from neuralrace.models.parallel import ParallelNetwork, side_by_side
from neuralrace.models.routing import RoutingNetwork, stacked
from neuralrace.spec import Gated, Graph, Layered, Routing, Run
from neuralrace.training.losses import LOSSES


class Task(ABC):
    """A run as the engine sees it.

    Attributes:
        samples: how many samples the loss is over.
        arrays: what all runs share, as NumPy arrays; entry `loss` is what the full-batch loss is
            computed from, all other entries are for observables.
    """

    samples: int
    arrays: dict[str, Any]

    @abstractmethod
    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """Initial weights: a tree of arrays (init_scale, seed, ...)."""

    @abstractmethod
    def network(self, weights: Any) -> nnx.Module:
        """The network with the weights of one run."""

    @abstractmethod
    def loss(self, network: Any, batch: Any, own: Mapping[str, Array]) -> Array:
        """Loss of one run before its normalisation: averaged over samples, 1/2 for squares."""

    def own(self, seeds: Sequence[int]) -> dict[str, np.ndarray]:
        """Arrays that differ between runs, (seed, ...)."""
        return {}


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


class RoutingTask(Task):
    """A routing network on the correlations of its trained pairs of domains."""

    def __init__(self, run: Run, network: Routing, domains: Domains):
        self.run, self.spec, self.domains = run, network, domains
        self.families = network.families(domains)
        items = domains.inputs.shape[1]
        self.samples = int(network.mask(domains, 0).sum()) * items
        u, _, vt = np.linalg.svd(domains.sigma_yx, full_matrices=False)
        self.arrays = {
            "inputs": domains.inputs,
            "targets": domains.targets,
            "u": u,
            "v": np.swapaxes(vt, -1, -2),
            "loss": (domains.sigma_yx, domains.sigma_xx, domains.y_power),
        }

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        edges = initial_edges(
            self.run.init,
            routing_architecture(self.domains, self.families),
            self.spec.effective(self.domains),
            scales,
            seeds,
        )
        return stacked(edges, self.families, len(self.domains.inputs))

    def network(self, weights: Any) -> RoutingNetwork:
        """See `Task.network`."""
        return RoutingNetwork(weights)

    def own(self, seeds: Sequence[int]) -> dict[str, np.ndarray]:
        """The trained pairs of each run, 1 where trained, and their shares in the loss."""
        masks = np.stack([self.spec.mask(self.domains, s) for s in seeds]).astype(float)
        return {"mask": masks, "share": masks / masks.sum(axis=(1, 2), keepdims=True)}

    def loss(self, network: Any, batch: Any, own: Mapping[str, Array]) -> Array:
        """See `Task.loss`."""
        return 0.5 * jnp.sum(own["share"] * squared_errors(network.maps(), *batch))


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


def squared_errors(maps: Array, sigma_yx: Array, sigma_xx: Array, y_power: Array) -> Array:
    """<|y - F x|^2> of every pair of domains, from correlations alone: (input, output) domain."""
    products = jnp.einsum("ijyx,ixz->ijyz", maps, sigma_xx)
    return y_power[None] + jnp.sum(maps * (products - 2 * sigma_yx), axis=(-2, -1))


def task_of(run: Run) -> Task:
    """The task of a run.

    Raises:
        UserError: gates that do not fit the dataset, or missing files.
    """
    network = run.network
    if isinstance(network, Routing):
        return RoutingTask(run, network, cast(Domains, run.dataset.domains()))
    data = run.dataset.load()
    one_hot = (data.y >= 0).all() and np.allclose(data.y.sum(axis=1), 1)
    probabilities = one_hot or (data.y.shape[1] == 1 and ((data.y >= 0) & (data.y <= 1)).all())
    if run.training.loss.name == "cross_entropy" and not probabilities:
        raise UserError(
            "training.loss.name: 'cross_entropy': the targets of dataset "
            f"{type(run.dataset).__name__} are no class probabilities; use squared_error"
        )
    if "accuracy" in run.record.observables and data.y.shape[1] == 1:
        raise UserError(
            f"record.observables: 'accuracy': dataset {type(run.dataset).__name__} has one output, "
            "and classes are told from the largest of several; leave it out"
        )
    match run.resolved:
        case Layered() as layered:
            return LayeredTask(run, layered, data)
        case Gated() as gated:
            return ParallelTask(run, gated, data)
    return GraphTask(run, cast(Graph, network), data)
