"""The least loss that the gates of averaged pathways allow, in samples and beyond."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.gates.listed import Listed
from neuralrace.gates.per_example import PerExample
from neuralrace.metrics.describe import Values, described
from neuralrace.records.evidence import Evidence
from neuralrace.spec import Gated, Graph, Layered, Routing, Run
from neuralrace.theory.as_written import written_gain
from neuralrace.theory.frozen_gates import gated_moments
from neuralrace.theory.gating_loss import gating_gain, gating_losses, off_block_shares

NAMES = {
    "optimal_loss": "loss of the least-squares weights of the gates, on their samples",
    "optimal_fresh_loss": "loss of the same weights on fresh samples",
    "gating_rank": "directions of the gated inputs, over all pathways",
    "second_moment_diagonality": "squared entries of the second moment that couple pathways",
    "precision_diagonality": "squared entries of the inverse second moment that couple pathways",
    "written_gain": "gain of the gates by eq. 17 as written",
    "corrected_gain": "gain of the gates by eq. 17 with second moments",
    "open_fraction": "mean of all gates",
    "overlap_of_gates": "mean product of the gates of two pathways",
}


def gating_loss(evidence: Evidence) -> Values:
    """What gates leave of the loss, and how they divide the inputs, whatever the weights.

    Each seed stands for a fixed sample of its own, drawn as the dataset draws its; fresh samples
    are disjoint from all of these. Losses are as training normalises them. The diagonality of a
    matrix is the share of its squared entries off the diagonal blocks of the pathways, 0 where it
    is block-diagonal. A gain is the share of <y^2> that a gating explains of two balanced classes
    with targets 1 and 0; the class with the larger target counts as the one of 1.

    Returns:
        Values along `seed`; gains are NaN unless there are two targets, the overlap is for a
        single pathway.

    Raises:
        UserError: the network has no given gates, pathways of more than one unit or another
            readout than their mean, or the dataset no law or more than one output.

    Source: notes on localisation, eqs. 12 to 17.
    """
    cell, seeds = evidence.cell, evidence.trajectory["seed"]
    user = "metrics: gating_loss"
    rows = []
    for seed in map(int, seeds.values):
        data, fresh = (sampled(cell, ahead, user) for ahead in (seed, seed + len(seeds)))
        network, gates = averaged_gates(cell.network, data, user)
        rows.append(_gating(data, gates, fresh, gating_rule(network, user)(fresh)))
    factor = cell.training.loss.factor(len(evidence.data.x))
    values = {name: np.array([row[name] for row in rows]) for name in NAMES}
    for name in ("optimal_loss", "optimal_fresh_loss"):
        values[name] = factor * values[name]
    return {
        name: described(seeds.copy(data=values[name]), long_name)
        for name, long_name in NAMES.items()
    }


def _gating(
    data: Data,
    gates: Float[np.ndarray, "unit sample"],
    fresh: Data,
    fresh_gates: Float[np.ndarray, "unit fresh"],
) -> dict[str, float]:
    """Values of one sample by name, losses as 1/2 <(y - yhat)^2>."""
    y, units = data.y[:, 0], len(gates)
    losses = gating_losses(data.x, y, gates, fresh.x, fresh.y[:, 0], fresh_gates)
    diagonality = off_block_shares(losses.second)
    written, corrected = _gains(data, gates)
    both = (gates.sum(axis=0) ** 2 - (gates**2).sum(axis=0)).mean()
    values = (losses.train, losses.fresh, losses.rank, *diagonality, written, corrected)
    overlap = both / (units * (units - 1)) if units > 1 else np.nan
    return dict(zip(NAMES, (*values, gates.mean(), overlap), strict=True))


def _gains(data: Data, gates: Float[np.ndarray, "unit sample"]) -> tuple[float, float]:
    """Gain by eq. 17 as written and with second moments; NaN unless there are two targets."""
    y = data.y[:, 0]
    targets = np.unique(y)
    if len(targets) != 2:
        return np.nan, np.nan
    means, seconds = [], []
    for target in targets:
        of = y == target
        mean, second, _ = gated_moments(data.x[of], np.ones(of.sum()), gates[:, of])
        means.append(mean.ravel())
        seconds.append(second.reshape(mean.size, mean.size))
    (zero, one), (second_zero, second_one) = means, seconds
    return written_gain(one, zero), gating_gain(one, second_one, second_zero)


def sampled(run: Run, ahead: int, user: str) -> Data:
    """The fixed sample of a run's dataset whose seed is some further on.

    Args:
        run: of a dataset that draws samples from one law.
        ahead: how much larger the seed is.
        user: what needs it, for the message.

    Raises:
        UserError: the dataset is one sample, or its seed draws the task.
    """
    dataset = run.dataset
    seed = getattr(dataset, "seed", None)
    if seed is None or dataset.mixture() is None:
        raise UserError(
            f"dataset.name: {dataset.name!r}: {user} needs fresh samples of the same law; use "
            "nonlinear_gaussian"
        )
    return dataset.model_copy(update={"seed": seed + ahead}).load()


def averaged_gates(
    network: Layered | Gated | Graph | Routing, data: Data, user: str
) -> tuple[Gated, Float[np.ndarray, "unit sample"]]:
    """A network that averages pathways of one unit, and its gates.

    Args:
        network: as it is configured.
        data: the samples.
        user: what needs such a network, for the message.

    Raises:
        UserError: it is another network, the dataset has several outputs, or the gates do not fit
            it.
    """
    if (
        not isinstance(network, Gated)
        or network.layered
        or network.readout != "mean"
        or network.hidden != (1,)
        or network.widths
    ):
        raise UserError(
            f"network: {user} is for gated networks with given gates, hidden [1] and readout mean"
        )
    if data.y.shape[1] != 1:
        raise UserError(f"dataset: has {data.y.shape[1]} outputs: {user} is for one")
    wiring = network.wiring(data)
    if wiring.sees:
        raise UserError(f"network.gates: {user} is for pathways that see all inputs")
    return network, wiring.pathway_gates


def gating_rule(network: Gated, user: str) -> Callable[[Data], Float[np.ndarray, "unit sample"]]:
    """What gives the gates of a network on any samples.

    Args:
        network: with given gates.
        user: what needs it, for the message.

    Raises:
        UserError: the gates are those of single samples.
    """
    if isinstance(network.gates, Listed | PerExample):
        raise UserError(
            f"network.gates.name: {network.gates.name!r}: gates of single samples say nothing of "
            f"others, which {user} needs; use half_space, bumps or tiling"
        )
    return network.gates.gates
