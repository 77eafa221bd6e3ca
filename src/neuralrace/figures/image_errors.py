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
    "trained": domains.TRAINED | {"markersize": 2.2},
}
"""Trained pairs are on top and smaller, because both often coincide."""
RIDGE: dict[str, Any] = style.GUIDE | {"linestyle": style.LINES[3]}

Measure = Callable[[CellResults, str], xr.DataArray]


def misclassified(cell: CellResults, pairs: str) -> xr.DataArray:
    """Share of held-out images that pairs (trained or untrained) misclassify at the end."""
    return cell.get("metrics", f"final_{pairs}_misclassified")


def draw_pairs(ax: Axes, of: Measure, cells: Sequence[CellResults]) -> None:
    """Draws a measure of trained and of untrained pairs against K/M."""
    for name, props in PAIRS.items():
        values = [of(cell, name).isel(init_scale=0) for cell in cells]
        domains.draw_by_partners(ax, cells, values, props)
    ax.axvline(domains.PAPER_SHARE, **style.PAPER)
    shown = ax.get_xlim()
    ax.set_xticks(SHARES)
    ax.set_xlim(shown)  # Ticks beyond the markers would widen the axis.


def frame_shares(ax: Axes, baseline: CellResults) -> None:
    """Prepares an axis of shares misclassified, with ridge regression of a cell and guessing."""
    ax.axhline(float(baseline.get("metrics", "ridge_misclassified").mean()), **RIDGE)
    ax.axhline(1 - 1 / CLASSES, **style.GUIDE)
    ax.set_ylim(0, 1)
