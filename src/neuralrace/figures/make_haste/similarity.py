"""Similarities of hidden representations hardly tell right from wrong gates (fig. 4c)."""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.datasets.contextual import Contextual
from neuralrace.figures import gated, style
from neuralrace.metrics.imitation import classical_scaling
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "contextual": {
            "trajectory": "sample_similarity",
            "metrics": "imitation_gap similarity_correlation",
        },
        "contextual_gated": {
            "trajectory": "sample_similarity",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Similarity matrices and their scalings at the end, and how near each network is by them.

    Matrices are those of the first runs that did not diverge.
    """
    cell = results.cell("contextual")
    networks = gated.families(results.cells("contextual_gated"))
    names = ["ReLU", *(f"$q$ = {gated.family(numbers)}" for numbers in networks)]
    pictures = [_similarity(each) for each in (cell, *networks.values())]
    figure = Canvas(figsize=(style.COLUMN, 3.5))
    rows = figure.add_gridspec(2, 1, height_ratios=(1.7, 1))
    matrices, planes = rows[0].subgridspec(2, len(names)).subplots(squeeze=False)
    measures = rows[1].subgridspec(1, 2).subplots(sharey=True, squeeze=False)[0]

    dataset, relu = gated.task(cell), classical_scaling(pictures[0])
    for ax, plane, similarity in zip(matrices, planes, pictures, strict=True):
        shades = style.heat(ax, similarity, 0, 1, aspect="equal")
        for axis in (ax.xaxis, ax.yaxis):
            gated.name_contexts(axis, dataset, gated.FINE)
        _draw_plane(plane, turned(classical_scaling(similarity), relu), dataset)
    reach = max(np.abs(plane.dataLim.get_points()).max() for plane in planes) * 1.15
    for plane in planes:
        plane.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="coordinate 1")
    matrices[0].set_ylabel("context")
    planes[0].set_ylabel("coordinate 2")
    figure.colorbar(shades, ax=[*matrices, *planes], label="similarity", aspect=20)
    _draw_measure(measures[0], cell, "similarity_correlation")
    _draw_measure(measures[1], cell, "imitation_gap")
    measures[0].set(xlabel="correlation of similarities", xlim=(0, 1))
    measures[1].set(xlabel="distance of the loss\n(initial loss)", xlim=(0, None))
    titles = [names[0], "scaling", "alike in similarities", "apart in loss"]
    style.letters([matrices[0], planes[0], *measures], titles)
    for ax, name in zip(matrices[1:], names[1:], strict=True):
        ax.set_title(name)
    contexts = [
        style.entry(f"context {index + 1}", color="0.3", marker=style.marker(index), linestyle="")
        for index in range(dataset.contexts)
    ]
    style.legend(figure, contexts, columns=len(contexts))
    return figure


def _similarity(cell: CellResults) -> Float[np.ndarray, "sample sample"]:
    """Inner products of representations at the end, over their largest, of one run."""
    similarity = gated.smallest(cell.get("trajectory", "sample_similarity")).isel(snapshot=-1)
    values = similarity.dropna("seed").isel(seed=0).values
    return values / values.max()


def turned(
    points: Float[np.ndarray, "sample 2"], target: Float[np.ndarray, "sample 2"]
) -> Float[np.ndarray, "sample 2"]:
    """Points rotated or reflected to be closest to others (orthogonal Procrustes problem)."""
    left, _, right = np.linalg.svd(points.T @ target)
    return points @ left @ right


def _draw_plane(ax: Axes, points: Float[np.ndarray, "sample 2"], dataset: Contextual) -> None:
    """Samples in the plane: a shade for each object, a marker for each context."""
    shades = style.ordered(dataset.objects)
    for context, each in enumerate(points.reshape(dataset.contexts, dataset.objects, 2)):
        ax.scatter(
            *each.T, s=12, edgecolors=shades, facecolors="none", marker=style.marker(context)
        )
    ax.set(xticks=[], yticks=[], aspect="equal")


def _draw_measure(ax: Axes, cell: CellResults, metric: str) -> None:
    """A metric of each candidate, one row each."""
    names = gated.candidates(cell)
    for place, name in enumerate(names.values()):
        values = gated.smallest(cell.get("metrics", metric, candidate=name))
        style.points(ax, place, values, across=True, color="0.3", marker="o")
    ax.set_yticks(range(len(names)), [f"$q$ = {gated.family(numbers)}" for numbers in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
