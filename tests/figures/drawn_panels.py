"""Panels that are drawn alone, and the data of their artists."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes

from neuralrace.figures.style import Canvas, rc_context
from neuralrace.results.cells import CellResults, Results


def drawn(panel: Callable[[Results, Axes], None], results: Results) -> list[Axes]:
    """The axes of a panel in a new figure; axes that are switched off are left out."""
    with rc_context():
        figure = Canvas(figsize=(4, 3))
        panel(results, figure.subplots())
        figure.draw_without_rendering()
    return [ax for ax in figure.axes if ax.axison]


def curves(ax: Axes) -> list[np.ndarray]:
    """Heights of all lines with more than two points."""
    return [np.asarray(line.get_ydata()) for line in ax.lines if len(line.get_xdata()) > 2]


def has_curve(ax: Axes, values) -> bool:
    return any(
        curve.shape == np.shape(values) and np.allclose(curve, values) for curve in curves(ax)
    )


def points(ax: Axes, marker: str | None = None) -> np.ndarray:
    """Coordinates of single markers, (point, x and y), in the order drawn.

    `marker` selects one kind; a bar or a line without a marker is no point.
    """
    single = [line for line in ax.lines if len(line.get_xdata()) == 1]
    markers = [line.get_marker() for line in single]
    return np.array([
        line.get_xydata()[0]
        for line, kind in zip(single, markers, strict=True)
        if kind == marker or (marker is None and kind != "None")
    ]).reshape(-1, 2)  # fmt: skip


def means(cell: CellResults, metric: str) -> np.ndarray:
    """A metric at the smallest init scale, the mean over seeds."""
    values = cell.metrics[metric]
    if "init_scale" in values.dims:
        values = values.sel(init_scale=values["init_scale"].min())
    return values.mean("seed").values
