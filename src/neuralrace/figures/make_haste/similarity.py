"""Hidden representations of the ReLU network and of gated networks, as evidence for gates.

Follows Jarvis, Klein, Rosman and Saxe, fig. 4c, which finds the positions of samples in both
networks nearly the same. Planes are classical multidimensional scaling of the inner products of
hidden representations at the end of training, turned to lie closest to that of the ReLU network.
What differs from the source: the first two coordinates are contexts in the ReLU network and pairs
of objects in the gated one of two contexts, and by all similarities the wrong family, pathways of
single contexts, is the nearest; by outputs at equal loss it is not. Pictures are of the first run
that did not diverge.
"""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import metric, metric_mean, smallest_scale
from neuralrace.metrics.relu.imitation import classical_scaling
from neuralrace.results.cells import CellResults, Results

RELU = "ReLU"
MEASURES = {
    "similarity_correlation": "correlation of similarities",
    "scaling_disparity": "disparity of all coordinates",
    "imitation_output_error": "$|f-g|^2/|y|^2$, largest",
}
"""Names of measures of similarity to the ReLU network."""


@Figure(
    layout="aac;bbc",
    height=3.7,
    widths=(1.4, 1.4, 1.2),
    heights=(1.05, 1.0),
    cf={"a": "Fig. 4c"},
    reads={
        "contextual": {
            "trajectory": "sample_similarity",
            "metrics": "imitation_output_error scaling_disparity similarity_correlation",
        },
        "contextual_gated": {
            "trajectory": "sample_similarity",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """A marker for each context, a shade for the first and the last object."""
    dataset = contextual.task(results.cell("contextual"))
    shades = style.sequential(dataset.objects)
    names = [(f"context {n + 1}", "0.3", style.marker(n)) for n in range(dataset.contexts)]
    names += [("object 1", shades[0], "o"), (f"object {dataset.objects}", shades[-1], "o")]
    return [style.handle(name, color=c, marker=m, linestyle="") for name, c, m in names]


def panel_a(results: Results, ax: Axes) -> None:
    """Samples by classical scaling of their similarities, in two coordinates."""
    similarities = _similarities(results)
    dataset = contextual.task(results.cell("contextual"))
    target = classical_scaling(next(iter(similarities.values())))
    planes = style.split(ax, 1, len(similarities), sharex=True, sharey=True)[0]
    share = {}
    for plane, (name, similarity) in zip(planes, similarities.items(), strict=True):
        points = turned(classical_scaling(similarity), target)
        points = points.reshape(dataset.contexts, dataset.objects, 2)
        share[name] = dataset.objects * np.sum(points.mean(axis=1) ** 2) / np.sum(points**2)
        shades = style.sequential(dataset.objects)
        for context, group in enumerate(points):
            props = {"marker": style.marker(context), "edgecolors": shades, "facecolors": "none"}
            plane.scatter(*group.T, s=18, linewidths=0.9, **props)
        plane.set_title(name, loc="center")
        plane.set(xlabel="coordinate 1", aspect="equal")
    reach = max(np.abs(plane.dataLim.get_points()).max() for plane in planes) * 1.15
    planes[0].set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
    planes[0].set_ylabel("coordinate 2")
    one, other = share[RELU], share[_family_label((dataset.contexts - 1,))]
    ax.set_title(f"Contexts explain {one:.0%} of the ReLU network's plane, {other:.0%} with $q=2$")


def panel_b(results: Results, ax: Axes) -> None:
    """Inner products of hidden representations over the largest; samples are context by context."""
    similarities = _similarities(results)
    dataset = contextual.task(results.cell("contextual"))
    matrices = style.split(ax, 1, len(similarities), sharex=True, sharey=True)[0]
    for part, (name, similarity) in zip(matrices, similarities.items(), strict=True):
        shades = style.heat(part, similarity, 0, 1, aspect="equal")
        for axis in (part.xaxis, part.yaxis):
            contextual.name_contexts(axis, dataset, contextual.FINE_LINE)
        part.label_outer()
        part.set_title(name, loc="center")
        part.set_xlabel("context")
    matrices[0].set_ylabel("context")
    ax.figure.colorbar(shades, ax=list(matrices), ticks=(0, 0.5, 1), aspect=12, pad=0.02)
    within = np.kron(np.eye(dataset.contexts), 1 - np.eye(dataset.objects)) > 0
    means = {name: similarity[within].mean() for name, similarity in similarities.items()}
    one, other = means[RELU], means[_family_label((dataset.contexts - 1,))]
    ax.set_title(f"Objects in a context are similar to {one:.2f}, with $q=2$ to {other:.2f}")


def panel_c(results: Results, ax: Axes) -> None:
    """Likeness of gated networks to the ReLU network, by similarities and by outputs."""
    cell = results.cell("contextual")
    names = contextual.candidate_names(cell)
    rows = style.split(ax, len(MEASURES), hspace=0.15)[:, 0]
    for row, (key, meaning) in zip(rows, MEASURES.items(), strict=True):
        values = [metric(cell, key, candidate=name) for name in names.values()]
        style.point_series(row, range(len(names)), values, across=True, color="0.3", marker="o")
        row.set_yticks(range(len(names)), [f"$q$ = {contextual.family_name(q)}" for q in names])
        row.set(xlabel=meaning, ylim=(len(names) - 0.4, -0.6))
        row.set_xlim(0, 1.08 * row.dataLim.x1)
    one, two = (
        metric_mean(cell, "similarity_correlation", candidate=names[numbers])
        for numbers in ((1,), (2,))
    )
    ax.set_title(f"Similarities correlate to {one:.2f} for $q=1$, to {two:.2f} for $q=2$")


def _similarities(results: Results) -> dict[str, Float[np.ndarray, "sample sample"]]:
    """Similarities of samples in all networks, the ReLU network first."""
    networks = contextual.families(results.cells("contextual_gated"))
    cells = {RELU: results.cell("contextual")}
    cells |= {_family_label(numbers): cell for numbers, cell in networks.items()}
    return {name: _similarity(cell) for name, cell in cells.items()}


def _family_label(numbers: tuple[int, ...]) -> str:
    return f"gated, $q$ = {contextual.family_name(numbers)}"


def _similarity(cell: CellResults) -> Float[np.ndarray, "sample sample"]:
    """Inner products of hidden representations after training, over the largest, of one run."""
    similarity = smallest_scale(cell.get("trajectory", "sample_similarity")).isel(snapshot=-1)
    values = similarity.dropna("seed").isel(seed=0).values
    return values / values.max()


def turned(
    points: Float[np.ndarray, "sample 2"], target: Float[np.ndarray, "sample 2"]
) -> Float[np.ndarray, "sample 2"]:
    """Points rotated or reflected to be closest to a target (orthogonal Procrustes problem)."""
    left, _, right = np.linalg.svd(points.T @ target)
    return points @ left @ right
