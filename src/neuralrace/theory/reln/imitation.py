"""Imitation of a ReLU network by a gated linear network that is trained in the same way.

Outputs of the two are compared at equal loss, so that their speeds of learning do not matter.
Losses are compared at equal time.
"""

import numpy as np
from jaxtyping import Float

from neuralrace.config.cell import Ensemble, Record
from neuralrace.errors import UserError
from neuralrace.networks.gated import Gated
from neuralrace.training.trainer import Trajectory, train


def imitate(ensemble: Ensemble, network: Gated) -> Trajectory:
    """Trains a gated network with the dataset and training of a ReLU network.

    Dataset, initialiser, init scales, seeds, optimiser and precision are those of the ensemble.
    Initial weights of a seed are not the draws of the ReLU network with that seed.

    Args:
        ensemble: the ReLU network to imitate, and its training.
        network: the gated network.

    Returns:
        The loss along time, and snapshots of outputs and sample similarity at the same times.

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
    record = Record(every=every, snapshots=steps // every, observables=("outputs", "similarity"))
    return train(altered(ensemble, network=network, record=record))


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
