"""Labels of lines at their right ends, beside the axes, moved apart where lines end together."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from neuralrace.figures.style import RC_PARAMS

SIZE = RC_PARAMS["legend.fontsize"]
"""Font size of the labels in points."""
LINE_HEIGHT = 1.3
"""Height of a line of a label, over the font size."""
SHRINKING = 0.75
"""Least height of axes after the layout, over the height before it, when labels are placed."""


def label_ends(ax: Axes, ends: Iterable[tuple[float, str, Any]]) -> None:
    """Labels lines at the right edge of axes, in their colours.

    Args:
        ax: axes with their final limits and scale along y.
        ends: for each line its last height in data coordinates, its label and its colour.
    """
    box = ax.get_window_extent()
    tall = SHRINKING * box.height * 72 / ax.figure.dpi
    listed = sorted(
        (tall * float(np.clip(np.nan_to_num(_share(ax, y)), 0, 1)), text, colour)
        for y, text, colour in ends
    )
    heights = [SIZE * LINE_HEIGHT * (text.count("\n") + 1) for _, text, _ in listed]
    places = _below(tall, _apart([y for y, _, _ in listed], heights), heights)
    for place, (_, text, colour) in zip(places, listed, strict=True):
        ax.annotate(
            text,
            (1, place / tall),
            (4, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            color=colour,
            fontsize=SIZE,
            va="center",
            linespacing=1.1,
            annotation_clip=False,
        )


def _below(top: float, middles: list[float], heights: list[float]) -> list[float]:
    """Ascending middles of labels, moved down where they would reach above `top`."""
    placed: list[float] = []
    for middle, height in zip(reversed(middles), reversed(heights), strict=True):
        placed.append(min(middle, top - height / 2))
        top = placed[-1] - height / 2
    return placed[::-1]


def _share(ax: Axes, y: float) -> float:
    """Height in data coordinates as a share of the axes; NaN where a logarithm does not exist."""
    with np.errstate(all="ignore"):
        return float(ax.transAxes.inverted().transform(ax.transData.transform((0.5, y)))[1])


def _apart(middles: list[float], heights: list[float]) -> list[float]:
    """Ascending middles of labels, moved as little as keeps neighbours from overlapping."""
    below = np.cumsum([0.0, *((a + b) / 2 for a, b in pairwise(heights))])
    free = np.subtract(middles, below[: len(middles)])
    # The nearest ascending sequence: means of neighbours that violate the order.
    groups: list[list[float]] = []
    for value in free.tolist():
        groups.append([value])
        while len(groups) > 1 and np.mean(groups[-2]) > np.mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    spread = [float(np.mean(group)) for group in groups for _ in group]
    return [place + shift for place, shift in zip(spread, below.tolist(), strict=False)]
