"""A figure from its panels: laid out, lettered and titled, under one legend."""

import re
from collections.abc import Mapping
from importlib import import_module

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neuralrace.extensions.registry import FIGURES
from neuralrace.figures import style
from neuralrace.results.cells import Results

GAP = 6
"""Points between a title and that of the next panel."""
WORD = re.compile(r"(?:\$[^$]*\$|[^\s$])+")
"""A word of a title; formulas are not parted."""
BOLD = re.compile(r"^\$\\bf\{(.)\}\$\s*")
"""The letter of a panel, before its title."""
UNTOLD = re.compile(r"\b(?:nan|inf)\b")
"""A number that is none, as of a time that a run was too short for."""


def compose(name: str, results: Results) -> Figure:
    """Draws a figure.

    Args:
        name: `paper/figure`, a key of `FIGURES`.
        results: the cells that it shows, at least.

    Raises:
        UserError: a missing or damaged result file, a missing cell or variable.
    """
    entry = FIGURES[name]
    said, module = entry.declaration, import_module(entry.module)
    figure = style.Canvas(figsize=(style.PAGE, said.height))
    axes = figure.subplot_mosaic(
        said.layout, width_ratios=said.widths or None, height_ratios=said.heights or None
    )
    axes = dict(sorted(axes.items()))
    for letter, ax in axes.items():
        getattr(module, f"panel_{letter}")(results, ax)
    style.legend(figure, entry.load()(results))
    entitle(figure, axes, said.cf)
    return figure


def entitle(figure: Figure, axes: Mapping[str, Axes], cf: Mapping[str, str]) -> None:
    """Puts letters before the titles of panels, and breaks them where the next panel begins.

    A title that has no number for what it states says so.

    Args:
        figure: the panels, all that will be in it, are drawn.
        axes: of the panels, by letter.
        cf: the panels of a paper that they are to be set beside, told after the title, by letter.
    """
    titles = {}
    for letter, ax in axes.items():
        title = ax.get_title(loc="left")
        titles[letter] = WORD.findall("Not reached" if UNTOLD.search(title) else title)
        titles[letter] += [f"(cf. {cf[letter]})"] if letter in cf else []
    for letter, ax in axes.items():
        ax.set_title(f"$\\bf{{{letter}}}$")
    style.arrange(figure)  # now it is known where they stand
    places = {letter: ax.get_window_extent() for letter, ax in axes.items()}
    # rows of the grid: of a panel that is split, only a line above it is left
    rows = {
        letter: style.place(ax).get_topmost_subplotspec().rowspan for letter, ax in axes.items()
    }
    for letter, ax in axes.items():
        place = places[letter]
        beside = [
            other.x0
            for number, other in places.items()
            if other.x0 > place.x0 and rows[letter].start in rows[number]
        ]
        room = 72 * (min([*beside, figure.bbox.x1]) - place.x0) / figure.dpi - GAP
        lines = [f"$\\bf{{{letter}}}$ "]
        for word in titles[letter]:
            longer = f"{lines[-1]} {word}"
            fits = style.width(longer, style.SHEET["axes.titlesize"]) <= room
            lines[-1:] = [longer] if fits else [lines[-1], word]
        ax.set_title("\n".join(lines))


def alternative_text(figure: Figure) -> str:
    """What a figure shows, in words, from what was drawn: titles, axes and legends."""
    said = [_said(ax) for ax in figure.axes]
    texts = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return " ".join([*filter(None, said), *_key(texts)])


def _said(ax: Axes) -> str:
    title = ax.get_title(loc="left")
    letter = BOLD.match(title)
    start = f"Panel {letter[1]}: {_plain(BOLD.sub('', title))}." if letter else ""
    sides = [
        f"{side}: {_plain(label)}."
        for side, label in (("Across", ax.get_xlabel()), ("Up", ax.get_ylabel()))
        if label
    ]
    legend = ax.get_legend()
    texts = [text.get_text() for text in legend.get_texts()] if legend else []
    return " ".join([start, *sides, *_key(texts)]).strip()


def _key(texts: list[str]) -> list[str]:
    return [f"Legend: {'; '.join(map(_plain, texts))}."] if texts else []


def _plain(text: str) -> str:
    """Without the marks of mathematical text, on one line."""
    return " ".join(re.sub(r"[$\\{}]", "", text).split())
