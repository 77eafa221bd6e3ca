"""Pairs of input and output domains: trained pairs, shared representations, outputs and errors.

Matrices have input domains along x and output domains along y. They show the first seed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patheffects import Normal, Stroke

from neuralrace.figures import style
from neuralrace.networks.gates.architecture import Pathway
from neuralrace.results.cells import CellResults, Results

TRAINED = {"color": style.COLOURS["trained"], "marker": "o"}
UNTRAINED = {"color": style.COLOURS["untrained"], "marker": "s", "markerfacecolor": "white"}
PAIRS: dict[str, dict[str, Any]] = {"trained": TRAINED, "untrained": UNTRAINED}
"""Line styles of pairs: filled and open markers differ in grey as well."""
LAYERS: dict[str, dict[str, Any]] = {
    "input matrices": {"color": style.categorical(4)},
    "hidden matrix": {"color": style.categorical(0)},
    "output matrices": {"color": style.categorical(5)},
}
"""Line styles of the matrices of a routing network, from inputs to outputs."""
PARTNER_LABEL = "trained share of output domains, $K/M$"
PAPER_SHARE = 0.4
"""Trained share above which untrained pairs follow according to the paper (fig. 5c)."""
FOLLOWING = 0.9
"""Untrained pairs follow if they learn at least this share of what trained pairs learn."""
FLOOR = 1e-8
"""Smaller errors are drawn at this value."""
MOST_NUMBERED = 10
"""With more domains, their numbers and borders are not drawn."""
EDGE = {
    "color": "black",
    "linewidth": 1.0,
    "path_effects": [Stroke(linewidth=2.2, foreground="white"), Normal()],
}
"""Lines that are visible on light and dark shades."""


def handles() -> list[Artist]:
    """Legend handles of trained and of untrained pairs."""
    return [style.handle(f"{name} pairs", **props) for name, props in PAIRS.items()]


def mask(cell: CellResults) -> Bool[np.ndarray, "input_domain output_domain"]:
    """Whether a pair of domains is trained."""
    return cell.routing.mask(cell.spec.dataset.count, 0)


def domains_of(pathway: Pathway) -> tuple[int, int]:
    """Indices of the input domain and of the output domain that a pathway joins."""
    return int(pathway.source.split()[1]) - 1, int(pathway.target.split()[1]) - 1


def partner_share(cell: CellResults) -> float:
    """Share K/M of the output domains that an input domain is trained with."""
    return float(mask(cell).mean())


def final_error(cell: CellResults, pairs: str) -> xr.DataArray:
    """Error of trained or untrained pairs at the end, (seed), at the first init scale."""
    return cell.get("metrics", f"final_{pairs}_error").isel(init_scale=0)


def by_partners(results: Results, experiment: str) -> list[CellResults]:
    """The cells of an experiment, fewest partners first."""
    return sorted(results.cells(experiment), key=partner_share)


def nearest_first(cells: Iterable[CellResults]) -> list[CellResults]:
    """Cells by the distance of their trained share from the paper's."""
    return sorted(cells, key=lambda cell: abs(partner_share(cell) - PAPER_SHARE))


def draw_mask(ax: Axes, cell: CellResults) -> None:
    """A matrix of pairs: trained pairs are dark, untrained pairs light."""
    trained = mask(cell)
    style.heat(ax, ~trained.T, -0.4, 1.2, cmap="gray")
    _label_domains(ax, len(trained), (1, 1), "output domain")


def draw_similarity(ax: Axes, cell: CellResults, init_scale: int = 0) -> AxesImage:
    """Cosines between representations of all items in the first hidden layer after training."""
    similarity = cell.get("trajectory", "similarity")
    products = similarity.isel(init_scale=init_scale, seed=0, snapshot=-1).values
    length = np.sqrt(np.diag(products))
    domains = cell.spec.dataset.count
    items = len(products) // domains
    image = style.heat(ax, products / np.outer(length, length), -1, 1)
    _label_domains(ax, domains, (items, items), "input domain")
    return image


def draw_outputs(ax: Axes, cell: CellResults, init_scale: int = 0) -> AxesImage:
    """Outputs of all pairs after training; lines separate trained from untrained pairs.

    Lines run in gaps between pairs, as they would hide an output.
    """
    outputs = cell.get("trajectory", "pair_outputs")
    outputs = outputs.isel(init_scale=init_scale, seed=0, snapshot=-1).values
    domains, _, items, properties = outputs.shape
    across, down = items + 1, properties + 1
    spaced = np.full((domains, down, domains, across), np.nan)
    spaced[:, 1:, :, 1:] = outputs.transpose(1, 3, 0, 2)
    tiles = np.pad(spaced.reshape(domains * down, domains * across), (0, 1), constant_values=np.nan)
    targets = cell.domains.targets
    image = style.heat(ax, tiles, float(targets.min()), float(targets.max()))
    # `outline` draws in the middles of gaps.
    image.set_extent((-1, domains * across, domains * down, -1))
    ax.set(xlim=(-1, domains * across), ylim=(domains * down, -1))
    _label_domains(ax, domains, (across, down), "output domain")
    outline(ax, mask(cell).T, (across, down))
    return image


def draw_by_partners(
    ax: Axes, cells: Sequence[CellResults], values: Sequence[xr.DataArray], props: Mapping[str, Any]
) -> None:
    """Values, (seed), of each cell against its trained share."""
    draw_line(ax, [partner_share(cell) for cell in cells], values, props)


def draw_errors(ax: Axes, cells: Sequence[CellResults]) -> None:
    """Errors of trained and of untrained pairs at the end, against the trained share."""
    for name, props in PAIRS.items():
        draw_by_partners(ax, cells, [final_error(cell, name) for cell in cells], props)
    draw_paper_share(ax)
    ax.set(ylabel="relative error", xlabel=PARTNER_LABEL)


def draw_paper_share(ax: Axes) -> None:
    """A line at the share that the paper names, with its name."""
    ax.axvline(PAPER_SHARE, **style.PAPER)
    name_paper_share(ax)


def name_paper_share(ax: Axes, space: str = " ", height: int | float = 1) -> None:
    """The name of the line at the share that the paper names, on its right.

    Args:
        ax: axes with the line.
        space: between the authors and the share.
        height: of the upper end of the name, as a share of the axis.
    """
    name = f"Saxe et al.:{space}{PAPER_SHARE:.0%}"
    style.note_at(
        ax, name, (PAPER_SHARE, height), (4, -2), va="top", xycoords=ax.get_xaxis_transform()
    )


def draw_line(
    ax: Axes, x: Sequence[float], values: Sequence[xr.DataArray], props: Mapping[str, Any]
) -> None:
    """Means over seeds as markers joined by a line, and ranges over seeds as bars."""
    style.point_series(
        ax, x, values, **{key: value for key, value in props.items() if key != "linestyle"}
    )
    means = [float(value.mean("seed")) for value in values]
    ax.plot(x, means, **dict(props) | {"marker": None, "linewidth": 1.2})


def draw_runs(
    ax: Axes,
    x: Sequence[int | float],
    values: Sequence[xr.DataArray],
    props: Mapping[str, Any],
    shift: float = 0.0,
) -> None:
    """Values, (seed), at each x as faint dots, `shift` beside it, and medians joined by a line.

    Those below `FLOOR` are triangles at it.
    """
    dots: dict[str, Any] = {
        "color": props["color"],
        "markersize": 2.8,
        "alpha": 0.4,
        "markeredgewidth": 0,
    }
    for at, runs in zip(x, values, strict=True):
        low = runs.values <= FLOOR
        for some, mark in ((runs.values[~low], props["marker"]), (runs.values[low], "v")):
            ax.plot([at + shift] * some.size, some.clip(min=FLOOR), mark, **dots)
    medians = np.array([float(runs.median()) for runs in values])
    low = medians <= FLOOR
    line: dict[str, Any] = {**props, "linewidth": 1.2, "markevery": (~low).tolist()}
    ax.plot(x, medians.clip(min=FLOOR), **line)
    mark_below(ax, np.asarray(x)[low].tolist(), props, (6, 0), va="center")


def mark_below(
    ax: Axes,
    x: Sequence[int | float],
    props: Mapping[str, Any],
    shift: tuple[int | float, int | float],
    **text: Any,
) -> None:
    """Open triangles at `FLOOR`, for values below it, and what they are.

    Args:
        ax: axes to draw on.
        x: positions of the values; there may be none.
        props: colour and other properties of the series.
        shift: place of the text in points from the last triangle.
        text: alignment of the text.
    """
    if x:
        off_axis: dict[str, Any] = {**props, **style.OFF_AXIS, "linestyle": "", "zorder": 4}
        ax.plot(x, [FLOOR] * len(x), **off_axis)
        name = rf"below $10^{{{np.log10(FLOOR):.0f}}}$"
        style.note_at(ax, name, (x[-1], FLOOR), shift, color=props["color"], **text)


def _label_domains(ax: Axes, domains: int, size: tuple[int, int], rows: str) -> None:
    """Numbers of domains that are `size` pixels wide and tall, and lines between them."""
    shown = domains if domains <= MOST_NUMBERED else 0
    for axis, pixels in zip((ax.xaxis, ax.yaxis), size, strict=True):
        axis.set_ticks(np.arange(shown) * pixels + (pixels - 1) / 2, map(str, range(1, shown + 1)))
    for number in range(1, shown):
        ax.axvline(number * size[0] - 0.5, color="white", linewidth=0.3)
        ax.axhline(number * size[1] - 0.5, color="white", linewidth=0.3)
    ax.set(xlabel="input domain", ylabel=rows)


def outline(ax: Axes, inside: Bool[np.ndarray, "row column"], size: tuple[int, int]) -> None:
    """Lines around the blocks of `size` pixels where `inside` is true, in place of the frame."""
    framed = np.pad(inside, 1)
    path: list[tuple[float, float]] = []
    for row, column in np.argwhere(np.diff(framed, axis=1)) - (1, 0):
        path += [(column, row), (column, row + 1), (np.nan, np.nan)]
    for row, column in np.argwhere(np.diff(framed, axis=0)) - (0, 1):
        path += [(column, row), (column + 1, row), (np.nan, np.nan)]
    x, y = (np.reshape(path, (-1, 2)) * size - 0.5).T
    ax.plot(x, y, clip_on=False, **EDGE)
    ax.spines[:].set_visible(False)
