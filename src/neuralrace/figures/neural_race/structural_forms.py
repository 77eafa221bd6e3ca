"""Structural forms: what generates them, what they look like, and how a network comes to see it.

The background of Saxe, Sodhani and Lewallen (2022), after Saxe, McClelland and Ganguli (2019): each
column is a structure, from the graph that generates the data down to what a deep linear network
makes of it. Item vectors are learned one by one, from broad to fine distinctions, when the closed
form says. Items that differ in further dimensions only lie on top of each other in the last row of
the source, and vectors of equal singular value are one choice of basis. The generators are ours.
"""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from neuralrace.datasets.structural_forms import REQUIREMENTS, StructuralForm
from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.modes import draw_modes, signed_vectors
from neuralrace.figures.sweeps import dataset_of
from neuralrace.results.cells import CellResults, Results


@Figure(
    layout="a;b;c;d;e",
    height=4.5,
    heights=(0.75, 1.0, 1.0, 0.8, 1.25),
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
            "metrics": "final_strength_over_target half_time_error",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Mode strengths and their theory."""
    return [style.BAND, style.handle("closed form", **style.THEORY)]


def panel_a(results: Results, ax: Axes) -> None:
    """Graphs that generate the data: items are coloured dots, latent nodes small black ones."""
    cells = _by_form(results)
    for part, (_, dataset) in zip(style.split(ax, 1, len(cells))[0], cells, strict=True):
        _draw_graph(part, dataset, style.sequential(dataset.items))
        part.set_title(dataset.form.replace("_", "-"), loc="center")
    ax.set_title(f"{len(cells)} structures of {cells[0][1].items} items")


def panel_b(results: Results, ax: Axes) -> None:
    """Covariance of the items, from zero (dark) to the largest entry of each."""
    cells = _by_form(results)
    for part, (_, dataset) in zip(style.split(ax, 1, len(cells))[0], cells, strict=True):
        shared = dataset.covariance()
        style.heat(part, shared, 0, float(shared.max()), aspect="equal")
        _label_items(part, dataset)
    ax.set_title("Item covariance")


def panel_c(results: Results, ax: Axes) -> None:
    """Item vectors, a column for each mode, scaled by its singular value: orange is positive, blue
    negative, on one scale in each structure.
    """
    cells = _by_form(results)
    for part, (cell, dataset) in zip(style.split(ax, 1, len(cells))[0], cells, strict=True):
        scaled = signed_vectors(cell)[1] * cell.data.modes.s
        size = float(abs(scaled).max())
        style.heat(part, scaled, -size, size, aspect="equal")
        _label_items(part, dataset)
    learned = min(
        float(cell.get("metrics", "final_strength_over_target").min()) for cell, _ in cells
    )
    ax.set_title(f"Item vectors, a column a mode; all modes are learned to {learned:.0%} or more")


def panel_d(results: Results, ax: Axes) -> None:
    """Multidimensional scaling of the hidden representations of the items, first seed at the
    smallest init scale, all times at once and without what items share: paths darken with time,
    dots are their ends.
    """
    cells = _by_form(results)
    for part, (cell, dataset) in zip(style.split(ax, 1, len(cells))[0], cells, strict=True):
        paths = classical_scaling(_representations(cell))
        _draw_development(part, paths, style.sequential(dataset.items))
    ax.set_title("Development of representations (MDS)")


def panel_e(results: Results, ax: Axes) -> None:
    """Strength of the modes over time, dark to light from the strongest. The number is the largest
    distance of a half time from the closed form's, a mean over seeds.
    """
    cells = _by_form(results)
    axes = style.split(ax, 1, len(cells), sharey=True)[0]
    for column, (part, (cell, _)) in enumerate(zip(axes, cells, strict=True)):
        modes = cell.get("trajectory", "mode_strength").isel(init_scale=0)
        closed = cell.get("theory", "mode_strength", solution="aligned_modes").isel(init_scale=0)
        draw_modes(part, cell, modes, closed, linewidth=1.4)
        part.set(xlabel=r"flow time ($\tau$)", xlim=(0, cell.flow_time[-1]))
        part.tick_params(labelleft=column == 0)
    axes[0].set(ylabel="strength", ylim=(0, None))
    off = max(
        float(cell.get("metrics", "half_time_error", solution="aligned_modes").mean("seed").max())
        for cell, _ in cells
    )
    ax.set_title(f"Modes are learned one by one, half times within {off:.0%} of theory")


def _by_form(results: Results) -> list[tuple[CellResults, StructuralForm]]:
    """Cells and their structures, in the order of `REQUIREMENTS`."""
    cells = [
        (cell, dataset_of(cell, StructuralForm, "generating graph"))
        for cell in results.cells("structural_forms")
    ]
    return sorted(cells, key=lambda item: list(REQUIREMENTS).index(item[1].form))


def _label_items(ax: Axes, dataset: StructuralForm) -> None:
    ax.set_xticks([])
    ax.set_yticks([0, dataset.items - 1], ["1", str(dataset.items)])
    ax.set_ylabel("item", labelpad=-3)


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


def _representations(cell: CellResults) -> Float[np.ndarray, "snapshot item unit"]:
    """Hidden representations of the items until the loss has settled.

    Items are one-hot, so these are the columns of the first weights.
    """
    weights = cell.get("trajectory", "weight_1").isel(init_scale=0, seed=0)
    end = style.settling_time(
        cell.get("trajectory", "loss").isel(init_scale=0, seed=0), cell.flow_time
    )
    learning = cell.trajectory["snapshot_flow_time"].values <= end
    return weights.transpose("snapshot", "unit_0", "unit_1").values[learning]


def classical_scaling(
    points: Float[np.ndarray, "snapshot item unit"],
) -> Float[np.ndarray, "snapshot item 2"]:
    """Classical multidimensional scaling of all snapshots at once, so that paths are continuous.

    The mean over items is subtracted at each snapshot.
    """
    centred = points - points.mean(axis=1, keepdims=True)
    _, _, axes = np.linalg.svd(centred.reshape(-1, points.shape[-1]), full_matrices=False)
    return centred @ axes[:2].T


def _draw_development(ax: Axes, paths: Float[np.ndarray, "snapshot item 2"], colours: list) -> None:
    """Draws the path of each item, darker with time, and a dot at its end."""
    darkness = np.linspace(0.2, 1, len(paths) - 1)
    for path, colour in zip(np.swapaxes(paths, 0, 1), colours, strict=True):
        steps = np.stack([path[:-1], path[1:]], axis=1)
        ax.add_collection(LineCollection(list(steps), colors=colour, alpha=darkness, linewidths=1))
        ax.scatter(*path[-1], s=7, color=colour, zorder=3)
    ax.set(aspect="equal", adjustable="datalim")
    ax.margins(0.12)
    ax.set_axis_off()
