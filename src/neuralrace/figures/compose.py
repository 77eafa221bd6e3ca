"""A whole figure: draws the panels, and adds letters, titles, a legend and the alternative text."""

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from neuralrace.extensions.registry import FIGURES
from neuralrace.figures import style
from neuralrace.results.cells import Results

GAP = 6
"""Points between a title and the title of the next panel."""
WORD = re.compile(r"(?:\$[^$]*\$|[^\s$])+")
"""A word of a title; a formula is one word."""
LETTER = re.compile(r"^\$\\bf\{(.)\}\$\s*")
"""The letter of a panel, before its title."""
SOURCE = {"fontsize": 6, "color": "0.45", "va": "top", "annotation_clip": False}
"""Text properties of the panel of a paper, which stands between letter and title."""
THIN = "\N{HAIR SPACE}"
"""Fills the place of that text in a title."""
NO_NUMBER = re.compile(r"\b(?:nan|inf)\b")
"""The text of a value that does not exist, such as a time that a run did not reach."""


def compose(name: str, results: Results) -> Figure:
    """Draws a figure.

    Args:
        name: `paper/figure`, a key of `FIGURES`.
        results: at least the cells that the figure shows.

    Raises:
        UserError: a missing or damaged result file, a missing cell or variable.
    """
    entry = FIGURES[name]
    declaration, module = entry.declaration, import_module(entry.module)
    figure = style.Canvas(figsize=(declaration.width or style.PAGE, declaration.height))
    axes = figure.subplot_mosaic(
        declaration.layout,
        width_ratios=declaration.widths or None,
        height_ratios=declaration.heights or None,
    )
    axes = dict(sorted(axes.items()))
    for letter, ax in axes.items():
        getattr(module, f"panel_{letter}")(results, ax)
    style.legend(figure, entry.load()(results))
    style.darken_text(figure)
    set_titles(figure, axes, declaration.cf)
    return figure


def set_titles(figure: Figure, axes: Mapping[str, Axes], cf: Mapping[str, str]) -> None:
    """Adds letters and panels of the paper to titles, and breaks titles before the next panel.

    A title with a number that is NaN or infinite becomes "Not reached".

    Args:
        figure: a figure in which everything else is drawn.
        axes: the axes of each panel, by letter.
        cf: the panels of a paper to compare with, by letter; they stand small beside the letter.
    """
    titles = {}
    for letter, ax in axes.items():
        title = ax.get_title(loc="left")
        titles[letter] = WORD.findall("Not reached" if NO_NUMBER.search(title) else title)
    letters = {letter: ax.set_title(f"$\\bf{{{letter}}}$") for letter, ax in axes.items()}
    # The space for titles is known only after the layout, and which of them something pushes up.
    # The others get a fixed height: matplotlib would measure the ticks again at each drawing.
    style.apply_layout(figure)
    lefts = {letter: ax.get_window_extent().x0 for letter, ax in axes.items()}
    # Rows of the grid are compared, as a panel that was split is only a line above its parts.
    rows = {
        letter: style.subplot_spec(ax).get_topmost_subplotspec().rowspan
        for letter, ax in axes.items()
    }
    for letter, ax in axes.items():
        next_lefts = [
            left
            for other, left in lefts.items()
            if left > lefts[letter] and rows[letter].start in rows[other]
        ]
        right = min([*next_lefts, figure.bbox.x1])
        width = 72 * (right - lefts[letter]) / figure.dpi - GAP
        bold = f"$\\bf{{{letter}}}$"
        source = cf.get(letter, "")
        lines = _lines(f"{bold} {_blank(source)}", titles[letter], width)
        pushed_up = letters[letter].get_position()[1] > 1
        text = ax.set_title("\n".join(lines), y=None if pushed_up else 1)
        if source:
            shift = style.text_width(f"{bold} ", style.RC_PARAMS["axes.titlesize"])
            ax.annotate(
                source, (0, 1), (shift, -1.2), xycoords=text, textcoords="offset points", **SOURCE
            )
    for title, ax in ((ax.title, ax) for ax in figure.axes):  # of parts of a panel, in the middle
        if title.get_text() and title.get_position()[1] == 1:
            ax.set_title(title.get_text(), loc="center", y=1)


def _blank(source: str) -> str:
    """Hair spaces as wide as the panel of a paper, and a gap."""
    if not source:
        return ""
    size = style.RC_PARAMS["axes.titlesize"]
    wide = style.text_width(source, SOURCE["fontsize"]) + 3
    return THIN * math.ceil(wide / style.text_width(THIN, size))


def _lines(start: str, words: Sequence[str], width: float) -> list[str]:
    """Lines of text that begin with `start`, each with as many words as fit into `width` points."""

    def too_long(count: int) -> bool:
        line = " ".join([start, *words[:count]])
        return bool(style.text_width(line, style.RC_PARAMS["axes.titlesize"]) > width)

    fitting = bisect_left(range(1, len(words) + 1), True, key=too_long)
    line, rest = " ".join([start, *words[:fitting]]), words[fitting:]
    return [line, *_lines(rest[0], rest[1:], width)] if rest else [line]


def first_panel(figure: Figure) -> tuple[float, float, float, float]:
    """Left, top, right and bottom end of the first panel, as shares of the figure from above left.

    Args:
        figure: with its final layout.
    """
    first = style.subplot_spec(figure.axes[0]).get_topmost_subplotspec()
    parts = [
        box
        for ax in figure.axes
        if (spec := ax.get_subplotspec()) and spec.get_topmost_subplotspec() == first
        if (box := ax.get_tightbbox())
    ]
    box = Bbox.union(parts).transformed(figure.transFigure.inverted())
    left, bottom, right, top = np.clip(box.extents, 0, 1).round(4).tolist()
    return left, round(1 - top, 4), right, round(1 - bottom, 4)


def alternative_text(figure: Figure) -> str:
    """A text for readers who cannot see the figure: its titles, axis labels and legends."""
    panels = [_panel_text(ax) for ax in figure.axes]
    legend = _legend_text(text.get_text() for key in figure.legends for text in key.get_texts())
    return " ".join(filter(None, [*panels, legend]))


def _panel_text(ax: Axes) -> str:
    title = ax.get_title(loc="left")
    letter, legend = LETTER.match(title), ax.get_legend()
    parts = [
        f"Panel {letter[1]}: {_plain(LETTER.sub('', title))}." if letter else "",
        *(
            f"{side}: {_plain(label)}."
            for side, label in (("Across", ax.get_xlabel()), ("Up", ax.get_ylabel()))
            if label
        ),
        _legend_text(text.get_text() for text in legend.get_texts()) if legend else "",
    ]
    return " ".join(filter(None, parts))


def _legend_text(texts: Iterable[str]) -> str:
    joined = "; ".join(map(_plain, texts))
    return f"Legend: {joined}." if joined else ""


def _plain(text: str) -> str:
    """A text without the marks of formulas, on one line."""
    return " ".join(re.sub(r"[$\\{}]", "", text).split())
