"""XoR with a linear margin: cells of a sweep over the margin, and marks of init scales."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatterSciNotation

from neuralrace.datasets.xor import CROSSOVER, Xor
from neuralrace.figures import style
from neuralrace.figures.sweeps import cannot_draw
from neuralrace.networks.gates.per_example import PerExample
from neuralrace.results.cells import CellResults, Results

LABEL = r"margin $\Delta$"
ROUNDED = 1e-3
"""Margins as near as this to that of equal speed are the same in a title."""
LINEAR, XOR = {"color": style.categorical(0)}, {"color": style.categorical(4)}
"""Pathways of one class each and of one example each; orange, as in the paper, is too near to the
ReLU network's colour.
"""
SIDEWAYS = 0.01
"""Margin by which neighbouring init scales are moved apart, so that their ranges can be seen."""


def margin(cell: CellResults) -> float:
    """Half the distance between the classes along the third input.

    Raises:
        UserError: a dataset without a margin.
    """
    dataset = cell.spec.dataset
    if not isinstance(dataset, Xor) or dataset.margin is None:
        raise cannot_draw(cell, "dataset", "margin")
    return dataset.margin


def title(cell: CellResults) -> str:
    """The margin, and whether it is that of equal speed, rounded."""
    value = margin(cell)
    star = r"\Delta^* = " if abs(value - CROSSOVER) < ROUNDED else ""
    return rf"$\Delta = {star}{value:.3g}$"


def by_margin(results: Results, experiment: str) -> list[CellResults]:
    """The cells of an experiment, smallest margin first."""
    return sorted(results.cells(experiment), key=margin)


def gated_pairs(results: Results) -> list[tuple[CellResults, CellResults]]:
    """Gated networks with a pathway for each class, and for each example, smallest margin first."""
    kinds: tuple[list[CellResults], list[CellResults]] = [], []
    for cell in by_margin(results, "xor_margin_gated"):
        kinds[isinstance(cell.gated.gates, PerExample)].append(cell)
    return list(zip(*kinds, strict=True))


def over_faster(cell: CellResults, solution: str | None = None) -> xr.DataArray:
    """Half time of the loss over that of the faster kind of pathway alone, according to theory.

    Args:
        cell: a ReLU network.
        solution: the solution whose half time is compared; the network's own when absent.

    Returns:
        (init_scale, seed).
    """
    predicted = cell.get("metrics", "predicted_loss_half_time")
    faster = predicted.sel(solution=["margin_linear", "margin_xor"]).min("solution")
    if solution is None:
        return cell.get("metrics", "loss_half_time") / faster
    return predicted.sel(solution=solution, drop=True) / faster


def scale_styles(cell: CellResults) -> dict[float, dict[str, Any]]:
    """Colour and marker of each init scale; the largest is first and darkest."""
    values = sorted(map(float, cell.spec.init_scales), reverse=True)
    return dict(style.styled(values))


def legend(cells: Sequence[CellResults]) -> style.Handles:
    """Markers of init scales, and theory."""
    name = LogFormatterSciNotation()
    return [
        *(
            style.handle(f"init scale {name(scale)}", linestyle="", **props)
            for scale, props in scale_styles(cells[0]).items()
        ),
        style.handle("theory", **style.THEORY),
    ]


def draw_by_margin(
    ax: Axes,
    cells: Sequence[CellResults],
    values: Iterable[xr.DataArray],
    theory: Iterable[xr.DataArray],
) -> None:
    """Values of all cells by margin and init scale, moved a little apart, with theory on top.

    Args:
        ax: axes to draw on; their x axis gets a label.
        cells: cells of a sweep over the margin.
        values: (init_scale, seed), for each cell.
        theory: the same, drawn as its mean over seeds.
    """
    middles, values, theory = np.array(list(map(margin, cells))), list(values), list(theory)
    styles = scale_styles(cells[0])
    for index, (scale, props) in enumerate(styles.items()):
        at = {"init_scale": scale}
        positions = middles + SIDEWAYS * ((len(styles) - 1) / 2 - index)
        style.point_series(ax, positions, [each.sel(at) for each in values], **props)
        ax.plot(positions, [float(each.sel(at).mean("seed")) for each in theory], **style.THEORY)
    draw_crossover(ax)
    ax.set_xlabel(LABEL)


def nearest(cells: Sequence[CellResults]) -> CellResults:
    """The cell whose margin is nearest to that of equal speed."""
    return min(cells, key=lambda cell: abs(margin(cell) - CROSSOVER))


def example_indices(values: Sequence[float]) -> list[int]:
    """Indices of three ascending margins: below, nearest to, and above that of equal speed."""
    near = int(abs(np.asarray(values) - CROSSOVER).argmin())
    return sorted({near // 2, near, (near + len(values)) // 2})


def draw_crossover(ax: Axes) -> None:
    """A line at the margin at which both kinds of pathways grow equally fast."""
    ax.axvline(CROSSOVER, **style.GUIDE | {"zorder": 0})
    ax.annotate(
        r"$\Delta^*$",
        (CROSSOVER, 0),
        (-2, 4),
        ax.get_xaxis_transform(),
        "offset points",
        ha="right",
    )
