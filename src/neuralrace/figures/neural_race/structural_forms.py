"""Structural forms: what generates them, what they look like, and how a network comes to see it."""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure as Canvas

from neuralrace.datasets.structural_forms import REQUIREMENTS, StructuralForm
from neuralrace.errors import UserError
from neuralrace.figures import style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

TITLES = ("graph", "covariance", "item vectors", "MDS")


@Figure(
    reads={
        "structural_forms": {
            "trajectory": "loss weight_1",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Graph, item covariance, scaled singular vectors and hidden representations of each form.

    Representations are those of the first seed at the smallest init scale.
    """
    forms = list(REQUIREMENTS)
    cells = [(cell, _dataset(cell)) for cell in results.cells("structural_forms")]
    cells.sort(key=lambda each: forms.index(each[1].form))
    figure, axes = style.panels(len(cells), len(TITLES), height=0.84)
    for row, (cell, dataset) in zip(axes, cells, strict=True):
        graph, covariance, vectors, development = row
        colours = style.ordered(dataset.items)
        _graph(graph, dataset, colours)
        shared = dataset.covariance()
        style.heat(covariance, shared, 0, shared.max())
        modes = cell.data.modes
        # a pair of vectors has no sign of its own: let items sum to what is not negative
        scaled = np.where(modes.v.sum(0) < -1e-9, -1, 1) * modes.v * modes.s
        size = float(abs(scaled).max())
        style.heat(vectors, scaled, -size, size)
        _development(development, classical_scaling(_representations(cell)), colours)
        graph.set_ylabel(dataset.form.replace("_", "-"))
        covariance.set_ylabel("item")
        vectors.set_ylabel("item")
        development.set_ylabel("coordinate 2")
    for ax, name in zip(axes[-1], ("", "item", "mode", "coordinate 1"), strict=True):
        ax.set_xlabel(name)
    style.letters(axes[0], TITLES)
    return figure


def _dataset(cell: CellResults) -> StructuralForm:
    dataset = cell.spec.dataset
    if not isinstance(dataset, StructuralForm):
        raise UserError(f"{cell.name}: dataset {dataset.name!r} has no generating graph to draw")
    return dataset


def _graph(ax: Axes, dataset: StructuralForm, colours: list) -> None:
    """The generating graph: items as coloured dots, latent nodes as small black ones."""
    place, items = dataset.positions(), dataset.items
    edges, _ = dataset.graph()
    lines = [place[[a, b]] for a, b, _ in edges]
    ax.add_collection(LineCollection(lines, colors="0.5", linewidths=0.7))
    ax.scatter(*place[:items].T, s=14, c=colours, zorder=3)
    ax.scatter(*place[items:].T, s=3, c="black", zorder=3)
    ax.set(xticks=[], yticks=[])
    ax.margins(0.12)
    ax.spines[:].set_visible(False)


def _representations(cell: CellResults) -> Float[np.ndarray, "snapshot item unit"]:
    """What the first layer makes of each one-hot item, columns of its weights, while it learns."""
    weights = cell.get("trajectory", "weight_1").isel(init_scale=0, seed=0)
    end = style.settled(cell.get("trajectory", "loss").isel(init_scale=0, seed=0), cell.flow_time)
    learning = cell.trajectory["snapshot_flow_time"].values <= end
    return weights.transpose("snapshot", "unit_0", "unit_1").values[learning]


def classical_scaling(
    points: Float[np.ndarray, "snapshot item unit"],
) -> Float[np.ndarray, "snapshot item 2"]:
    """Classical multidimensional scaling, of all snapshots at once so that paths are continuous.

    What all items share at a time is taken out.
    """
    centred = points - points.mean(axis=1, keepdims=True)
    _, _, axes = np.linalg.svd(centred.reshape(-1, points.shape[-1]), full_matrices=False)
    return centred @ axes[:2].T


def _development(ax: Axes, paths: Float[np.ndarray, "snapshot item 2"], colours: list) -> None:
    """The path of each item, darker with time, and where it ends."""
    darkness = np.linspace(0.2, 1, len(paths) - 1)
    for path, colour in zip(np.swapaxes(paths, 0, 1), colours, strict=True):
        steps = np.stack([path[:-1], path[1:]], axis=1)
        ax.add_collection(LineCollection(list(steps), colors=colour, alpha=darkness, linewidths=1))
        ax.scatter(*path[-1], s=7, color=colour, zorder=3)
    ax.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
    ax.margins(0.12)
    ax.spines[:].set_visible(False)
