"""Hidden representations of the ReLU network and of gated networks.

Follows Jarvis, Klein, Rosman and Saxe, fig. 4c, who find the positions of samples in both networks
nearly the same. Positions are by classical multidimensional scaling of the inner products of hidden
representations at the end of training, the mean over runs (10 of the ReLU network, 5 of each gated
network). Those of gated networks are shifted, scaled and turned in all coordinates to lie closest
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

RELU: dict[str, Any] = {"color": style.COLOURS["relu"], "marker": "o", "markersize": 7}
WORDS: dict[contextual.Numbers, str] = {(1,): "one context", (2,): "two contexts"}
"""Families that are drawn, by the contexts that a pathway is open in."""
KINDS = {"same context": "o", "same object": "s", "neither": "^"}
"""Markers of pairs of samples, by what they have in common."""
OUTSIDE = (17, 12)
"""Points across and up between a group and its name, away from the middle."""
PLANES = ((0, 1), (2, 3))
"""Coordinates of the ReLU network in which contexts lie apart, and in which objects do."""


@Figure(
    layout="aab",
    height=2.75,
    widths=(1.0, 1.0, 1.1),
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
    """The three networks."""
    relu = results.cell("contextual")
    return [
        style.handle("ReLU network", linestyle="", **RELU),
        *(
            style.handle(f"gated, pathways of {WORDS[family]}", linestyle="", **_props(family))
            for family in _shown(relu)
        ),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Means of the samples of a context (left, in the first two coordinates of the ReLU network)
    and of two neighbouring objects (right, in the next two), joined for each network. The disparity
    is of all coordinates.
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
    reach = abs(scaled[:, :2]).max()
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
        part.set(xlim=(-1.4 * reach, 1.4 * reach), ylim=(-1.3 * reach, 1.3 * reach))
        part.set_aspect("equal")
        part.set_axis_off()
        kind = "contexts" if group is contexts else "objects"
        part.set_title(f"{kind} (coordinates {plane[0] + 1}, {plane[1] + 1})", loc="center")
    middle = {"ha": "center", "va": "center", "transform": parts[1].transAxes}
    parts[1].text(0.5, 0.6, "disparity", **middle)
    for row, family in enumerate(drawn):
        text = f"{_short(family)} {_measure(relu, 'scaling_disparity', family):.2f}"
        parts[1].text(0.5, 0.5 - 0.09 * row, text, color=_props(family)["color"], **middle)
    ax.set_title("Pathways of one context lie nearer to ReLU")


def panel_b(results: Results, ax: Axes) -> None:
    """Inner products of the same representations over the largest, a marker for each pair of
    samples; grey is equality. Text: correlation of these with the ReLU network's, and the output
    error, the largest squared distance of outputs at equal loss over the size of the targets.
    """
    relu = results.cell("contextual")
    of_sample = np.divmod(np.arange(len(relu.data.x)), contextual.task(relu).objects)
    context, item = (np.equal.outer(numbers, numbers) for numbers in of_sample)
    above = np.triu(np.ones_like(context), k=1)
    one, families = _similarity(relu), _shown(relu)
    others = [_similarity(_gated(results, family)) for family in families]
    ax.plot([0, 1], [0, 1], **style.GUIDE)
    end = 1.08 * max(float(values[above].max()) for values in (one, *others))
    for pairs, (name, mark) in zip((context, item, ~(context | item)), KINDS.items(), strict=True):
        at = pairs & above
        for other, family in zip(others, families, strict=True):
            dots = {"marker": mark, "markersize": 3, "alpha": 0.5, "markeredgewidth": 0}
            ax.plot(one[at], other[at], linestyle="", **_props(family) | dots)
        around = [values[at] for values in (one, *others)]
        _name_pairs(ax, name, around[0], np.concatenate(around[1:]))
    for row, family in enumerate(families):
        correlation, error = (
            _measure(relu, name, family)
            for name in ("similarity_correlation", "imitation_output_error")
        )
        text = f"{_short(family)} correlation {correlation:.2f}, output error {error:.3f}"
        at = (0.03, 0.98 - 0.065 * row)
        ax.text(*at, text, va="top", color=_props(family)["color"], transform=ax.transAxes)
    ax.set(xlim=(0, end), ylim=(0, 1.15 * end))
    ax.set(xlabel="similarity, ReLU network", ylabel="similarity, gated network")
    ax.set_title("Their similarities agree better")


def _shown(relu: CellResults) -> list[contextual.Numbers]:
    """Families with pathways of one kind, smallest q first."""
    return [family for family in contextual.candidate_names(relu) if family in WORDS]


def _short(family: contextual.Numbers) -> str:
    """The number of contexts of a family, before a value."""
    return f"{WORDS[family].split()[0]}:"


def _props(family: contextual.Numbers) -> dict[str, Any]:
    return contextual.family_props(family) | {"markersize": 4.5}


def _draw_groups(
    ax: Axes, points: Float[np.ndarray, "sample 2"], groups: np.ndarray, props: dict[str, Any]
) -> None:
    """Means of groups of samples, joined by a closed line around them."""
    means = _means(points, groups)
    around = means[np.argsort(np.arctan2(*(means - means.mean(axis=0)).T))]
    ax.plot(*np.append(around, around[:1], axis=0).T, linewidth=1.3, alpha=0.85, **props)


def _means(
    points: Float[np.ndarray, "sample 2"], groups: np.ndarray
) -> Float[np.ndarray, "group 2"]:
    """Means of groups of samples."""
    return np.array([points[groups == group].mean(axis=0) for group in np.unique(groups)])


def _name_pairs(ax: Axes, name: str, x: np.ndarray, y: np.ndarray) -> None:
    """Names a kind of pairs where no others are: on the left or below."""
    if name == "same object":
        ax.text(x.min() - 0.02, y.max(), name, ha="right", va="center")
    elif name == "same context":
        ax.text(x.mean(), y.min() - 0.03, name, ha="center", va="top")
    else:
        ax.text(x.min() - 0.02, np.median(y), name, ha="right", va="center")


def upright(points: Float[np.ndarray, "sample 2"], groups: np.ndarray) -> Float[np.ndarray, "2 2"]:
    """The rotation or reflection that puts the first group of points on top, the last on the right.

    Scaling leaves the signs of coordinates open, and the rotation of two that are equally large.
    """
    up, last = (points[groups == group].mean(axis=0) for group in (groups.min(), groups.max()))
    up = up / np.linalg.norm(up)
    right = np.array([up[1], -up[0]])
    return np.stack([right if right @ last >= 0 else -right, up], axis=1)


def _measure(relu: CellResults, name: str, family: contextual.Numbers) -> float:
    return metric_mean(relu, name, candidate=contextual.candidate_names(relu)[family])


def _gated(results: Results, family: contextual.Numbers) -> CellResults:
    return contextual.families(results.cells("contextual_gated"))[family]


def _similarity(cell: CellResults) -> Float[np.ndarray, "sample sample"]:
    """Inner products of hidden representations after training, over the largest, mean over runs."""
    similarity = smallest_scale(cell.get("trajectory", "sample_similarity")).isel(snapshot=-1)
    values = similarity.mean("seed").values.astype(float)
    return values / values.max()
