"""Finding a rectified linear network (ReLN) that imitates a ReLU network on a dataset.

Source: Jarvis et al., "Make Haste Slowly", section 3 and appendix B.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from neuralrace.config.cell import Ensemble, Record
from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.extensions.representation import short_repr
from neuralrace.networks.initialisers.normal import Normal
from neuralrace.theory.pathway_modes import mean_start, pathway_modes_flow
from neuralrace.theory.reln.gates import relu_network
from neuralrace.theory.reln.identification import (
    Gating,
    NoGatingError,
    Source,
    gate_patterns,
    identify,
)
from neuralrace.theory.reln.imitation import altered, imitate, loss_gap, output_error
from neuralrace.training.trainer import Trajectory, train

CONTROLS: tuple[Source, ...] = ("start", "end")


@dataclass(frozen=True)
class Reln:
    """A gated linear network that imitates a ReLU network, and its errors."""

    gating: Gating
    relu: Trajectory
    """Loss of the ReLU networks along time; their weights and outputs at the snapshots."""
    imitation: Trajectory
    """Loss, outputs and similarity of the gated networks along time."""
    loss_gap: Float[np.ndarray, "init_scale seed"]
    """max_t |L - L'| / L(0) between a ReLU network and the gated one of the same seed."""
    output_error: Float[np.ndarray, "init_scale seed snapshot"]
    """|f - g|^2/|y|^2 at equal loss, at every snapshot; see `imitation.output_error`."""
    predicted_loss: Float[np.ndarray, " time"] | None
    """Loss of the imitation by theory, without training (see `theory.pathway_modes`). It starts
    from the mean random network, and is None unless the initialiser is `normal` and the loss is
    `squared_error`."""
    controls: Mapping[Source, "Reln"] = field(default_factory=dict)
    """The same from the gates before training only (`start`) and after training only (`end`), as
    far as these gates make a network."""

    __repr__ = short_repr


def find_reln(
    ensemble: Ensemble, pathways: int, snapshots: int = 20, controls: bool = True
) -> Reln:
    """Trains ReLU networks, identifies the gates that they share, and trains their imitation.

    The gates of the networks of all seeds, at all snapshots of training, are clustered.

    Args:
        ensemble: ReLU networks with one hidden layer and no biases, on any dataset, at one init
            scale. The observables that it records are replaced.
        pathways: number of pathways.
        snapshots: number of intervals between snapshots of the gates.
        controls: whether to repeat this with the gates before training only, and with those after
            training only.

    Raises:
        UserError: the network is another one, there are several init scales, or no network with so
            many pathways can be made from the gates.
        ValueError: the snapshots do not divide the entries of the time axis.

    Source: Jarvis et al., "Make Haste Slowly", section 3 and appendix B.
    """
    relu_network(ensemble, "find_reln", hidden=1)
    if len(ensemble.init_scales) > 1:
        raise UserError(
            "gates are identified at one init scale",
            key="init_scales",
            value=ensemble.init_scales,
            remedy="give one",
        )
    record = Record(
        every=ensemble.record.every, snapshots=snapshots, observables=("outputs", "weights")
    )
    ensemble = altered(ensemble, record=record)
    relu, data = train(ensemble), ensemble.dataset.load()
    control_relns: dict[Source, Reln] = {}
    for source in CONTROLS if controls else ():
        with suppress(NoGatingError):
            control_relns[source] = _reln(ensemble, data, relu, pathways, source, {})
    return _reln(ensemble, data, relu, pathways, "training", control_relns)


def _reln(
    ensemble: Ensemble,
    data: Data,
    relu: Trajectory,
    pathways: int,
    source: Source,
    controls: Mapping[Source, Reln],
) -> Reln:
    """The imitation with the gates of trained ReLU networks at the snapshots of a source."""
    loss, outputs, first, second = (
        relu.variables[name] for name in ("loss", "outputs", "weight_1", "weight_2")
    )
    gating = identify(gate_patterns([first, second], data.x, source), pathways, first.shape[-2])
    imitation = imitate(ensemble, gating.network)
    records = ensemble.training.steps // ensemble.record.every
    stride = records // ensemble.record.snapshots
    return Reln(
        gating=gating,
        relu=relu,
        imitation=imitation,
        loss_gap=loss_gap(loss, imitation.variables["loss"]),
        output_error=output_error(loss[..., ::stride], outputs, imitation, data.y),
        predicted_loss=_predicted_loss(ensemble, data, gating, records),
        controls=controls,
    )


def _predicted_loss(
    ensemble: Ensemble, data: Data, gating: Gating, records: int
) -> Float[np.ndarray, " time"] | None:
    """Loss of a gating by theory at every record, with the normalisation of training."""
    training = ensemble.training
    if not isinstance(ensemble.init, Normal) or not training.loss.squared:
        return None
    effective = gating.network.wiring(data).effective
    start = mean_start(effective, gating.widths.tolist(), ensemble.init_scales[0])
    time = np.arange(records + 1) * ensemble.record.every * training.flow_step(len(data.x))
    predicted = pathway_modes_flow(time, effective, start).loss
    return predicted * training.loss.factor(len(data.x))
