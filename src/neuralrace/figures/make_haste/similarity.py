"""Hidden representations of the ReLU network and of gated networks.

Follows Jarvis, Klein, Rosman and Saxe, fig. 4c, who find the positions of samples in both networks
nearly the same. Positions are by classical multidimensional scaling of the inner products of hidden
representations at the end of training, the mean over runs (10 of the ReLU network, 5 of each gated
network). Those of a gated network are shifted, scaled and turned in all coordinates to lie closest
to those of the ReLU network (Procrustes). What differs from the source: with pathways open in two
contexts, samples lie in the same groups, but contexts are less far apart. Pathways open in one
context, the family that the source rules out, lie closer to the ReLU network; their outputs at
equal loss do not.
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from scipy.spatial import procrustes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import metric_mean, smallest_scale
from neuralrace.metrics.relu.imitation import classical_scaling
from neuralrace.results.cells import CellResults, Results

RELU: dict[str, Any] = {
    "color": style.COLOURS["relu"],
    "marker": "o",
    "markersize": 8,
    "markeredgewidth": 0,
    "alpha": 0.2,
    "linestyle": "",
}
GATED: dict[str, Any] = {
    "color": style.COLOURS["gated"],
    "marker": "D",
    "markersize": 3.2,
    "markeredgewidth": 0,
    "linestyle": "",
}
PAIRS = {
    "same context": {"color": style.categorical(1), "marker": "o"},
    "same object": {"color": style.categorical(2), "marker": "s"},
    "neither": {"color": "0.55", "marker": "^"},
}
"""Markers of pairs of samples, by what they have in common."""
PLANES = ((0, 1), (2, 3))
"""Coordinates of the ReLU network in which contexts lie apart, and in which objects do."""


@Figure(
    layout="aab;ccd",
    height=4.5,
    widths=(1.0, 1.0, 1.35),
    cf={"a": "Fig. 4c", "c": "Fig. 4c"},
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
    """Both networks, and pairs of samples by what they have in common."""
    return [
        style.handle("ReLU network", **RELU | {"alpha": 0.5}),
        style.handle("gated network", **GATED),
        *(style.handle(f"pair: {name}", linestyle="", **props) for name, props in PAIRS.items()),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Samples in the ReLU network, each joined by a line to itself in the gated network whose
    pathways are open in two contexts. Left are the first two coordinates of the ReLU network, where
    contexts lie apart, right the next two, where groups of objects do. The
    disparity is of all coordinates.
    """
    _draw_positions(ax, results, (2,))
    ax.set_title("Pathways of two contexts bring contexts closer")


def panel_b(results: Results, ax: Axes) -> None:
    """Inner products of the same representations over the largest, a marker for each pair of
    samples; grey is equality. Output error is the largest squared distance of outputs at equal
    loss, over the size of the targets.
    """
    _draw_pairs(ax, results, (2,))
    ax.set_title("Contexts hold together less")


def panel_c(results: Results, ax: Axes) -> None:
    """As a, for pathways open in one context."""
    _draw_positions(ax, results, (1,))
    ax.set_title("Pathways of one context do so less")


def panel_d(results: Results, ax: Axes) -> None:
    """As b, for pathways open in one context."""
    _draw_pairs(ax, results, (1,))
    ax.set_title("Similarities agree better")


def _draw_positions(ax: Axes, results: Results, family: contextual.Numbers) -> None:
    """Draws samples in planes of the ReLU network, and of a gated network turned onto them."""
    relu, gated = results.cell("contextual"), _gated(results, family)
    dataset, count = contextual.task(relu), len(relu.data.x)
    scaled = procrustes(*(classical_scaling(_similarity(cell), count) for cell in (relu, gated)))
    reach = 1.35 * abs(scaled[0][:, :2]).max()
    groups = np.divmod(np.arange(count), dataset.objects)
    parts = style.split(ax, 1, len(PLANES))[0]
    for part, plane, group, name in zip(parts, PLANES, groups, ("context", "object"), strict=True):
        turn = upright(scaled[0][:, plane], group)
        one, other = (points[:, plane] @ turn for points in scaled[:2])
        part.plot(*one.T, **RELU)
        part.plot(*np.stack([one, other]).transpose(2, 0, 1), color="0.3", linewidth=0.6)
        part.plot(*other.T, **GATED)
        _name_groups(part, one, group, name, 0.3 * reach)
        part.set(xlabel=f"coordinate {plane[0] + 1}", ylabel=f"coordinate {plane[1] + 1}")
        part.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
    disparity = _measure(relu, "scaling_disparity", family)
    parts[0].text(0, -0.9 * reach, f"disparity {disparity:.2f}", ha="center", fontsize=9)


def _name_groups(
    ax: Axes, points: Float[np.ndarray, "sample 2"], groups: np.ndarray, name: str, near: float
) -> None:
    """Names groups of samples, above or below; those close together share a text."""
    centres = {int(group): points[groups == group].mean(axis=0) for group in np.unique(groups)}
    while centres:
        place = next(iter(centres.values()))
        apart = {group: abs(centre - place) for group, centre in centres.items()}
        here = [group for group, (x, y) in apart.items() if x < 2 * near and y < 0.5 * near]
        for group in here:
            del centres[group]
        text = f"{name}{'s' * (len(here) > 1)} {', '.join(str(group + 1) for group in here)}"
        x, y = place
        ax.text(x, y + (0.65 if y > -near else -0.65) * near, text, ha="center", va="center")


def upright(points: Float[np.ndarray, "sample 2"], groups: np.ndarray) -> Float[np.ndarray, "2 2"]:
    """The rotation or reflection that puts the first group of points on top, the last on the right.

    Scaling leaves the signs of coordinates open, and the rotation of two that are equally large.
    """
    up, last = (points[groups == group].mean(axis=0) for group in (groups.min(), groups.max()))
    up = up / np.linalg.norm(up)
    right = np.array([up[1], -up[0]])
    return np.stack([right if right @ last >= 0 else -right, up], axis=1)


def _draw_pairs(ax: Axes, results: Results, family: contextual.Numbers) -> None:
    """Draws similarities of pairs of samples in a gated network against the ReLU network's."""
    relu = results.cell("contextual")
    of_sample = np.divmod(np.arange(len(relu.data.x)), contextual.task(relu).objects)
    context, item = (np.equal.outer(numbers, numbers) for numbers in of_sample)
    above = np.triu(np.ones_like(context), k=1)
    one, other = _similarity(relu), _similarity(_gated(results, family))
    ax.plot([0, 1], [0, 1], **style.GUIDE)
    for pairs, props in zip((context, item, ~(context | item)), PAIRS.values(), strict=True):
        at = pairs & above
        ax.plot(one[at], other[at], linestyle="", markersize=2.5, alpha=0.6, **props)
    end = 1.08 * max(one[above].max(), other[above].max())
    ax.set(xlim=(0, end), ylim=(0, end))
    at, name = context & above, "same context"
    below = np.clip(other[at].min() - 0.03 * end, 0.1 * end, 0.6 * end)
    ax.text(one[at].mean(), below, name, ha="center", va="top", color=PAIRS[name]["color"])
    ax.set(xlabel="similarity, ReLU network", ylabel="similarity, gated network")
    correlation = _measure(relu, "similarity_correlation", family)
    error = _measure(relu, "imitation_output_error", family)
    text = f"correlation {correlation:.2f}\noutput error {error:.3f}"
    ax.text(0.04, 0.97, text, va="top", transform=ax.transAxes)


def _measure(relu: CellResults, name: str, family: contextual.Numbers) -> float:
    return metric_mean(relu, name, candidate=contextual.candidate_names(relu)[family])


def _gated(results: Results, family: contextual.Numbers) -> CellResults:
    return contextual.families(results.cells("contextual_gated"))[family]


def _similarity(cell: CellResults) -> Float[np.ndarray, "sample sample"]:
    """Inner products of hidden representations after training, over the largest, mean over runs."""
    similarity = smallest_scale(cell.get("trajectory", "sample_similarity")).isel(snapshot=-1)
    values = similarity.mean("seed").values.astype(float)
    return values / values.max()
