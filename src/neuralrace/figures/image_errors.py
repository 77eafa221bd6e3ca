"""Errors on held-out images of trained and untrained pairs of domains, with baselines."""

from collections.abc import Callable, Sequence
from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from neuralrace.datasets.images import CLASSES
from neuralrace.figures import domains, style
from neuralrace.results.cells import CellResults

SHARES = (0.2, 0.4, 0.6, 0.8)
PAIRS: dict[str, dict[str, Any]] = {
    "untrained": domains.UNTRAINED,
    "trained": domains.TRAINED | {"markersize": 2},
}
"""Trained pairs are on top and smaller, because both often coincide."""
GAP: dict[str, Any] = {"color": "white", "linewidth": 4, "capstyle": "round", "zorder": 0.5}
"""Ground of ranges, which would be hidden where they stand on the line of the paper."""
Measure = Callable[[CellResults, str], xr.DataArray]


def misclassified(cell: CellResults, pairs: str) -> xr.DataArray:
    """Share of held-out images that pairs (trained or untrained) misclassify at the end."""
    return cell.get("metrics", f"final_{pairs}_misclassified")


def draw_pairs(ax: Axes, of: Measure, cells: Sequence[CellResults]) -> None:
    """Draws a measure of trained and of untrained pairs against K/M."""
    for name, props in PAIRS.items():
        values = [of(cell, name).isel(init_scale=0) for cell in cells]
        domains.draw_by_partners(ax, cells, values, props)
        for cell, runs in zip(cells, values, strict=True):
            ax.vlines(domains.partner_share(cell), runs.min(), runs.max(), **GAP)
    ax.axvline(domains.PAPER_SHARE, **style.PAPER | {"zorder": 0})
    shown = ax.get_xlim()
    ax.set_xticks(SHARES)
    ax.set_xlim(shown)  # Ticks beyond the markers would widen the axis.


def frame_shares(ax: Axes, baseline: CellResults, named: bool, ridge_at: float = 0.65) -> None:
    """Prepares an axis of shares misclassified, with ridge regression of a cell and guessing.

    Args:
        ax: axes to draw on.
        baseline: has the ridge regression.
        named: whether both lines have a name.
        ridge_at: place of the name of ridge regression, as a share of the axis.
    """
    ridge, chance = float(baseline.get("metrics", "ridge_misclassified").mean()), 1 - 1 / CLASSES
    ax.axhline(chance, **style.GUIDE)
    draw_ridge(ax, ridge, named, ridge_at)
    ax.set(ylim=(0, 1), yticks=(0, 0.5, 1))
    if named:
        right = {"xycoords": ax.get_yaxis_transform(), "ha": "right", "va": "top"}
        style.note_at(ax, "chance", (1, chance), (-1, -2), **right)


def draw_ridge(ax: Axes, height: float, named: bool, at: float = 0.65) -> None:
    """The level of ridge regression in each input domain by itself, with or without its name."""
    ax.axhline(height, **style.GUIDE)
    if named:
        middle = {"xycoords": ax.get_yaxis_transform(), "ha": "center"}
        style.note_at(ax, "ridge", (at, height), (0, 4), **middle)
