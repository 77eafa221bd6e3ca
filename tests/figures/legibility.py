"""Legibility faults of a figure, such as text that is too small, cut off or overlapping."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from jaxtyping import UInt8
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from neuralrace.figures.compose import LETTER, THIN, WORD
from neuralrace.figures.style import CONTRAST, TITLE_WORDS, Colour, contrast

SMALLEST = 6.0
"""Smallest font size in points, at the width of the figure."""
SLACK = 0.5
"""Overlap in points that is allowed, as text is placed by pixels."""


FORMULA = re.compile(r"\$[^$]*\$")
NO_NUMBER = re.compile(r"\b(?:nan|inf)\b")


class Line(NamedTuple):
    """A line of text as it is drawn."""

    words: str
    size: float
    """In points."""
    colour: Colour
    corners: np.ndarray
    """Corners of the text, which may be rotated: pixels from the lower left, shape `(4, 2)`."""
    window: tuple[float, float, float, float] | None
    """Left, lower, right and upper edge of the clipping window; None without clipping."""


class TextRecorder(RendererBase):
    """Renderer that records text and draws nothing."""

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
        cos, sin = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        clip = gc.get_clip_rectangle()
        window = clip and tuple(clip.extents)
        # a run of hair spaces is left free for other text
        left, gap, right = s.partition(THIN)
        ends = [(left, 0.0)]
        if gap:
            right = right.lstrip(THIN)
            ends.append((right, width - self.get_text_width_height_descent(right, prop, ismath)[0]))
        for words, start in ends:
            end = start + self.get_text_width_height_descent(words, prop, ismath)[0]
            upright = np.array([(start, 0), (end, 0), (end, height), (start, height)]) - (
                0,
                descent,
            )
            corners = upright @ [[cos, sin], [-sin, cos]] + (x, y)
            colour = gc.get_rgb()[:3]
            self.lines.append(Line(words, prop.get_size_in_points(), colour, corners, window))

    def nothing(self, *_, **__) -> None:
        pass

    draw_path = draw_markers = draw_path_collection = draw_quad_mesh = nothing
    draw_image = draw_gouraud_triangles = nothing


def lines(figure: Figure) -> list[Line]:
    """All lines of text of a figure, where they were last drawn."""
    recorder = TextRecorder(figure)
    # Path effects would turn text into paths.
    with patch.object(Text, "get_path_effects", lambda text: []):
        for artist in figure.get_children():
            artist.draw(recorder)
    return recorder.lines


def faults(figure: Figure) -> list[str]:
    """Faults of the text and the axes of a figure that was drawn, in words.

    Text must not be too small or too pale, contain NaN or infinity, leave the page, be cut off, or
    overlap other text. Axes must not leave the page, and must have data. Axes with data, or axes
    that share with them, must have a label or named ticks. Axes that are switched off
    (`set_axis_off`) are drawings, and are not checked.
    """
    slack = SLACK * figure.dpi / 72
    page = (0.0, 0.0, *figure.bbox.size)
    visible = [line for line in lines(figure) if not _hidden(line)]
    faults = [f"too small: {line.words}" for line in visible if line.size < SMALLEST]
    faults += [f"pale: {line.words}" for line in _pale(figure, visible)]
    faults += [f"no number: {line.words}" for line in visible if NO_NUMBER.search(line.words)]
    for line in visible:
        if _beyond(line.corners, line.window or page) > slack:
            faults.append(f"{'cut off' if line.window else 'off the page'}: {line.words}")
    faults += [
        f"in each other: {one.words} | {other.words}" for one, other in _overlapping(visible, slack)
    ]
    for ax in _shown(figure):
        if _beyond(ax.get_window_extent().corners(), page) > slack:
            faults.append(f"off the page: {_name(figure, ax)}")
        if not ax.has_data():
            faults.append(f"no data: {_name(figure, ax)}")
        elif not _named(ax):
            faults.append(f"no names: {_name(figure, ax)}")
    return faults


def title_faults(figure: Figure) -> list[str]:
    """Titles of panels that are longer than a line or `TITLE_WORDS`, or have several numbers."""
    faults = []
    for ax in figure.axes:
        title = ax.get_title(loc="left").replace(THIN, "")
        if not LETTER.match(title):
            continue
        words = WORD.findall(LETTER.sub("", title))
        numbers = [word for word in words if re.search(r"\d", FORMULA.sub("", word))]
        if "\n" in title or len(words) > TITLE_WORDS or len(numbers) > 1:
            faults.append(f"long title: {title}")
    return faults


def _pale(figure: Figure, lines: list[Line]) -> list[Line]:
    """Lines without contrast to white that have none to what they stand on, either."""
    pale = [line for line in lines if contrast(line.colour) < CONTRAST]
    if not pale:
        return []
    picture = _without_text(figure)
    return [line for line in pale if contrast(line.colour, _ground(picture, line)) < CONTRAST]


def _without_text(figure: Figure) -> UInt8[np.ndarray, "row column 4"]:
    """The pixels of a figure, the first row on top."""
    canvas = FigureCanvasAgg(figure)
    with patch.object(Text, "draw", lambda text, renderer: None):
        canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def _ground(picture: UInt8[np.ndarray, "row column 4"], line: Line) -> Colour:
    """The median colour under a line of text."""
    (left, low), (right, high) = line.corners.min(axis=0), line.corners.max(axis=0)
    under = picture[::-1][int(low) : int(high) + 1, int(left) : int(right) + 1, :3]
    red, green, blue = (np.median(under, axis=(0, 1)) / 255).tolist()
    return red, green, blue


def _hidden(line: Line) -> bool:
    """Whether a line is completely clipped."""
    if line.window is None:
        return False
    x0, y0, x1, y1 = line.window
    (left, low), (right, high) = line.corners.min(axis=0), line.corners.max(axis=0)
    return bool(right <= x0 or left >= x1 or high <= y0 or low >= y1)


def _beyond(corners: np.ndarray, edges: tuple[float, float, float, float]) -> float:
    """Distance by which a shape leaves a window; negative if it does not."""
    return float(max((edges[:2] - corners).max(), (corners - edges[2:]).max()))


def _overlapping(lines: list[Line], slack: float) -> Iterator[tuple[Line, Line]]:
    """Pairs of lines that overlap by more than `slack`."""
    corners = np.reshape([line.corners for line in lines], (-1, 4, 2))
    low, high = corners.min(axis=1), corners.max(axis=1)
    common = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    near = np.triu((common > slack).all(axis=-1), k=1)  # exact for lines that are not rotated
    for one, other in np.argwhere(near):
        if _depth(corners[one], corners[other]) > slack:
            yield lines[one], lines[other]


def _depth(one: np.ndarray, other: np.ndarray) -> float:
    """Smallest shift that separates two rectangles; negative if they do not overlap.

    By the separating axis theorem, it is along a side of one of them.
    """
    sides = np.concatenate([np.diff(one[:3], axis=0), np.diff(other[:3], axis=0)])
    across = sides / np.linalg.norm(sides, axis=1, keepdims=True)
    a, b = one @ across.T, other @ across.T
    return float((np.minimum(a.max(0), b.max(0)) - np.maximum(a.min(0), b.min(0))).min())


def _shown(figure: Figure) -> list[Axes]:
    """The visible axes of a figure, with insets."""
    inset = [child for ax in figure.axes for child in ax.child_axes if isinstance(child, Axes)]
    return [ax for ax in (*figure.axes, *inset) if ax.get_visible() and ax.axison]


def _named(ax: Axes) -> bool:
    """Whether axes, or axes that share with them, have a label or a named tick."""
    shared = (ax.get_shared_x_axes(), ax.get_shared_y_axes())
    axes = {sibling for group in shared for sibling in group.get_siblings(ax)}
    labels = [label for a in axes for label in (a.get_xlabel(), a.get_ylabel())]
    ticks = [tick for a in axes for tick in (*a.get_xticklabels(), *a.get_yticklabels())]
    return any(labels) or any(tick.get_text() for tick in ticks)


def _name(figure: Figure, ax: Axes) -> str:
    """Name of axes: their title, or their position."""
    titles = [ax.get_title(loc=side) for side in ("left", "center", "right")]
    x, y = ax.get_position().get_points().mean(axis=0)
    return "".join(titles) or f"axes about ({x:.2f}, {y:.2f}) of the page"
