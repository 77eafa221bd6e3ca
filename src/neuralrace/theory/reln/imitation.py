"""Imitation: a gated linear network trained as a ReLU network is, and how alike the two are.

Outputs are compared where both have the same loss, which leaves out how fast either learns; losses
are compared at the same time.
"""

import numpy as np
from jaxtyping import Float

from neuralrace.config.cell import Ensemble, Record
from neuralrace.errors import UserError
from neuralrace.networks.gated import Gated
from neuralrace.training.trainer import Trajectory, train


def imitate(ensemble: Ensemble, network: Gated) -> Trajectory:
    """Trains a gated network as a run trains its own.

    Dataset, law and scales of initial weights, seeds, gradient descent and precision are those of
    the run; initial weights of one seed are other draws than those of the ReLU network.

    Args:
        ensemble: training of the network to imitate.
        network: gated network.

    Returns:
        Loss along time, and at each of its entries outputs and similarity of samples as snapshots.

    Raises:
        UserError: gates or law do not fit, batches are not the whole dataset, or every run
            diverged.
    """
    if not ensemble.training.batch.whole:
        raise UserError(
            f"training.batch.name: {ensemble.training.batch.name!r}: a gated network is trained on "
            "all samples; use full"
        )
    steps, every = ensemble.training.steps, ensemble.record.every
    record = Record(every=every, snapshots=steps // every, observables=("outputs", "similarity"))
    return train(altered(ensemble, network=network, record=record))


def altered(ensemble: Ensemble, **parts: object) -> Ensemble:
    """The run with other parts, checked anew.

    Raises:
        ValueError: they do not fit.
    """
    return Ensemble.model_validate(
        {name: getattr(ensemble, name) for name in Ensemble.model_fields} | parts
    )


def at_loss(
    levels: Float[np.ndarray, "*runs level"], imitation: Trajectory
) -> Float[np.ndarray, "*runs level _sample _output"]:
    """Outputs where the loss first falls to given levels, linearly interpolated in the loss.

    Args:
        levels: levels of the loss.
        imitation: as `imitate` returns it.

    Returns:
        The outputs at the start for a level at or above the initial loss, NaN for one that the
        loss never gets to.

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
    found = first + share[..., None, None] * (second - first)
    return np.where(np.any(reached, axis=-1)[..., None, None], found, np.nan)


def output_error(
    losses: Float[np.ndarray, "*runs level"],
    outputs: Float[np.ndarray, "*runs level sample output"],
    imitation: Trajectory,
    targets: Float[np.ndarray, "sample output"],
) -> Float[np.ndarray, "*runs level"]:
    """|f - g|^2/|y|^2 of a network and its imitation at equal loss, over samples and outputs.

    Below the lowest loss that the imitation gets to, its outputs there are compared: what it cannot
    learn counts as an error, and is not left out.

    Args:
        losses: losses of the network at some moments.
        outputs: its outputs f at these.
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
