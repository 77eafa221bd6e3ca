"""Hidden representations of the ReLU network and of gated networks.

Follows Jarvis, Klein, Rosman and Saxe, fig. 4c, who find the positions of samples in both networks
nearly the same. Positions are by classical multidimensional scaling of the inner products of hidden
representations at the end of training, the mean over runs (10 of the ReLU network, 5 of each gated
network). Those of gated networks are shifted, scaled and turned in all coordinates to lie closest
to those of the ReLU network (Procrustes). In b a gated network of each kind is trained beside each
of the 10 runs of the ReLU network. What differs from the source: with pathways open in two
contexts, samples lie in the same groups, but contexts are less far apart. Pathways open in one
context, the family that the source rules out, have representations closer to the ReLU network's;
their outputs at equal loss are not closer.
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from scipy.spatial import procrustes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import contextual, style
from neuralrace.figures.sweeps import metric, smallest_scale
from neuralrace.metrics.relu.imitation import classical_scaling
from neuralrace.results.cells import CellResults, Results

RELU: dict[str, Any] = {"color": style.COLOURS["relu"], "marker": "^", "markersize": 4}
OPEN: dict[str, Any] = {"markerfacecolor": "none", "markeredgewidth": 0.7, "linewidth": 0.9}
"""Markers of samples, which lie close together, and lines that join means of groups."""
WORDS: dict[contextual.Numbers, str] = {(1,): "one context", (2,): "two contexts"}
"""Families that are drawn, by the contexts that a pathway is open in."""
DISTANCES = ("scaling_disparity", "imitation_output_error")
"""Metrics of distances from the ReLU network: of hidden representations, and of outputs."""
OUTSIDE = (19, 15)
"""Points across and up between a group and its name, away from the middle."""
PLANES = ((0, 1), (2, 3))
"""Coordinates of the ReLU network in which contexts lie apart, and in which objects do."""


@Figure(
    layout="aab",
    height=2.9,
    widths=(1.15, 1.15, 1.2),
    cf={"a": "Fig. 4c"},
    reads={
        "contextual": {
            "trajectory": "sample_similarity",
            "metrics": "imitation_output_error scaling_disparity",
        },
        "contextual_gated": {
            "trajectory": "sample_similarity",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """The three networks."""
    relu = results.cell("contextual")
    return [
        style.handle("ReLU network", **OPEN | RELU),
        *(
            style.handle(f"gated, pathways of {WORDS[family]}", **OPEN | _props(family))
            for family in _shown(relu)
        ),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """All samples of each network (markers); on the left those of a context lie on one another.
    Lines join the means of the samples of a context (left, in the first two coordinates of the ReLU
    network) and of two neighbouring objects (right, in the next two). Numbers are mean lengths of
    sides over that of the ReLU network.
    """
    relu = results.cell("contextual")
    dataset, count = contextual.task(relu), len(relu.data.x)
    own = classical_scaling(_similarity(relu), count)
    drawn = {
        family: procrustes(own, classical_scaling(_similarity(_gated(results, family)), count))
        for family in _shown(relu)
    }
    scaled = next(iter(drawn.values()))[0]
    positions = [(scaled, RELU), *((two, _props(family)) for family, (_, two, _) in drawn.items())]
    reach = max(abs(points[:, : PLANES[-1][-1] + 1]).max() for points, _ in positions)
    contexts, objects = np.divmod(np.arange(count), dataset.objects)
    parts = style.split(ax, 1, len(PLANES))[0]
    for part, plane, group, name in zip(
        parts, PLANES, (contexts, objects // 2), ("{0}", "{1}, {2}"), strict=True
    ):
        turn = upright(scaled[:, plane], group)
        for points, props in positions:
            _draw_groups(part, points[:, plane] @ turn, group, props)
        for number, (x, y) in enumerate(_means(scaled[:, plane] @ turn, group), start=1):
            offset = np.array(OUTSIDE) * (x, y) / np.hypot(x, y)
            text = name.format(number, 2 * number - 1, 2 * number)
            beside = {"textcoords": "offset points", "ha": "center", "va": "center"}
            part.annotate(text, (x, y), offset, **beside)
        lengths = [_side(points[:, plane], group) for points, _ in positions]
        key = [
            style.handle(f"{length / lengths[0]:.2f}", **OPEN | props)
            for length, (_, props) in zip(lengths, positions, strict=True)
        ]
        part.legend(handles=key, title="side, over\nReLU's", loc="upper right")
        part.set(xlim=(-1.05 * reach, 1.05 * reach), ylim=(-reach, 1.3 * reach))
        part.set_aspect("equal")
        part.set_axis_off()
        kind = "contexts" if group is contexts else "objects"
        part.set_title(f"{kind} (coordinates {plane[0] + 1}, {plane[1] + 1})", loc="center")
    style.note(parts[0], "markers: samples\nlines join means of groups", "lower left", color="0.35")
    ax.set_title("Same groups, but gated contexts lie closer together")


def panel_b(results: Results, ax: Axes) -> None:
    """Distances of gated networks from the ReLU network, squared and over its size: of hidden
    representations in all coordinates after training (disparity), and of outputs at equal loss, the
    largest throughout training. A marker for each of ten runs.
    """
    relu = results.cell("contextual")
    for place, family in zip(("bottom", "top"), _shown(relu), strict=False):
        candidate = contextual.candidate_names(relu)[family]
        hidden, outputs = (metric(relu, name, candidate=candidate) for name in DISTANCES)
        mark: dict[str, Any] = OPEN | _props(family) | {"linestyle": "", "linewidth": 0}
        ax.plot(hidden, outputs, **mark)
        ax.annotate(
            WORDS[family],
            (float(hidden.mean()), float(outputs.max() if place == "bottom" else outputs.min())),
            (0, 6 if place == "bottom" else -6), textcoords="offset points",
            ha="center", va=place, color=_props(family)["color"],
        )  # fmt: skip
    style.note(ax, "a marker for each run", "lower left", color="0.35")
    ax.margins(x=0.25, y=0.25)
    ax.locator_params(nbins=4)
    for axis, name in ((ax.xaxis, "representations"), (ax.yaxis, "outputs")):
        axis.set_label_text(f"squared distance of {name}\nfrom the ReLU network's")
    ax.set_title("One context: nearer, but not in outputs")


def _shown(relu: CellResults) -> list[contextual.Numbers]:
    """Families with pathways of one kind, smallest q first."""
    return [family for family in contextual.candidate_names(relu) if family in WORDS]


def _props(family: contextual.Numbers) -> dict[str, Any]:
    return contextual.family_props(family) | {"markersize": 3.0}


def _draw_groups(
    ax: Axes, points: Float[np.ndarray, "sample 2"], groups: np.ndarray, props: dict[str, Any]
) -> None:
    """Samples, and a closed line around the means of their groups."""
    ax.plot(*_around(points, groups).T, color=props["color"], linewidth=OPEN["linewidth"])
    ax.plot(*points.T, linestyle="", **OPEN | props)


def _side(points: Float[np.ndarray, "sample 2"], groups: np.ndarray) -> float:
    """Mean length of a side of the closed line around groups."""
    return float(np.linalg.norm(np.diff(_around(points, groups), axis=0), axis=1).mean())


def _around(
    points: Float[np.ndarray, "sample 2"], groups: np.ndarray
) -> Float[np.ndarray, "corner 2"]:
    """Means of groups of samples in their order around the middle, the first one again at last."""
    means = _means(points, groups)
    around = means[np.argsort(np.arctan2(*(means - means.mean(axis=0)).T))]
    return np.append(around, around[:1], axis=0)


def _means(
    points: Float[np.ndarray, "sample 2"], groups: np.ndarray
) -> Float[np.ndarray, "group 2"]:
    """Means of groups of samples."""
    return np.array([points[groups == group].mean(axis=0) for group in np.unique(groups)])


def upright(points: Float[np.ndarray, "sample 2"], groups: np.ndarray) -> Float[np.ndarray, "2 2"]:
    """The rotation or reflection that puts the first group of points on top, the last on the right.

    Scaling leaves the signs of coordinates open, and the rotation of two that are equally large.
    """
    up, last = (points[groups == group].mean(axis=0) for group in (groups.min(), groups.max()))
    up = up / np.linalg.norm(up)
    right = np.array([up[1], -up[0]])
    return np.stack([right if right @ last >= 0 else -right, up], axis=1)


def _gated(results: Results, family: contextual.Numbers) -> CellResults:
    return contextual.families(results.cells("contextual_gated"))[family]


def _similarity(cell: CellResults) -> Float[np.ndarray, "sample sample"]:
    """Inner products of hidden representations after training, over the largest, mean over runs."""
    similarity = smallest_scale(cell.get("trajectory", "sample_similarity")).isel(snapshot=-1)
    values = similarity.mean("seed").values.astype(float)
    return values / values.max()
