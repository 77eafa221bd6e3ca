"""What a reader cannot read in a figure."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.text import Text

SMALLEST = 6.0
"""Points of the smallest letters, at the figure's own width."""
SLACK = 0.5
"""Points that letters may reach into each other or over an edge: they are placed by pixels."""


NO_NUMBER = re.compile(r"\b(?:nan|inf)\b")


class Line(NamedTuple):
    """A line of letters as it is drawn."""

    words: str
    size: float
    """In points."""
    corners: np.ndarray
    """Of the ink, which may be turned: pixels from the lower left of the page, shape `(4, 2)`."""
    window: tuple[float, float, float, float] | None
    """Left, lower, right and upper edge of what it is clipped to; None where it is not."""


class Letters(RendererBase):
    """Takes note of all text that is drawn on it, and draws nothing."""

    def __init__(self, figure: Figure):
        super().__init__()
        self.page = figure.bbox.size
        self.dpi = figure.dpi
        self.lines: list[Line] = []

    def flipy(self) -> bool:
        return False

    def get_canvas_width_height(self) -> tuple[float, float]:
        return tuple(self.page)

    def points_to_pixels(self, points: Any) -> Any:
        return points * self.dpi / 72

    def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None) -> None:
        width, height, descent = self.get_text_width_height_descent(s, prop, ismath)
        if not s.strip() or not width or not height:
            return
        upright = np.array([(0, 0), (width, 0), (width, height), (0, height)]) - (0, descent)
        cos, sin = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        corners = upright @ [[cos, sin], [-sin, cos]] + (x, y)
        clip = gc.get_clip_rectangle()
        window = clip and tuple(clip.extents)
        self.lines.append(Line(s, prop.get_size_in_points(), corners, window))

    def nothing(self, *_, **__) -> None:
        pass

    draw_path = draw_markers = draw_path_collection = draw_quad_mesh = nothing
    draw_image = draw_gouraud_triangles = nothing


def lines(figure: Figure) -> list[Line]:
    """All text of a figure, line by line, where it was placed when it was drawn last."""
    letters = Letters(figure)
    with patch.object(Text, "get_path_effects", lambda text: []):  # they make letters paths
        for artist in figure.get_children():
            artist.draw(letters)
    return letters.lines


def faults(figure: Figure) -> list[str]:
    """What is wrong with the text and the axes of a figure that was drawn, each in words.

    Text that is smaller than can be read, tells a number that is none, leaves the page, is cut off,
    or lies in other text; axes that leave the page or have no data; axes with data of which no
    label and no tick says what they show, nor one of axes that share with them. Axes that are
    switched off (`set_axis_off`) are a drawing.
    """
    slack = SLACK * figure.dpi / 72
    page = (0.0, 0.0, *figure.bbox.size)
    seen = [line for line in lines(figure) if not _hidden(line)]
    found = [f"too small: {line.words}" for line in seen if line.size < SMALLEST]
    found += [f"no number: {line.words}" for line in seen if NO_NUMBER.search(line.words)]
    for line in seen:
        if _beyond(line.corners, line.window or page) > slack:
            found.append(f"{'cut off' if line.window else 'off the page'}: {line.words}")
    found += [f"in each other: {one.words} | {other.words}" for one, other in _mixed(seen, slack)]
    for ax in _shown(figure):
        if _beyond(ax.get_window_extent().corners(), page) > slack:
            found.append(f"off the page: {_place(figure, ax)}")
        if not ax.has_data():
            found.append(f"no data: {_place(figure, ax)}")
        elif not _named(ax):
            found.append(f"no names: {_place(figure, ax)}")
    return found


def _hidden(line: Line) -> bool:
    """Whether nothing is left of a line."""
    if line.window is None:
        return False
    x0, y0, x1, y1 = line.window
    (left, low), (right, high) = line.corners.min(axis=0), line.corners.max(axis=0)
    return bool(right <= x0 or left >= x1 or high <= y0 or low >= y1)


def _beyond(corners: np.ndarray, edges: tuple[float, float, float, float]) -> float:
    """By how much a shape leaves a window; negative where it does not."""
    return float(max((edges[:2] - corners).max(), (corners - edges[2:]).max()))


def _mixed(seen: list[Line], slack: float) -> Iterator[tuple[Line, Line]]:
    """Pairs of lines that lie in each other by more than `slack`, in whichever direction."""
    corners = np.reshape([line.corners for line in seen], (-1, 4, 2))
    low, high = corners.min(axis=1), corners.max(axis=1)
    common = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    near = np.triu((common > slack).all(axis=-1), k=1)  # of lines that are not turned: all
    for one, other in np.argwhere(near):
        if _depth(corners[one], corners[other]) > slack:
            yield seen[one], seen[other]


def _depth(one: np.ndarray, other: np.ndarray) -> float:
    """How far two rectangles have to be moved to lie apart; negative where they do already.

    They do where a side of either has one of them on either hand (separating axis theorem).
    """
    sides = np.concatenate([np.diff(one[:3], axis=0), np.diff(other[:3], axis=0)])
    across = sides / np.linalg.norm(sides, axis=1, keepdims=True)
    a, b = one @ across.T, other @ across.T
    return float((np.minimum(a.max(0), b.max(0)) - np.maximum(a.min(0), b.min(0))).min())


def _shown(figure: Figure) -> list[Axes]:
    """The axes of a figure, with insets, that are neither hidden nor switched off."""
    inset = [child for ax in figure.axes for child in ax.child_axes if isinstance(child, Axes)]
    return [ax for ax in (*figure.axes, *inset) if ax.get_visible() and ax.axison]


def _named(ax: Axes) -> bool:
    """Whether axes, or some that they share, have a label or the name of a tick."""
    shared = (ax.get_shared_x_axes(), ax.get_shared_y_axes())
    axes = {each for siblings in shared for each in siblings.get_siblings(ax)}
    labels = [label for each in axes for label in (each.get_xlabel(), each.get_ylabel())]
    ticks = [tick for each in axes for tick in (*each.get_xticklabels(), *each.get_yticklabels())]
    return any(labels) or any(tick.get_text() for tick in ticks)


def _place(figure: Figure, ax: Axes) -> str:
    """Which axes, in words: their title, or else where they stand."""
    titles = [ax.get_title(loc=side) for side in ("left", "center", "right")]
    x, y = ax.get_position().get_points().mean(axis=0)
    return "".join(titles) or f"axes about ({x:.2f}, {y:.2f}) of the page"
