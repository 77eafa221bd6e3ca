"""The least loss that the gates of averaged pathways allow, in samples and beyond."""

import numpy as np
from jaxtyping import Float

from neuralrace.config.cell import Ensemble
from neuralrace.datasets import Data
from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.networks.gated import Gated
from neuralrace.results.cells import CellResults
from neuralrace.theory.frozen_gates import gated_moments
from neuralrace.theory.gating_loss import (
    GatingLosses,
    gating_gain,
    gating_losses,
    off_block_shares,
)
from neuralrace.theory.printed_equations import written_gain

NAMES = (
    "optimal_loss",
    "optimal_fresh_loss",
    "gating_rank",
    "second_moment_diagonality",
    "precision_diagonality",
    "open_fraction",
    "overlap_of_gates",
)
"""What `_gating` gives, in its order."""
EQUATIONS = ("12", "14", "15", "17")


@Metric(
    requires="gated mean_readout unit_pathways fresh_samples gates_of_any_sample one_output "
    "sees_all_inputs",
    variables={
        "optimal_loss": ("", "loss of the least-squares weights of the gates, on their samples"),
        "optimal_fresh_loss": ("", "loss of the same weights on fresh samples"),
        "gating_rank": ("", "directions of the gated inputs, over all pathways"),
        "second_moment_diagonality": (
            "",
            "squared entries of the second moment that couple pathways",
        ),
        "precision_diagonality": (
            "",
            "squared entries of the inverse second moment that couple pathways",
        ),
        "open_fraction": ("", "mean of all gates"),
        "overlap_of_gates": ("", "mean product of the gates of two pathways"),
        "equation_loss": ("equation", "least loss by an equation of the notes"),
    },
)
def gating_loss(cell: CellResults) -> Values:
    """What gates leave of the loss, and how they divide the inputs, whatever the weights.

    Each seed stands for a fixed sample of its own, drawn as the dataset draws its, and for random
    gates of its own; fresh samples are disjoint from all of these. Losses are as training
    normalises them. The diagonality of a matrix is the share of its squared entries off the
    diagonal blocks of the pathways, 0 where it is block-diagonal.

    The least loss is also given by equation, <(y - yhat)^2> on the samples of the fit: by its
    residuals (12), by moments (14), by means and moments of the classes (15), and as eq. 17 has it,
    (1 - gain)/2 with products of means for second moments.

    Returns:
        Values along `seed`; equations 15 and 17, which are for balanced classes, are NaN unless
        targets are 1 and 0, the overlap is for a single pathway.

    Source: notes on localisation, eqs. 12 to 17.
    """
    spec, seeds = cell.spec, cell.trajectory["seed"]
    rows, equations = [], []
    for seed in map(int, seeds.values):
        data, fresh = (sampled(spec, ahead) for ahead in (seed, seed + len(seeds)))
        network = _redrawn(cell.gated, seed)
        gates = network.gates.gates(data)
        losses, row = _gating(data, gates, fresh, network.gates.gates(fresh))
        rows.append(row)
        equations.append(_by_equation(data, gates, losses))
    factor = spec.training.loss.factor(len(cell.data.x))
    values = {name: np.array([row[name] for row in rows]) for name in NAMES}
    for name in ("optimal_loss", "optimal_fresh_loss"):
        values[name] = factor * values[name]
    by_equation = seeds.expand_dims(equation=list(EQUATIONS), axis=1)
    found = {name: seeds.copy(data=each) for name, each in values.items()}
    return found | {"equation_loss": by_equation.copy(data=np.array(equations))}


def _redrawn(network: Gated, ahead: int) -> Gated:
    """The network with the random gates of a seed that is some further on, if it has any."""
    gates = network.gates
    if not hasattr(gates, "seed"):
        return network
    drawn = gates.model_copy(update={"seed": gates.seed + ahead})
    return network.model_copy(update={"gates": drawn})


def _gating(
    data: Data,
    gates: Float[np.ndarray, "unit sample"],
    fresh: Data,
    fresh_gates: Float[np.ndarray, "unit fresh"],
) -> tuple[GatingLosses, dict[str, float]]:
    """Losses of one sample, and values by name, losses as 1/2 <(y - yhat)^2>."""
    y, units = data.y[:, 0], len(gates)
    losses = gating_losses(data.x, y, gates, fresh.x, fresh.y[:, 0], fresh_gates)
    diagonality = off_block_shares(losses.second)
    both = (gates.sum(axis=0) ** 2 - (gates**2).sum(axis=0)).mean()
    overlap = both / (units * (units - 1)) if units > 1 else np.nan
    values = (losses.train, losses.fresh, losses.rank, *diagonality, gates.mean(), overlap)
    return losses, dict(zip(NAMES, values, strict=True))


def _by_equation(
    data: Data, gates: Float[np.ndarray, "unit sample"], losses: GatingLosses
) -> list[float]:
    """The least loss by each of `EQUATIONS`."""
    y = data.y[:, 0]
    found = [losses.residual, 2 * losses.train]
    if set(y) != {0.0, 1.0}:
        return [*found, np.nan, np.nan]
    means, seconds = [], []
    for target in (0.0, 1.0):
        of = y == target
        mean, second, _ = gated_moments(data.x[of], np.ones(of.sum()), gates[:, of])
        means.append(mean.ravel())
        seconds.append(second.reshape(mean.size, mean.size))
    (zero, one), (second_zero, second_one) = means, seconds
    gain = gating_gain(one, second_one, second_zero)
    return [*found, (1 - gain) / 2, (1 - written_gain(one, zero)) / 2]


def sampled(ensemble: Ensemble, ahead: int) -> Data:
    """The fixed sample of a run's dataset whose seed is some further on.

    Args:
        ensemble: of a dataset that draws samples from one law, as `fresh_samples` needs it.
        ahead: how much larger the seed is.
    """
    dataset = ensemble.dataset
    return dataset.model_copy(update={"seed": dataset.seed + ahead}).load()
