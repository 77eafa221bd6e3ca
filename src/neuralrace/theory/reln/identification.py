"""Gate identification: the few gating patterns that the units of a ReLU network share.

Source: Jarvis et al., "Make Haste Slowly", appendix B, algorithm 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from neuralrace.errors import UserError
from neuralrace.networks.gated import Gated
from neuralrace.networks.gates.listed import Listed
from neuralrace.theory.reln.gates import relu_gates

# Starts of k-means, of which the best counts.
STARTS = 10

Source = Literal["training", "start", "end"]
SNAPSHOTS: dict[Source, slice] = {
    "training": slice(None),
    "start": slice(None, 1),
    "end": slice(-1, None),
}
"""Snapshots whose gates are clustered: all of training, the first alone, or the last alone."""


class NoGatingError(UserError):
    """Gates from which no network with so many pathways can be made."""


@dataclass(frozen=True)
class Gating:
    """Pathways that stand for clusters of units.

    Pathways come by the number of samples that they are open on, most first; of equally many, the
    one that is open on the first sample where they differ comes first.
    """

    centroids: Float[np.ndarray, "pathway sample"]
    """Share of a cluster's rows that are open on each sample."""
    gates: Bool[np.ndarray, "pathway sample"]
    """Where more than half of a cluster's rows are open."""
    shares: Float[np.ndarray, " pathway"]
    """Share of all active rows in each cluster. What lacks to 1 is in clusters that are closed
    everywhere and make no pathway."""
    widths: Int[np.ndarray, " pathway"]
    """Units of each pathway."""

    @property
    def network(self) -> Gated:
        """The gated linear network with these pathways; each sees all inputs.

        Raises:
            NoGatingError: no pathway is open on some sample.
        """
        closed = np.flatnonzero(~self.gates.any(axis=0))
        if closed.size:
            raise NoGatingError(
                f"pathways: {len(self.gates)}: none is open on {closed.size} of "
                f"{self.gates.shape[1]} samples, the first of them sample {closed[0]}; use more"
            )
        rows = tuple(tuple(row) for row in self.gates.astype(float).tolist())
        return Gated(
            name="gated",
            hidden=(1,),
            widths=tuple(self.widths.tolist()),
            gates=Listed(name="listed", rows=rows),
        )


def gate_patterns(
    weights: Sequence[Float[np.ndarray, "*nets snapshot _out _in"]],
    x: Float[np.ndarray, "sample input"],
    source: Source = "training",
) -> Bool[np.ndarray, "row sample"]:
    """Gates of all units of the first hidden layer, of all networks and snapshots, row by row.

    Args:
        weights: W_1 ... W_L of networks without biases.
        x: inputs.
        source: which snapshots to take.
    """
    chosen = [weight[..., SNAPSHOTS[source], :, :] for weight in weights[:2]]
    return relu_gates(chosen, x)[0].reshape(-1, len(x))


def identify(
    patterns: Bool[np.ndarray, "row sample"], pathways: int, units: int, seed: int = 0
) -> Gating:
    """Clusters gate patterns into pathways, by k-means.

    Rows that are never active are dropped. Many rows are equal: the distinct ones are clustered,
    weighted by how often they occur, which has the same optimum and is much faster. A cluster whose
    gate is closed everywhere makes no pathway; the others share its units.

    Args:
        patterns: gates of units over the samples, stacked from any networks and snapshots.
        pathways: number of clusters.
        units: hidden units to share out in proportion to the sizes of the clusters, by largest
            remainder, at least one each.
        seed: random state of k-means.

    Raises:
        UserError: less than one pathway.
        NoGatingError: every row or every cluster is closed everywhere, or there are fewer distinct
            rows or fewer units than pathways.

    Source: Jarvis et al., "Make Haste Slowly", appendix B, algorithm 1.
    """
    if pathways < 1:
        raise UserError(f"pathways: {pathways}: use at least 1")
    active = patterns[patterns.any(axis=1)]
    if not len(active):
        raise NoGatingError(
            "gates: every unit is closed on every sample; use another init scale or learning rate"
        )
    # packed into bytes, which sort several times faster
    _, first, counts = np.unique(
        np.packbits(active, axis=1), axis=0, return_index=True, return_counts=True
    )
    if pathways > len(first):
        raise NoGatingError(
            f"pathways: {pathways}: there are only {len(first)} distinct gate patterns; "
            "use at most that"
        )
    rows = active[first].astype(float)
    clustering = KMeans(pathways, n_init=STARTS, tol=0, random_state=seed)  # pyright: ignore
    # threads would wait for each other for most of the time, and add up in an order of their own
    with threadpool_limits(1, user_api="openmp"):
        labels = np.asarray(clustering.fit(rows, sample_weight=counts).labels_)
    # sums of whole numbers are exact, so that half of a cluster is half of it on every machine
    member = np.equal.outer(np.arange(pathways), labels) * counts.astype(float)
    sizes = member.sum(axis=1)
    centroids = member @ rows / sizes[:, None]
    gates = centroids > 0.5
    order = [number for number in _order(centroids, gates) if gates[number].any()]
    if not order:
        raise NoGatingError(f"pathways: {pathways}: every cluster is closed everywhere; use more")
    return Gating(
        centroids=centroids[order],
        gates=gates[order],
        shares=sizes[order] / sizes.sum(),
        widths=_widths(sizes[order], units),
    )


def _order(
    centroids: Float[np.ndarray, "pathway sample"], gates: Bool[np.ndarray, "pathway sample"]
) -> list[int]:
    """Numbers of the pathways in their order; see `Gating`."""
    keys = [
        (-gate.sum(), *~gate, *-centroid) for gate, centroid in zip(gates, centroids, strict=True)
    ]
    return sorted(range(len(keys)), key=keys.__getitem__)


def _widths(sizes: Float[np.ndarray, " pathway"], units: int) -> Int[np.ndarray, " pathway"]:
    """Units in proportion to sizes, at least one each, that add up to all units.

    Raises:
        NoGatingError: fewer units than pathways.
    """
    if units < len(sizes):
        raise NoGatingError(
            f"pathways: {len(sizes)}: the number of hidden units is {units}; use at most that"
        )
    quotas = units * sizes / sizes.sum()
    widths = np.maximum(np.floor(quotas).astype(int), 1)
    while widths.sum() < units:
        widths[np.argmax(quotas - widths)] += 1
    while widths.sum() > units:  # what went to pathways below one unit comes from the others
        widths[np.argmin(np.where(widths > 1, quotas - widths, np.inf))] -= 1
    return widths
