"""Least loss that the gates of averaged pathways allow, on the samples and on fresh ones."""

import numpy as np
from jaxtyping import Float

from neuralrace.config.cell import Ensemble
from neuralrace.datasets import Data
from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
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
"""Values of `_gating`, in its order."""
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
    """Least loss of fixed gates over all weights, and how the gates divide the inputs.

    Each seed has its own fixed sample of the distribution, and its own random gates. Fresh samples
    are disjoint from all of these. Losses have the normalisation of training. The diagonality of a
    matrix is the share of its squared entries off the diagonal blocks of the pathways: 0 if it is
    block-diagonal.

    The least loss <(y - yhat)^2> on the fixed sample is also computed by equation: from residuals
    (12), from moments (14), and from means and moments of the classes (15). Equation 17 as printed
    is (1 - gain)/2, with products of means in place of second moments. Equations that hold agree.
    Equations 15 and 17 are NaN unless the targets are 1 and 0. The overlap is NaN for a single
    pathway.

    Source: notes on localisation, eqs. 12 to 17.
    """
    spec, seeds = cell.spec, cell.trajectory["seed"]
    rows, equations = [], []
    for seed in map(int, seeds.values):
        data, fresh = (sampled(spec, offset) for offset in (seed, seed + len(seeds)))
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
    return {name: seeds.copy(data=array) for name, array in values.items()} | {
        "equation_loss": by_equation.copy(data=np.array(equations))
    }


def _redrawn(network: Gated, offset: int) -> Gated:
    """The network with the gates of its gate seed plus an offset, if gates are drawn."""
    gates = network.gates
    if not hasattr(gates, "seed"):
        return network
    drawn = gates.model_copy(update={"seed": gates.seed + offset})
    return network.model_copy(update={"gates": drawn})


def _gating(
    data: Data,
    gates: Float[np.ndarray, "unit sample"],
    fresh: Data,
    fresh_gates: Float[np.ndarray, "unit fresh"],
) -> tuple[GatingLosses, dict[str, float]]:
    """Losses of one fixed sample, and its values by name; losses are 1/2 <(y - yhat)^2>."""
    y, units = data.y[:, 0], len(gates)
    losses = gating_losses(data.x, y, gates, fresh.x, fresh.y[:, 0], fresh_gates)
    diagonality = off_block_shares(losses.second, losses.modes)
    pairs = (gates.sum(axis=0) ** 2 - (gates**2).sum(axis=0)).mean()
    overlap = pairs / (units * (units - 1)) if units > 1 else np.nan
    values = (losses.train, losses.fresh, losses.modes.rank, *diagonality, gates.mean(), overlap)
    return losses, dict(zip(NAMES, values, strict=True))


def _by_equation(
    data: Data, gates: Float[np.ndarray, "unit sample"], losses: GatingLosses
) -> list[float]:
    """The least loss by each of `EQUATIONS`."""
    y = data.y[:, 0]
    least = [losses.residual, 2 * losses.train]
    if set(y) != {0.0, 1.0}:
        return [*least, np.nan, np.nan]
    ones = y == 1
    one, second_one, _ = gated_moments(data.x[ones], y[ones], gates[:, ones])
    # what is left of all samples is the class of zeros
    zero = gates[:, ~ones] @ data.x[~ones] / np.sum(~ones)
    second_zero = (losses.second - ones.mean() * second_one) / np.mean(~ones)
    second_one, second_zero = (each.reshape(one.size, -1) for each in (second_one, second_zero))
    one, zero = one.ravel(), zero.ravel()
    gain = gating_gain(one, second_one, second_zero)
    return [*least, (1 - gain) / 2, (1 - written_gain(one, zero)) / 2]


def sampled(ensemble: Ensemble, offset: int) -> Data:
    """A fixed sample of the same distribution: the dataset with its seed plus an offset.

    Args:
        ensemble: its dataset meets the requirement `fresh_samples`.
        offset: number that is added to the seed.
    """
    dataset = ensemble.dataset
    return dataset.model_copy(update={"seed": dataset.seed + offset}).load()
