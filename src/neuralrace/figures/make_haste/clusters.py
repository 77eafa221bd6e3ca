"""Gates of the units of a ReLU network in clusters, and the pathways made of them.

Follows fig. 8 and algorithm 1 of Jarvis et al., "Make Haste Slowly" (appendix B). The gates of all
hidden units over all samples, of all seeds and of snapshots throughout training, are clustered by
k-means into k clusters. Rows are clusters, columns are samples by context; the stronger the colour,
the larger the share of a cluster that is open. A pathway is made of each cluster, open where more
than half of it is; the contexts that it is open in stand on the left, with the share of the gates
that the cluster holds. The paper's gated network has a common pathway and one for each pair of
contexts; titles tell whether one of them is missing. Where a cluster lumps units of several kinds
together, a third to two thirds of it are open, which is hatched. As a control, the last panel
has gates of the start alone, before anything is learned. Gates are of 700 units in each of ten
runs.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from neuralrace.errors import UserError
from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.gate_patterns import colour
from neuralrace.figures.sweeps import metric
from neuralrace.results.cells import CellResults, Results

MIXED = (1 / 3, 2 / 3)
"""Open shares of a cluster in a context between which it is mixed."""
HATCH: dict[str, Any] = {"hatch": "/////", "edgecolor": "0.3", "linewidth": 0.0}
WORDS = {3: "three", 4: "four", 5: "five", 6: "six"}


@Figure(
    layout="abcd",
    height=2.9,
    cf={"a": "Fig. 8", "b": "Fig. 8", "c": "Fig. 8"},
    reads={
        "contextual": {
            "metrics": "identified_centroids identified_gates identified_share reln_gates_found",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Shades; rows have names."""
    shades = {"all units of a cluster are open": 0.0, "none": 1.0}
    return [
        *(
            Patch(facecolor=str(0.35 + 0.65 * shade), edgecolor="0.35", linewidth=0.5, label=name)
            for name, shade in shades.items()
        ),
        Patch(facecolor="0.75", label="about half: mixed", **HATCH),
    ]


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
    """Draws the open share of at most `most` clusters, by sample, in the colours of their pathways.

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
        value.sel(clusters=count).dropna("pathway", how="all") for value in values
    )
    task, contexts = contextual.task(cell), np.asarray(cell.contexts)
    numbers = np.unique(contexts)
    opened = np.array([gates.values[:, contexts == c].all(axis=1) for c in numbers]).T
    colours = np.array(list(map(colour, opened)))
    shade = centroids.values[..., None]
    ax.imshow(1 - shade * (1 - colours[:, None]), aspect="auto", interpolation="nearest")
    open_share = [centroids.values[:, contexts == c].mean(axis=1) for c in numbers]
    for column, share in enumerate(open_share):
        for row in np.flatnonzero((share > MIXED[0]) & (share < MIXED[1])):
            place = (column * task.objects - 0.5, row - 0.5)
            ax.add_patch(Rectangle(place, task.objects, 1, fill=False, **HATCH))
    names = [", ".join(str(n + 1) for n in np.flatnonzero(row)) or "mixed" for row in opened]
    labels = [f"{name}\n{share:.0%}" for name, share in zip(names, shares.values, strict=True)]
    ax.set_yticks(range(len(labels)), labels)
    for row in range(1, len(labels)):
        ax.axhline(row - 0.5, color="0.5", linewidth=0.5)
    contextual.name_contexts(ax.xaxis, task)
    ax.tick_params(length=0)
    ax.set_xlabel("sample, by context")
    share = metric(cell, "reln_gates_found", source=source).sel(clusters=count)
    missing = task.contexts + 1 - round(float(share) * (task.contexts + 1))
    absent = [
        c for c in range(task.contexts) if not (opened == (numbers != numbers[c])).all(1).any()
    ]
    if not missing:
        found = f"all {WORDS.get(task.contexts + 1, 'found')}"
    elif missing == len(absent) == 1 and task.contexts == 3:
        pair = ", ".join(str(c + 1) for c in range(task.contexts) if c not in absent)
        found = f"${pair}$ missing"
    else:
        found = "incomplete"
    name = f"$k$ = {count}" if source == "training" else "Start"
    ax.set_title(f"{name}: {found}")
