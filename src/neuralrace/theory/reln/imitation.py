"""Imitation of a ReLU network by a gated linear network that is trained in the same way.

Outputs of the two are compared at equal loss, so that their speeds of learning do not matter.
Losses are compared at equal time.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float

from neuralrace.config.cell import Ensemble, Record
from neuralrace.config.requirements import unmet
from neuralrace.errors import UserError
from neuralrace.extensions.registry import OBSERVABLES
from neuralrace.networks.gated import Gated
from neuralrace.networks.gates.wiring import Wiring
from neuralrace.networks.graph import Graph
from neuralrace.networks.initialisers.base import Initialiser
from neuralrace.networks.modules.gated import side_by_side
from neuralrace.networks.tasks.gated import ParallelTask
from neuralrace.networks.tasks.graph import GraphTask
from neuralrace.networks.tasks.samples import SampleTask
from neuralrace.training.settings import Training
from neuralrace.training.task import Task
from neuralrace.training.trainer import Trajectory, train


def imitate(ensemble: Ensemble, network: Gated | Graph) -> Trajectory:
    """Trains a gated network with the dataset and training of a ReLU network.

    Dataset, initialiser, init scales, seeds, optimiser and precision are those of the ensemble.
    Initial weights of a seed are not the draws of the ReLU network with that seed. Networks are
    trained with as few units as give the same outputs; see `SmallestTask` and `SmallestGraph`.

    Args:
        ensemble: the ReLU network to imitate, and its training.
        network: the gated network.

    Returns:
        The loss along time, and snapshots of outputs at the same times. Of parallel pathways also
        snapshots of sample similarity.

    Raises:
        UserError: gates or initialiser do not fit, batches are not the whole dataset, or every run
            diverged.
    """
    if not ensemble.training.batch.whole:
        raise UserError(
            "a gated network is trained on all samples",
            key="training.batch.name",
            value=ensemble.training.batch.name,
            remedy="use full",
        )
    steps, every = ensemble.training.steps, ensemble.record.every
    record = Record(every=every, snapshots=steps // every)
    gated = altered(ensemble, network=network, record=record)
    observables = tuple(
        name
        for name in ("outputs", "similarity")
        if not unmet(gated, OBSERVABLES[name].declaration.requires)
    )
    gated = altered(gated, record=record.model_copy(update={"observables": observables}))
    return train(_Imitation.model_construct(**dict(gated)))


class _Imitation(Ensemble):
    """An ensemble of gated networks that records outputs and similarities only."""

    def task(self) -> Task:
        """See `Ensemble.task`."""
        network = self.network
        kind = SMALLEST.get(network.resolved.name)
        if kind is None or not self.training.optimiser.is_linear:
            return super().task()
        return kind(network, network.examples(self.dataset), self.init, self.training)


class SmallestTask(ParallelTask):
    """Parallel gated pathways on as few inputs and hidden units as give the same outputs.

    Gradient descent is the same in any orthonormal basis of the inputs of a pathway and of each
    hidden layer, as are outputs and the inner products of representations. Gated inputs have as
    many entries in their singular basis as their rank. The weights into and out of a hidden layer,
    a row for each unit, have a triangular factor with as many rows as the layer has inputs and
    outputs; it has the same inner products. Momentum keeps this, and Adam does not, as it divides
    by the size of each entry.
    """

    def __init__(
        self, network: Gated, examples: Wiring, initialiser: Initialiser, training: Training
    ):
        """See `ParallelTask`."""
        super().__init__(network, examples, initialiser, training)
        architecture = examples.architecture
        first_edges = [architecture.edge_name(p.edges[0]) for p in architecture.pathways]
        gated = examples.gated_inputs.reshape(len(self.data.x), len(first_edges), -1)
        gated = gated.swapaxes(0, 1)
        _, values, bases = np.linalg.svd(gated, full_matrices=False)
        rounding = max(gated.shape[1:]) * np.finfo(float).eps * values.max()
        ranks = (values > rounding).sum(axis=1)
        # Pathways of one shape share arrays, and every other shape takes longer to compile. So the
        # pathways that receive all inputs have one size, and those that receive some have another.
        some = np.isin(first_edges, [*examples.visible_inputs])
        for alike in (some, ~some):
            ranks[alike] = ranks[alike].max(initial=0)
        self.bases = [basis[:rank].T for basis, rank in zip(bases, ranks, strict=True)]
        x = np.hstack([inputs @ basis for inputs, basis in zip(gated, self.bases, strict=True)])
        self.arrays = self.batches(x)

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        architecture = self.examples.architecture
        edges = list(SampleTask.weights(self, scales, seeds))
        for pathway, basis in zip(architecture.pathways, self.bases, strict=True):
            first, *_ = pathway.edges
            edges[first] = edges[first] @ basis
            for below, above in pairwise(pathway.edges):
                edges[below], edges[above] = with_fewest_units(edges[below], edges[above])
        return side_by_side(edges, architecture)


class SmallestGraph(GraphTask):
    """A gated network on a graph with as few units in hidden nodes as give the same outputs.

    The weights of all edges into and out of a node have a triangular factor, as in `SmallestTask`.
    """

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        graph = self.examples.architecture
        edges = list(super().weights(scales, seeds))
        for name in graph.hidden:
            below, above = graph.incoming[name], graph.outgoing[name]
            into = np.concatenate([edges[edge] for edge in below], axis=-1)
            out = np.concatenate([edges[edge] for edge in above], axis=-2)
            into, out = with_fewest_units(into, out)
            inputs = np.cumsum([edges[edge].shape[-1] for edge in below])[:-1]
            outputs = np.cumsum([edges[edge].shape[-2] for edge in above])[:-1]
            for edge, weights in zip(below, np.split(into, inputs, axis=-1), strict=True):
                edges[edge] = weights
            for edge, weights in zip(above, np.split(out, outputs, axis=-2), strict=True):
                edges[edge] = weights
        return edges


SMALLEST: dict[str, Any] = {"gated": SmallestTask, "graph": SmallestGraph}
"""Tasks by kind of network; gated networks with learned gates have none."""


def with_fewest_units(
    into: Float[np.ndarray, "*runs unit input"], out: Float[np.ndarray, "*runs output unit"]
) -> tuple[Float[np.ndarray, "*runs _fewer input"], Float[np.ndarray, "*runs output _fewer"]]:
    """Weights of a linear hidden layer in a basis where it has at most inputs + outputs units.

    Args:
        into: weights of the layer.
        out: weights of the layer above.

    Returns:
        Weights with the same inner products over units, among and between the two.
    """
    both = np.concatenate([into, out.mT], axis=-1)
    if both.shape[-2] > both.shape[-1]:
        both = np.asarray(np.linalg.qr(both, mode="r"))
    inputs = into.shape[-1]
    return both[..., :inputs], both[..., inputs:].mT


def altered(ensemble: Ensemble, **parts: object) -> Ensemble:
    """A copy of the ensemble with some parts replaced, validated again.

    Raises:
        ValueError: the parts do not fit together.
    """
    return Ensemble.model_validate(
        {name: getattr(ensemble, name) for name in Ensemble.model_fields} | parts
    )


def at_loss(
    levels: Float[np.ndarray, "*runs level"], imitation: Trajectory
) -> Float[np.ndarray, "*runs level _sample _output"]:
    """Outputs where the loss first falls to each level, linearly interpolated in the loss.

    Args:
        levels: levels of the loss.
        imitation: as `imitate` returns it.

    Returns:
        The outputs. A level at or above the initial loss has the outputs at the start; a level that
        the loss never reaches has NaN.

    Raises:
        ValueError: outputs are not recorded as often as the loss.
    """
    loss, outputs = (np.asarray(imitation.variables[n], float) for n in ("loss", "outputs"))
    if outputs.shape[: loss.ndim] != loss.shape:
        raise ValueError("outputs must be recorded as often as the loss")
    reached = np.less_equal(loss[..., None, :], levels[..., None])
    after = reached.argmax(axis=-1)
    before = np.maximum(after - 1, 0)
    high, low = (np.take_along_axis(loss, index, axis=-1) for index in (before, after))
    share = np.divide(high - levels, high - low, out=np.zeros_like(high), where=high > low)
    first, second = (
        np.take_along_axis(outputs, index[..., None, None], axis=-3) for index in (before, after)
    )
    between = first + share[..., None, None] * (second - first)
    return np.where(np.any(reached, axis=-1)[..., None, None], between, np.nan)


def output_error(
    losses: Float[np.ndarray, "*runs level"],
    outputs: Float[np.ndarray, "*runs level sample output"],
    imitation: Trajectory,
    targets: Float[np.ndarray, "sample output"],
) -> Float[np.ndarray, "*runs level"]:
    """|f - g|^2/|y|^2 of a network and its imitation at equal loss, over samples and outputs.

    Where the network has a lower loss than the imitation ever reaches, the outputs of the imitation
    at its lowest loss are compared. So a part that the imitation cannot learn counts as an error.

    Args:
        losses: losses of the network at some times.
        outputs: outputs f of the network at these times.
        imitation: as `imitate` returns it, with outputs g.
        targets: targets y.
    """
    lowest = np.min(imitation.variables["loss"], axis=-1, keepdims=True)
    difference = outputs - at_loss(np.maximum(losses, lowest).astype(float), imitation)
    return np.sum(difference**2, axis=(-2, -1)) / np.sum(targets**2)


def loss_gap(
    loss: Float[np.ndarray, "*runs time"], other: Float[np.ndarray, "*runs time"]
) -> Float[np.ndarray, "*runs"]:
    """max_t |L - L'| / L(0) of two loss curves."""
    return np.max(np.abs(loss - other), axis=-1) / loss[..., 0]
