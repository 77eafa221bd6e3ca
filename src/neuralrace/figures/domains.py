"""Pairs of input and output domains as pictures: which are trained, what they come to share.

Matrices have input domains along x and output domains along y. Where seeds differ, the first is
drawn.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patheffects import Normal, Stroke

from neuralrace.figures import style
from neuralrace.networks.gates.architecture import Pathway
from neuralrace.results.cells import CellResults, Results

TRAINED = {"color": style.COLOURS["trained"], "marker": "o"}
UNTRAINED = {"color": style.COLOURS["untrained"], "marker": "s", "linestyle": style.LINES[1]}
LAYERS = {
    "input matrices": {"color": style.distinct(1)},
    "hidden matrix": {"color": style.distinct(0)},
    "output matrices": {"color": style.distinct(2), "linestyle": style.LINES[2], "linewidth": 1.4},
}
"""Looks of the matrices of a routing network, in their order."""
PARTNERS = "trained share of output domains, $K/M$"
SHARE = 0.4
"""Share from which on the paper finds that untrained pairs follow (fig. 5c)."""
FOLLOWS = 0.9
"""Share of what trained pairs learn, from which on untrained pairs count as following."""
FLOOR = 1e-8
"""Smaller errors are drawn here."""
NUMBERED = 10
"""Most domains whose numbers and borders there is room for."""
EDGE = {
    "color": "black",
    "linewidth": 0.7,
    "path_effects": [Stroke(linewidth=1.7, foreground="white"), Normal()],
}
"""Lines that show on light and dark shades."""


def mask(cell: CellResults) -> Bool[np.ndarray, "input_domain output_domain"]:
    """Trained pairs."""
    return cell.routing.mask(cell.spec.dataset.count, 0)


def ends(pathway: Pathway) -> tuple[int, int]:
    """Which input and which output domain a pathway joins, from 0."""
    return int(pathway.source.split()[1]) - 1, int(pathway.target.split()[1]) - 1


def partners(cell: CellResults) -> float:
    """Share of the output domains that an input domain is trained with, K/M."""
    return float(mask(cell).mean())


def untrained(cell: CellResults) -> xr.DataArray:
    """Error of untrained pairs at the end of training, (seed), at the first init scale."""
    return cell.get("metrics", "final_untrained_error").isel(init_scale=0)


def by_partners(results: Results, experiment: str) -> list[CellResults]:
    """The cells of an experiment, fewest partners first."""
    return sorted(results.cells(experiment), key=partners)


def nearest_first(cells: Iterable[CellResults]) -> list[CellResults]:
    """Cells by how far their share of trained pairs is from the one that the paper names."""
    return sorted(cells, key=lambda cell: abs(partners(cell) - SHARE))


def share(cell: CellResults) -> str:
    """The share of trained pairs, as a formula."""
    return f"$K/M={partners(cell):.2g}$"


def following(x: Sequence[int | float], ratios: Sequence[xr.DataArray]) -> str:
    """From which x on untrained pairs follow, by the median over seeds; "none" where they do not.

    Args:
        x: of each cell.
        ratios: of what untrained pairs learn to what trained ones do, (seed), of each cell; NaN
            where there are no untrained pairs.
    """
    medians = [(at, float(ratio.median())) for at, ratio in zip(x, ratios, strict=True)]
    falling = sorted((each for each in medians if np.isfinite(each[1])), reverse=True)
    high = [at for at, _ in takewhile(lambda each: each[1] >= FOLLOWS, falling)]
    return f"{min(high):.2g}" if high else "none"


def draw_mask(ax: Axes, cell: CellResults) -> None:
    """Trained pairs dark, the others light."""
    trained = mask(cell)
    style.heat(ax, ~trained.T, -0.4, 1.2, cmap="gray")
    _sides(ax, len(trained), (1, 1), "output domain")


def draw_similarity(ax: Axes, cell: CellResults, init_scale: int = 0) -> AxesImage:
    """Cosines between first-hidden-layer representations at the end, domain by domain."""
    similarity = cell.get("trajectory", "similarity")
    products = similarity.isel(init_scale=init_scale, seed=0, snapshot=-1).values
    length = np.sqrt(np.diag(products))
    domains = cell.spec.dataset.count
    items = len(products) // domains
    image = style.heat(ax, products / np.outer(length, length), -1, 1)
    _sides(ax, domains, (items, items), "input domain")
    return image


def draw_outputs(ax: Axes, cell: CellResults, init_scale: int = 0) -> AxesImage:
    """Outputs of all pairs at the end; lines part trained from other pairs."""
    outputs = cell.get("trajectory", "pair_outputs")
    outputs = outputs.isel(init_scale=init_scale, seed=0, snapshot=-1).values
    domains, _, items, properties = outputs.shape
    tiles = outputs.transpose(1, 3, 0, 2).reshape(domains * properties, domains * items)
    targets = cell.domains.targets
    image = style.heat(ax, tiles, float(targets.min()), float(targets.max()))
    _sides(ax, domains, (items, properties), "output domain")
    _outline(ax, mask(cell).T, (items, properties))
    return image


def draw_errors(ax: Axes, cell: CellResults) -> None:
    """Relative error of trained and of untrained pairs over time, on a logarithmic axis."""
    for name, look in (("trained_error", TRAINED), ("untrained_error", UNTRAINED)):
        error = cell.get("trajectory", name).isel(init_scale=0)
        style.over_seeds(ax, cell.flow_time, error, **look | {"marker": None})
    ax.set(yscale="log", ylabel="relative error")


def draw_by_partners(
    ax: Axes, cells: Sequence[CellResults], values: Sequence[xr.DataArray], look: Mapping[str, Any]
) -> None:
    """Values at the end of training against the share of output domains that are trained."""
    draw_ends(ax, [partners(cell) for cell in cells], values, look)


def draw_ends(
    ax: Axes, x: Sequence[float], values: Sequence[xr.DataArray], look: Mapping[str, Any]
) -> None:
    """A marker for each x, the range over seeds as a bar, and a line through the means."""
    mark = {key: value for key, value in look.items() if key != "linestyle"}
    for place, value in zip(x, values, strict=True):
        style.points(ax, place, value, **mark)
    means = [float(value.mean("seed")) for value in values]
    ax.plot(x, means, **dict(look) | {"marker": None, "linewidth": 1.2})


def _sides(ax: Axes, domains: int, size: tuple[int, int], rows: str) -> None:
    """Numbers of domains that are `size` pixels wide and tall, and lines between them."""
    shown = domains if domains <= NUMBERED else 0
    for axis, pixels in zip((ax.xaxis, ax.yaxis), size, strict=True):
        axis.set_ticks(np.arange(shown) * pixels + (pixels - 1) / 2, map(str, range(1, shown + 1)))
    for number in range(1, shown):
        ax.axvline(number * size[0] - 0.5, color="white", linewidth=0.3)
        ax.axhline(number * size[1] - 0.5, color="white", linewidth=0.3)
    ax.set(xlabel="input domain", ylabel=rows)


def _outline(ax: Axes, inside: Bool[np.ndarray, "row column"], size: tuple[int, int]) -> None:
    """Lines around blocks of `size` pixels that are inside."""
    width, height = size
    framed = np.pad(inside, 1)
    for row, column in np.argwhere(np.diff(framed, axis=1)) - (1, 0):
        x, y = column * width - 0.5, row * height - 0.5
        ax.plot([x, x], [y, y + height], **EDGE)
    for row, column in np.argwhere(np.diff(framed, axis=0)) - (0, 1):
        x, y = column * width - 0.5, row * height - 0.5
        ax.plot([x, x + width], [y, y], **EDGE)
