"""Gates of the units of a ReLU network in clusters, and the pathways made of them.

Follows fig. 8 and algorithm 1 of Jarvis et al., "Make Haste Slowly" (appendix B). The gates of all
hidden units over all samples, of all seeds and of snapshots throughout training, are clustered by
k-means into k clusters. Rows are clusters, columns are samples by context; the stronger the colour,
the larger the share of a cluster that is open. A pathway is made of each cluster, open where more
than half of it is; the contexts that it is open in stand on the left, with the share of the gates
that the cluster holds. Titles count the pathways of the paper's gated network that are among them,
a common one and one for each pair of contexts. Every clustering finds a common pathway, and
from four clusters on there is one for every pair of contexts. A cluster that lumps units of several
kinds together is dulled. As a control, the last panel has gates of the start alone, before anything
is learned.
"""

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes

from neuralrace.errors import UserError
from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import smallest_scale
from neuralrace.results.cells import CellResults, Results

COMMON = style.categorical(3)
"""Of clusters that are open in all contexts; the paper's are red."""
CLOSED_IN = (
    style.categorical(2),
    style.categorical(0),
    style.categorical(4),
    *sns.color_palette("Dark2"),
)
"""Of those that are closed in one context only, by context; the paper's first is green."""
OTHER = (0.35, 0.35, 0.35)
"""Of any other cluster."""


@Figure(
    layout="abcd",
    height=2.3,
    cf={"a": "Fig. 8"},
    reads={
        "contextual": {
            "metrics": "identified_centroids identified_gates identified_share reln_gates_found",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """None: rows name themselves."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Three clusters lump units of two kinds together."""
    _draw_clusters(ax, results.cell("contextual"), "training", 3)
    ax.set_ylabel("contexts a pathway is open in,\nshare of gates")


def panel_b(results: Results, ax: Axes) -> None:
    """Four clusters are the pathways of the paper's gated network."""
    _draw_clusters(ax, results.cell("contextual"), "training", 4)


def panel_c(results: Results, ax: Axes) -> None:
    """Five clusters: those four again, and a small one."""
    _draw_clusters(ax, results.cell("contextual"), "training", 5)


def panel_d(results: Results, ax: Axes) -> None:
    """Four clusters of gates of the start; one of them is open nowhere and is left out."""
    _draw_clusters(ax, results.cell("contextual"), "start", 4)


def _draw_clusters(ax: Axes, cell: CellResults, source: str, most: int) -> None:
    """Shares of clusters that are open, by sample, in colours of the pathways made of them.

    Args:
        ax: where to.
        cell: its gates are clustered.
        source: when they are from.
        most: clusters; fewer where gates make no more.

    Raises:
        UserError: gates do not make two clusters.
    """
    values = [
        smallest_scale(cell.get("metrics", f"identified_{name}", source=source))
        for name in ("centroids", "gates", "share")
    ]
    counts = values[-1].dropna("clusters", how="all")["clusters"].values
    count = int(counts[(counts > 1) & (counts <= most)].max(initial=0))
    if not count:
        raise UserError(f"{cell.name}: gates are too few kinds for 2 clusters to draw")
    centroids, gates, shares = (
        each.sel(clusters=count).dropna("pathway", how="all") for each in values
    )
    task, contexts = contextual.task(cell), np.asarray(cell.contexts)
    numbers = np.unique(contexts)
    opened = np.array([gates.values[:, contexts == c].all(axis=1) for c in numbers]).T
    colours = np.array([_colour(each) for each in opened])
    shade = centroids.values[..., None]
    ax.imshow(1 - shade * (1 - colours[:, None]), aspect="auto", interpolation="nearest")
    names = [", ".join(str(n + 1) for n in np.flatnonzero(each)) or "mixed" for each in opened]
    labels = [f"{name}\n{share:.0%}" for name, share in zip(names, shares.values, strict=True)]
    ax.set_yticks(range(len(labels)), labels)
    for row in range(1, len(labels)):
        ax.axhline(row - 0.5, color="0.5", linewidth=0.5)
    contextual.name_contexts(ax.xaxis, task)
    ax.tick_params(length=0)
    ax.set_xlabel("sample, by context")
    found = smallest_scale(cell.get("metrics", "reln_gates_found", source=source))
    share = round(float(found.sel(clusters=count)) * (task.contexts + 1))
    whose = f"$k$ = {count}" if source == "training" else "Start"
    ax.set_title(f"{whose}: {share} of {task.contexts + 1} found")


def _colour(opened: np.ndarray) -> tuple[float, float, float]:
    """Of a pathway that is open in these contexts."""
    if opened.all():
        return COMMON
    closed = np.flatnonzero(~opened)
    return CLOSED_IN[closed[0] % len(CLOSED_IN)] if len(closed) == 1 else OTHER
