"""XoR with a linear margin: cells of a sweep over it, and looks of the init scales in them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from neuralrace.datasets.xor import CROSSOVER, Xor
from neuralrace.errors import UserError
from neuralrace.figures import style
from neuralrace.networks.gates.per_example import PerExample
from neuralrace.results.cells import CellResults, Results

LABEL = r"margin $\Delta$"
LINEAR, XOR = {"color": style.distinct(0)}, {"color": style.distinct(1)}
"""Looks of pathways of one class each and of one example each, the paper's blue and orange."""


def margin(cell: CellResults) -> float:
    """Half the distance between the classes along the third input.

    Raises:
        UserError: the dataset has none.
    """
    dataset = cell.spec.dataset
    if not isinstance(dataset, Xor) or dataset.margin is None:
        raise UserError(f"{cell.name}: dataset {dataset.name!r} has no margin to draw")
    return dataset.margin


def by_margin(results: Results, experiment: str) -> list[CellResults]:
    """The cells of an experiment, smallest margin first."""
    return sorted(results.cells(experiment), key=margin)


def gated_pairs(results: Results) -> list[tuple[CellResults, CellResults]]:
    """Gated networks with a pathway for each class, and for each example, smallest margin first."""
    cells = by_margin(results, "xor_margin_gated")
    single = [isinstance(cell.gated.gates, PerExample) for cell in cells]
    linear, xor = ([c for c, s in zip(cells, single, strict=True) if s == kind] for kind in (0, 1))
    return list(zip(linear, xor, strict=True))


def over_faster(cell: CellResults, solution: str | None = None) -> xr.DataArray:
    """Time to half of the loss over that of the faster kind of pathway alone, by theory.

    Args:
        cell: a ReLU network.
        solution: whose time is taken; that of the network itself when absent.

    Returns:
        (init_scale, seed).
    """
    predicted = cell.get("metrics", "predicted_loss_half_time")
    faster = predicted.sel(solution=["margin_linear", "margin_xor"]).min("solution")
    if solution is None:
        return cell.get("metrics", "loss_half_time") / faster
    return predicted.sel(solution=solution, drop=True) / faster


def scales(cell: CellResults) -> dict[float, dict[str, Any]]:
    """Colour and marker of each init scale, largest scale first and darkest."""
    values = sorted(map(float, cell.spec.init_scales), reverse=True)
    return {
        scale: {"color": colour, "marker": style.marker(index)}
        for index, (scale, colour) in enumerate(
            zip(values, style.ordered(len(values)), strict=True)
        )
    }


def entries(cell: CellResults) -> list[Artist]:
    """Legend entries of the init scales."""
    return [style.entry(f"init scale {scale:g}", **look) for scale, look in scales(cell).items()]


def nearest(cells: Sequence[CellResults]) -> CellResults:
    """The cell whose margin is nearest to that of equal speed."""
    return min(cells, key=lambda cell: abs(margin(cell) - CROSSOVER))


def examples(values: Sequence[float]) -> list[int]:
    """Places, in rising margins, of the one nearest to equal speed and of one to either side."""
    near = int(abs(np.asarray(values) - CROSSOVER).argmin())
    return sorted({near // 2, near, (near + len(values)) // 2})


def draw_crossover(ax: Axes) -> None:
    """The margin at which both kinds of pathways grow equally fast."""
    ax.axvline(CROSSOVER, **style.GUIDE | {"zorder": 0})
    ax.annotate(
        r"$\Delta^*$",
        (CROSSOVER, 0),
        (-2, 4),
        ax.get_xaxis_transform(),
        "offset points",
        ha="right",
    )
