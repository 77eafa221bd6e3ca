"""The best gates: of all tables on a few inputs, and by descent beside those of ReLU networks."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.stats import rankdata

from neuralrace.datasets import Data
from neuralrace.datasets.random_streams import generator
from neuralrace.extensions.registry import Metric
from neuralrace.metrics.gates.gating_loss import sampled
from neuralrace.metrics.receptive_fields.receptive_fields import weights_on_ring
from neuralrace.metrics.values import Values, per_run
from neuralrace.networks.gates.half_space import half_spaces
from neuralrace.results.cells import CellResults
from neuralrace.theory.best_gates import all_tables, descended_directions
from neuralrace.theory.gating_loss import gating_losses, off_block_shares

Directions = Float[np.ndarray, "unit input"]
Rule = Callable[[Float[np.ndarray, "sample input"], Directions], Float[np.ndarray, "unit sample"]]
DRAWS = 40
"""Random half-spaces of which one descends."""
KINDS = ("any", "half-spaces", "tilings")
"""Tables of which the best is taken."""
NORMALS = 2000
"""Random normals, which find all half-spaces of a few inputs."""
SOURCES = (
    "random half-spaces",
    "descended half-spaces",
    "random tiling",
    "descended tiling",
    "trained",
)


@Metric(
    requires="gated mean_readout unit_pathways fresh_samples one_output few_gate_tables",
    variables={
        "table_excess": ("gates_from", "least loss of a table above that of any function"),
        "table_diagonality": ("gates_from", "squared precision entries that couple units"),
        "diagonality_correlation": ("", "rank correlation of that share and loss, full rank"),
        "directions_correlation": ("", "rank correlation of loss and directions of gated inputs"),
    },
)
def gate_tables(cell: CellResults) -> Values:
    """Losses of all tables of gates on the distinct inputs of a fixed sample, with optimal weights.

    The sample, one for each seed, is the distribution: nothing is estimated. Tables are those with
    the least loss of all, of half-spaces, and of tilings (one gate open on each input). Spearman
    correlations are over all tables, of `diagonality_correlation` over those whose second moment
    has an inverse.

    Source: notes on localisation, eqs. 14 to 16 and what follows eq. 15.
    """
    seeds, rows = cell.trajectory["seed"], []
    units = cell.gated.gates.count(cell.spec.dataset)
    for seed in map(int, seeds.values):
        data = sampled(cell.spec, seed)
        points, which, counts = np.unique(data.x, axis=0, return_inverse=True, return_counts=True)
        target = np.bincount(which.ravel(), data.y[:, 0]) / counts
        gates, excess, share, rank = all_tables(points, counts / len(data.x), target, units)
        normals = generator(0, "half-spaces").normal(size=(NORMALS, points.shape[1]))
        sides = np.unique(half_spaces(points, normals), axis=0)
        half = (gates[:, :, None] == sides).all(axis=-1).any(axis=-1).all(axis=-1)
        tilings = (gates.sum(axis=1) == 1).all(axis=1)
        best = [np.where(kind, excess, np.inf).argmin() for kind in (True, half, tilings)]
        full = rank == points.shape[1] * units
        correlations = _correlation(excess[full], share[full]), _correlation(excess, rank)
        rows.append((excess[best], share[best], *correlations))
    excess, share, *correlations = map(np.array, zip(*rows, strict=True))
    by_kind = seeds.expand_dims(gates_from=list(KINDS), axis=1)
    names = "diagonality_correlation", "directions_correlation"
    return {
        "table_excess": by_kind.copy(data=excess),
        "table_diagonality": by_kind.copy(data=share),
    } | {name: seeds.copy(data=each) for name, each in zip(names, correlations, strict=True)}


@Metric(
    requires="layered relu one_hidden mean_readout squared_error fresh_samples one_output",
    observables="weights",
    variables={
        "descended_loss": ("gates_from", "loss of the least-squares weights on fresh samples"),
        "descended_diagonality": ("gates_from", "squared precision entries that couple units"),
        "random_moment_correlation": ("", "rank correlation of loss and coupling, random gates"),
        "random_precision_correlation": ("", "the same for coupling in the inverse moment"),
    },
)
def gate_descent(cell: CellResults) -> Values:
    """Least loss of gates before and after descent on the gates, and of those of a ReLU network.

    Half-spaces, and the tiling by as many directions, start from the same random directions for
    each seed, and descend on its own fixed sample. Gates are binary again where losses are taken,
    which have the normalisation of training. Those of diverged networks are NaN.

    Spearman correlations are over random half-spaces, of the loss and the share of the squared
    entries that couple units, in the second moment of gated inputs and in its inverse.

    Source: notes on localisation, eqs. 12 to 17 and what follows eq. 15.
    """
    end, seeds = weights_on_ring(cell)[0][:, :, -1], cell.trajectory["seed"]
    values, correlations = np.full((3, *end.shape[:2], len(SOURCES)), np.nan), []
    for place, seed in enumerate(map(int, seeds.values)):
        data, fresh = (sampled(cell.spec, offset) for offset in (seed, seed + len(seeds)))
        drawn = generator(seed, "half-spaces").normal(size=(DRAWS, *end.shape[2:]))
        loss, *shares = np.transpose([_measured(half_spaces, each, data, fresh) for each in drawn])
        correlations.append([_correlation(loss, share) for share in shares])
        start = drawn[0] / np.linalg.norm(drawn[0], axis=1, keepdims=True)
        half, tiling = (
            descended_directions(data.x, data.y[:, 0], start, tiled) for tiled in (False, True)
        )
        for scale, trained in enumerate(end[:, place]):
            for number, directions in enumerate((start, half, start, tiling, trained)):
                if np.isfinite(directions).all():
                    rule = _tiles if "tiling" in SOURCES[number] else half_spaces
                    values[:, scale, place, number] = _measured(rule, directions, data, fresh)
    loss, _, share = (per_run(cell, each, gates_from=list(SOURCES)) for each in values)
    loss *= cell.spec.training.loss.factor(len(cell.data.x))
    moment, precision = (seeds.copy(data=each) for each in np.transpose(correlations))
    return {
        "descended_loss": loss,
        "descended_diagonality": share,
        "random_moment_correlation": moment,
        "random_precision_correlation": precision,
    }


def _measured(
    rule: Rule, directions: Directions, data: Data, fresh: Data
) -> tuple[float, float, float]:
    """Loss on fresh samples, and shares that couple units in the second moment and its inverse."""
    gates, fresh_gates = (rule(each.x, directions) for each in (data, fresh))
    losses = gating_losses(data.x, data.y[:, 0], gates, fresh.x, fresh.y[:, 0], fresh_gates)
    return losses.fresh, *off_block_shares(losses.second, losses.modes)


def _tiles(
    x: Float[np.ndarray, "sample input"], directions: Directions
) -> Float[np.ndarray, "unit sample"]:
    """1 for the direction with the largest overlap with a sample."""
    return np.eye(len(directions))[:, (directions @ x.T).argmax(axis=0)]


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's rank correlation."""
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])
