"""Gate identification: clusters the gating patterns of ReLU units into a few pathways.

Source: Jarvis et al., "Make Haste Slowly", appendix B, algorithm 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from threadpoolctl import threadpool_limits

from neuralrace.errors import UserError
from neuralrace.extensions.representation import short_repr
from neuralrace.networks.gated import Gated
from neuralrace.networks.gates.listed import Listed
from neuralrace.theory.reln.gates import relu_gates

KMEANS_STARTS = 10
"""Number of k-means runs, of which the best is kept."""

Source = Literal["training", "start", "end"]
SNAPSHOTS: dict[Source, slice] = {
    "training": slice(None),
    "start": slice(None, 1),
    "end": slice(-1, None),
}
"""Snapshots whose gates are clustered: all, the first only, or the last only."""


class NoGatingError(UserError):
    """No network with so many pathways can be made from the gates."""


@dataclass(frozen=True)
class Gating:
    """Pathways, one for each cluster of gating patterns.

    Pathways are sorted by the number of samples on which they are open, largest first. Among equal
    numbers, the pathway that is open on the first sample where they differ comes first.
    """

    centroids: Float[np.ndarray, "pathway sample"]
    """Share of a cluster's patterns that are open on each sample."""
    gates: Bool[np.ndarray, "pathway sample"]
    """Samples on which more than half of a cluster's patterns are open."""
    shares: Float[np.ndarray, " pathway"]
    """Share of all active patterns in each cluster. The sum is below 1 where some cluster is closed
    everywhere and makes no pathway."""
    widths: Int[np.ndarray, " pathway"]
    """Units of each pathway."""

    __repr__ = short_repr

    @property
    def network(self) -> Gated:
        """The gated linear network with these pathways, each of which sees all inputs.

        Raises:
            NoGatingError: there is a sample on which no pathway is open.
        """
        closed = np.flatnonzero(~self.gates.any(axis=0))
        if closed.size:
            raise NoGatingError(
                f"none is open on {closed.size} of {self.gates.shape[1]} samples, the first of "
                f"them sample {closed[0]}",
                key="pathways",
                value=len(self.gates),
                remedy="use more",
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
    """Gating patterns of the units of the last hidden layer, a row per unit, network and snapshot.

    Args:
        weights: W_1 ... W_L of networks without biases.
        x: inputs.
        source: name of the snapshots, a key of `SNAPSHOTS`.
    """
    selected = [weight[..., SNAPSHOTS[source], :, :] for weight in weights]
    return relu_gates(selected, x)[-1].reshape(-1, len(x))


def identify(
    patterns: Bool[np.ndarray, "row sample"], pathways: int, units: int, seed: int = 0
) -> Gating:
    """Clusters gating patterns into pathways by k-means.

    Patterns that are closed on every sample are dropped. Many patterns are equal, so the distinct
    ones are clustered and weighted by their counts: the optimum is the same, and k-means is much
    faster. A cluster whose gate is closed everywhere makes no pathway; the others share its units.

    Args:
        patterns: gates of units over the samples, stacked from any networks and snapshots.
        pathways: number of clusters.
        units: number of hidden units. They are distributed in proportion to the sizes of the
            clusters by largest remainder, at least one each.
        seed: random state of k-means.

    Raises:
        UserError: there is less than one pathway.
        NoGatingError: every pattern or every cluster is closed everywhere, or there are fewer
            distinct patterns or fewer units than pathways.

    Source: Jarvis et al., "Make Haste Slowly", appendix B, algorithm 1.
    """
    if pathways < 1:
        raise UserError("no pathway", key="pathways", value=pathways, remedy="use at least 1")
    active = patterns[patterns.any(axis=1)]
    if not len(active):
        raise NoGatingError(
            "every unit is closed on every sample",
            key="gates",
            remedy="use another init scale or learning rate",
        )
    # Rows of bits are packed into bytes, which sort several times faster.
    _, first, counts = np.unique(
        np.packbits(active, axis=1), axis=0, return_index=True, return_counts=True
    )
    if pathways > len(first):
        raise NoGatingError(
            f"there are only {len(first)} distinct gate patterns",
            key="pathways",
            value=pathways,
            remedy="use at most that",
        )
    from sklearn.cluster import KMeans  # takes a second to import

    rows = active[first].astype(float)
    clustering = KMeans(pathways, n_init=KMEANS_STARTS, tol=0, random_state=seed)  # pyright: ignore
    # Threads would mostly wait for each other, and would make the order of summation random.
    with threadpool_limits(1, user_api="openmp"):
        labels = np.asarray(clustering.fit(rows, sample_weight=counts).labels_)
    # Sums of whole numbers are exact: the threshold of one half is the same on all machines.
    member = np.equal.outer(np.arange(pathways), labels) * counts.astype(float)
    sizes = member.sum(axis=1)
    centroids = member @ rows / sizes[:, None]
    gates = centroids > 0.5
    order = [number for number in _order(centroids, gates) if gates[number].any()]
    if not order:
        raise NoGatingError(
            "every cluster is closed everywhere", key="pathways", value=pathways, remedy="use more"
        )
    return Gating(
        centroids=centroids[order],
        gates=gates[order],
        shares=sizes[order] / sizes.sum(),
        widths=_widths(sizes[order], units),
    )


def _order(
    centroids: Float[np.ndarray, "pathway sample"], gates: Bool[np.ndarray, "pathway sample"]
) -> list[int]:
    """Indices that sort the pathways; see `Gating`."""
    keys = [
        (-gate.sum(), *~gate, *-centroid) for gate, centroid in zip(gates, centroids, strict=True)
    ]
    return sorted(range(len(keys)), key=keys.__getitem__)


def _widths(sizes: Float[np.ndarray, " pathway"], units: int) -> Int[np.ndarray, " pathway"]:
    """Numbers of units in proportion to sizes, at least one each, that add up to `units`.

    Raises:
        NoGatingError: there are fewer units than pathways.
    """
    if units < len(sizes):
        raise NoGatingError(
            f"there are only {units} hidden units",
            key="pathways",
            value=len(sizes),
            remedy="use at most that",
        )
    quotas = units * sizes / sizes.sum()
    widths = np.maximum(np.floor(quotas).astype(int), 1)
    while widths.sum() < units:
        widths[np.argmax(quotas - widths)] += 1
    while widths.sum() > units:  # pathways raised to one unit take from the others
        widths[np.argmin(np.where(widths > 1, quotas - widths, np.inf))] -= 1
    return widths
