"""Structural forms: from the graph that generates data to internal representations.

The background figure of Saxe, Sodhani, Lewallen (2022), after Saxe, McClelland and Ganguli (2019):
each column is a structure, from the graph that generates the data down to what a deep linear
network makes of it, in ten runs. Item vectors are learned one by one, from broad to fine
distinctions, when the closed form says. Vectors of equal singular value are one choice of basis:
each is what they span of one item, the first items first. The generators are ours.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection

from neuralrace.datasets.structural_forms import REQUIREMENTS, StructuralForm
from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.modes import equal_modes, signed_vectors
from neuralrace.figures.sweeps import dataset_of
from neuralrace.results.cells import CellResults, Results

STEPS = 300
"""Steps of multidimensional scaling."""
SHOWN = 100
"""Flow time at which columns of panel e end, or later if modes are learned later."""
BESIDE: dict[str, Any] = {
    "shift": (0, 4), "xycoords": "axes fraction", "ha": "right", "va": "bottom",
}  # fmt: skip
"""Place of a note on the line of a title, at the right."""


@Figure(
    layout="a;b;c;d;e",
    height=7.5,
    heights=(0.7, 1.1, 1.1, 1.4, 1.5),
    cf={
        "a": "Background, first row",
        "b": "second row",
        "c": "third row",
        "d": "fourth row",
    },
    reads={
        "structural_forms": {
            "trajectory": "loss mode_strength weight_1",
            "theory": "mode_strength",
            "metrics": "half_time_error",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Theory, and bands."""
    return [style.handle("closed form", **style.THEORY), style.BAND]


def panel_a(results: Results, ax: Axes) -> None:
    """Graphs that generate the data: items are coloured dots, latent nodes small black ones."""
    cells = _by_form(results)
    for part, (_, dataset) in zip(style.split(ax, 1, len(cells))[0], cells, strict=True):
        _draw_graph(part, dataset, style.sequential(dataset.items))
        part.set_title(dataset.form.replace("_", "-"), loc="center")
    style.note_at(ax, "colours: items, as in d; black: latent nodes", (1, 1), **BESIDE)
    ax.set_title("Structures that generate data")


def panel_b(results: Results, ax: Axes) -> None:
    """Covariance of the items over its largest entry, in rows and columns."""
    cells = _by_form(results)
    axes, shades = style.split(ax, 1, len(cells))[0], None
    for part, (_, dataset) in zip(axes, cells, strict=True):
        shared = dataset.covariance()
        shades = style.heat(part, shared / shared.max(), 0, 1, aspect="equal")
        _label_items(part, dataset, "item")
    axes[0].set_ylabel("item", labelpad=-3)
    _bar(axes[-1], shades, "share of largest", (0, 1))
    ax.set_title("Items covary as they are connected")


def panel_c(results: Results, ax: Axes) -> None:
    """Item vectors, one column a mode, scaled by its singular value, over the largest entry."""
    cells = _by_form(results)
    axes, shades = style.split(ax, 1, len(cells))[0], None
    for part, (cell, dataset) in zip(axes, cells, strict=True):
        scaled = signed_vectors(cell)[1] * cell.data.modes.s
        shades = style.heat(part, scaled / abs(scaled).max(), -1, 1, aspect="equal")
        _label_items(part, dataset, "mode")
    axes[0].set_ylabel("item", labelpad=-3)
    _bar(axes[-1], shades, "share of largest", (-1, 0, 1))
    ax.set_title("Item vectors go from broad to fine")


def panel_d(results: Results, ax: Axes) -> None:
    """Development of the hidden representations of the items from small weights, at the common
    origin, in a plane: metric multidimensional scaling, all times at once, of
    root-mean-square distances over runs. Paths darken with time, in the colours of the items in
    panel a; open dots are where the items are when half of their distances is reached, filled ones
    the ends.
    """
    cells = _by_form(results)
    axes = style.split(ax, 1, len(cells))[0]
    for part, (cell, dataset) in zip(axes, cells, strict=True):
        squares = np.mean([_squares(run) for run in _representations(cell)], axis=0)
        start = signed_vectors(cell)[1] * cell.data.modes.s @ _directions(dataset.items)
        paths = scaled_to_plane(np.sqrt(squares), start - start.mean(axis=0))
        _draw_development(part, paths, style.sequential(dataset.items))
    above: dict[str, Any] = {"xycoords": "axes fraction", "ha": "right", "va": "top"}
    style.note_at(axes[0], "open: half way\nfilled: end", (1.1, 1), (0, 0), **above)
    ax.set_title("Representations come apart as the structure says")


def panel_e(results: Results, ax: Axes) -> None:
    """Strength of the modes over time, dark to light from the strongest; equal modes are one line,
    their mean. Lines are means over runs, bands their ranges. The number is the largest distance of
    a half time from the closed form's, a mean over runs.
    """
    cells = _by_form(results)
    axes = style.split(ax, 1, len(cells), sharey=True)[0]
    for column, (part, (cell, _)) in enumerate(zip(axes, cells, strict=True)):
        modes = cell.get("trajectory", "mode_strength").isel(init_scale=0)
        closed = cell.get("theory", "mode_strength", solution="aligned_modes").isel(init_scale=0)
        groups = equal_modes(cell.data.modes.s)
        colours = style.sequential(len(groups), style.PURPLE)  # items have the others
        for group, colour in zip(groups, colours, strict=True):
            props = {"color": colour, "linewidth": 2.2}
            style.over_seeds(part, cell.flow_time, modes.isel(mode=group).mean("mode"), **props)
            mean = closed.isel(mode=group).mean(["mode", "seed"])
            part.plot(cell.flow_time, mean, **style.THEORY)
        settled = style.settling_time(modes.mean("seed"), cell.flow_time)
        end = min(max(SHOWN, settled), float(cell.flow_time[-1]))
        part.set(xlabel=r"flow time ($\tau$)", xlim=(0, end))
        part.tick_params(labelleft=column == 0)
    axes[0].set(ylabel="strength", ylim=(0, None))
    off = max(
        float(cell.get("metrics", "half_time_error", solution="aligned_modes").mean("seed").max())
        for cell, _ in cells
    )
    inside: dict[str, Any] = {"xycoords": "axes fraction", "ha": "right", "va": "center"}
    # Modes of clusters have two strengths, with room between their curves.
    style.note_at(
        axes[min(3, len(axes) - 1)],
        "dark to light:\nmode 1 to last",
        (0.99, 0.42),
        (0, 0),
        **inside,
    )
    style.note_at(ax, f"all half times within {off:.0%} of the closed form's", (1, 1), **BESIDE)
    ax.set_title("Modes are learned when the closed form says")


def _by_form(results: Results) -> list[tuple[CellResults, StructuralForm]]:
    """Cells and their structures, in the order of `REQUIREMENTS`."""
    cells = [
        (cell, dataset_of(cell, StructuralForm, "generating graph"))
        for cell in results.cells("structural_forms")
    ]
    return sorted(cells, key=lambda item: list(REQUIREMENTS).index(item[1].form))


def _bar(ax: Axes, shades: ScalarMappable | None, label: str, ticks: Sequence[int]) -> None:
    """A colour bar beside the last matrix of a row."""
    beside = ax.inset_axes((1.06, 0, 0.06, 1))
    bar = ax.figure.colorbar(shades, cax=beside, ticks=ticks)  # pyright: ignore[reportArgumentType]
    bar.set_label(label, labelpad=-1)


def _label_items(ax: Axes, dataset: StructuralForm, columns: str) -> None:
    ax.set_xticks([0, dataset.items - 1], ["1", str(dataset.items)])
    ax.set_xlabel(columns, labelpad=-6)
    ax.set_yticks([0, dataset.items - 1], ["1", str(dataset.items)])


def _draw_graph(ax: Axes, dataset: StructuralForm, colours: list) -> None:
    """Draws the generating graph: items as coloured dots, latent nodes as small black ones."""
    positions, items = dataset.positions(), dataset.items
    edges, _ = dataset.graph()
    lines = [positions[[a, b]] for a, b, _ in edges]
    ax.add_collection(LineCollection(lines, colors="0.5", linewidths=0.7))
    ax.scatter(*positions[:items].T, s=14, c=colours, zorder=3, clip_on=False)
    ax.scatter(*positions[items:].T, s=3, c="black", zorder=3)
    ax.margins(0.12)
    ax.set_axis_off()


def _representations(cell: CellResults) -> Float[np.ndarray, "seed snapshot item unit"]:
    """Hidden representations of the items until the mean loss has settled.

    Items are one-hot, so these are the columns of the first weights.
    """
    weights = cell.get("trajectory", "weight_1").isel(init_scale=0)
    loss = cell.get("trajectory", "loss").isel(init_scale=0).mean("seed")
    end = style.settling_time(loss, cell.flow_time)
    learning = cell.trajectory["snapshot_flow_time"].values <= end
    return weights.transpose("seed", "snapshot", "unit_0", "unit_1").values[:, learning]


def _squares(points: Float[np.ndarray, "snapshot item unit"]) -> Float[np.ndarray, "point point"]:
    """Squared distances between all points, without what the items share at each snapshot."""
    flat = (points - points.mean(axis=1, keepdims=True)).reshape(-1, points.shape[-1])
    size = (flat**2).sum(axis=1)
    return np.maximum(size[:, None] + size - 2 * flat @ flat.T, 0)


def _directions(count: int) -> Float[np.ndarray, "mode 2"]:
    """Directions in a plane for any number of modes, all of them well apart."""
    angle = np.pi * (3 - 5**0.5) * np.arange(count)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def scaled_to_plane(
    distances: Float[np.ndarray, "point point"], start: Float[np.ndarray, "item 2"]
) -> Float[np.ndarray, "snapshot item 2"]:
    """Multidimensional scaling that lowers the stress step by step (SMACOF) from a fixed start.

    The start chooses one of many equally good pictures, so that all machines draw the same.

    Args:
        distances: between all items at all snapshots, snapshot by snapshot.
        start: positions of the items, at every snapshot up to their size then.
    """
    items = len(start)
    sizes = [
        np.sqrt(np.mean(distances[first : first + items, first : first + items] ** 2))
        for first in range(0, len(distances), items)
    ]
    plane = np.concatenate([size * start / max(sizes) for size in sizes])
    for _ in range(STEPS):
        apart = np.linalg.norm(plane[:, None] - plane, axis=-1)
        ratio = np.divide(distances, apart, out=np.zeros_like(apart), where=apart > 1e-12)
        plane = (ratio.sum(axis=1)[:, None] * plane - ratio @ plane) / len(plane)
    return plane.reshape(-1, items, 2)


def _draw_development(ax: Axes, paths: Float[np.ndarray, "snapshot item 2"], colours: list) -> None:
    """Draws the path of each item, darker with time, with dots half way and at its end."""
    darkness = np.linspace(0.5, 1, len(paths) - 1)
    size = np.square(paths - paths.mean(axis=1, keepdims=True)).sum(axis=(1, 2)) ** 0.5
    half = int((size >= size[-1] / 2).argmax())
    for path, colour in zip(np.swapaxes(paths, 0, 1), colours, strict=True):
        steps = np.stack([path[:-1], path[1:]], axis=1)
        ax.add_collection(LineCollection(list(steps), colors=colour, alpha=darkness, linewidths=1))
        ax.scatter(*path[half], s=9, facecolor="white", edgecolor=colour, linewidth=0.8, zorder=3)
        ax.scatter(*path[-1], s=9, color=colour, zorder=3)
    ax.set(aspect="equal", adjustable="datalim")
    ax.margins(0.12)
    ax.set_axis_off()
