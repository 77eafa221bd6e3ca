"""Gates of the units of a ReLU network in clusters, and the pathways made of them.

Follows fig. 8 and algorithm 1 of Jarvis et al., "Make Haste Slowly" (appendix B). The gates of all
700 hidden units over all samples, of ten runs and of snapshots throughout training, are put into k
clusters by k-means. Rows are clusters, as high as their share of the gates; columns are samples by
context. The stronger the colour, the larger the share of a cluster that is open. A pathway is made
of each cluster, open where more than half of it is; the contexts that it is open in stand on the
left. The paper's gated network has a common pathway and one for each pair of contexts; clusters in
grey are none of these. Where a cluster lumps units of several kinds together, a third to two thirds
of it are open, which is hatched. What differs from the source: rows have heights, and as a control
the last panel has gates of the start alone, before anything is learned.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from neuralrace.errors import UserError
from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.gate_patterns import COMMON, OTHER, colour, kinds_of
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results

NUMBERS = (3, 4, 5)
"""Numbers of clusters in the paper."""
MIXED = (1 / 3, 2 / 3)
"""Open shares of a cluster in a context between which it is mixed."""
LEAST = 0.05
"""Least share of gates in clusters without a pathway that is named."""
HATCH: dict[str, Any] = {"hatch": "/////", "edgecolor": "0.3", "linewidth": 0.0}


@Figure(
    layout="ab",
    height=2.9,
    widths=(3.0, 1.1),
    cf={"a": "Fig. 8"},
    reads={
        "contextual": {
            "metrics": "identified_centroids identified_gates identified_share",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Shades, in the colour of one kind of cluster; rows have names."""
    edge: dict[str, Any] = {"edgecolor": HATCH["edgecolor"], "linewidth": 0.5}
    return [
        style.handle("open share, any colour:", linestyle=""),
        Patch(facecolor="white", label="0", **edge),
        Patch(facecolor=(COMMON, 0.5), label="about half: mixed", **edge | HATCH),
        Patch(facecolor=COMMON, label="1", **edge),
        Patch(facecolor=OTHER, label="not in the paper", **edge),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Clusters of the gates of all of training. Three lump units of two kinds together, four are
    the pathways of the paper's gated network, and five are those four and a small one.
    """
    parts = style.split(ax, 1, len(NUMBERS))[0]
    complete = [
        number
        for part, number in zip(parts, NUMBERS, strict=True)
        if _draw_clusters(part, results.cell("contextual"), "training", number).all()
    ]
    parts[0].set_ylabel("contexts that a cluster is open in:\nits share of gates")
    ax.set_title(
        f"The paper's pathways come with {min(complete)} clusters" if complete
        else "Some of the paper's pathways are missing"
    )  # fmt: skip


def panel_b(results: Results, ax: Axes) -> None:
    """Four clusters of gates of the start; one of them is open nowhere and makes no pathway."""
    part = style.split(ax, 1)[0, 0]
    found = _draw_clusters(part, results.cell("contextual"), "start", 4)
    ax.set_title(f"{'Few' if found.mean() < 0.5 else 'Most'} pathways before training")


def _draw_clusters(
    ax: Axes, cell: CellResults, source: str, most: int
) -> Bool[np.ndarray, " kind"]:
    """Draws the open share of at most `most` clusters, by sample, in the colours of their pathways.

    Returns:
        Whether each pathway of the paper is among them.

    Raises:
        UserError: the gates have fewer than two clusters.
    """
    values = [
        metric(cell, f"identified_{name}", source=source)
        for name in ("centroids", "gates", "share")
    ]
    counts = values[-1].dropna("clusters", how="all")["clusters"].values
    count = int(counts[(counts > 1) & (counts <= most)].max(initial=0))
    if not count:
        raise UserError("gates are too few kinds for 2 clusters to draw", key=cell.name)
    centroids, gates, shares = (
        value.sel(clusters=count).dropna("pathway", how="all").values for value in values
    )
    task, contexts = contextual.task(cell), np.asarray(cell.contexts)
    by_context = [contexts == context for context in np.unique(contexts)]
    opened = np.array([gates[:, own].all(axis=1) for own in by_context]).T
    edges = np.append(0, np.cumsum(shares))
    shades = 1 - centroids[..., None] * (1 - np.array(list(map(colour, opened)))[:, None])
    ax.pcolormesh(np.arange(len(contexts) + 1) - 0.5, edges, shades)
    for column, own in enumerate(by_context):
        share = centroids[:, own].mean(axis=1)
        for row in np.flatnonzero((share > MIXED[0]) & (share < MIXED[1])):
            place = (column * task.objects - 0.5, edges[row])
            ax.add_patch(Rectangle(place, task.objects, shares[row], fill=False, **HATCH))
    names = [", ".join(map(str, np.flatnonzero(row) + 1)) or "mixed" for row in opened]
    labels = [f"{name}: {share:.0%}" for name, share in zip(names, shares, strict=True)]
    middles = edges[:-1] + shares / 2
    if 1 - edges[-1] > LEAST:
        labels.append(f"none: {1 - edges[-1]:.0%}")
        middles = np.append(middles, (1 + edges[-1]) / 2)
    ax.set_yticks(middles, labels)
    for edge in edges[1:-1]:
        ax.axhline(edge, color="0.5", linewidth=0.5)
    ax.set_ylim(1, 0)
    contextual.name_contexts(ax.xaxis, task)
    ax.tick_params(length=0)
    ax.set_xlabel("sample, by context")
    designed = kinds_of(task.contexts)
    found = (opened == designed[:, None]).all(axis=-1).any(axis=-1)
    ax.set_title(f"$k$ = {count}: {found.sum()} of {len(found)} pathways", loc="center")
    return found
