"""A figure from its panels: laid out, lettered and titled, under one legend."""

import re
from importlib import import_module

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neuralrace.figures import style
from neuralrace.records.results import Results
from neuralrace.registry import FIGURES

GAP = 0.12
"""Inches between a title and the next panel."""
WORD = re.compile(r"(?:\$[^$]*\$|[^\s$])+")
"""A word of a title; formulas are not parted."""
BOLD = re.compile(r"^\$\\bf\{(.)\}\$\s*")
"""The letter of a panel, before its title."""


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
    if not said.layout:
        return entry.load()(results)
    figure = style.Canvas(figsize=(style.PAGE, said.height))
    axes = figure.subplot_mosaic(
        said.layout, width_ratios=said.widths or None, height_ratios=said.heights or None
    )
    for letter in sorted(axes):
        getattr(module, f"panel_{letter}")(results, axes[letter])
        entitle(axes[letter], letter, said.cf.get(letter))
    style.legend(figure, entry.load()(results))
    return figure


def entitle(ax: Axes, letter: str, beside: str | None = None) -> None:
    """Puts the letter before a panel's title, and breaks it where the next panel would begin.

    Args:
        ax: of the panel, in a grid.
        letter: its letter.
        beside: panel of a paper that it is to be set beside, told after the title.
    """
    place = style.place(ax).get_topmost_subplotspec()
    ratios = np.asarray(place.get_gridspec().get_width_ratios())
    room = 72 * (
        ax.figure.figure.get_figwidth() * ratios[list(place.colspan)].sum() / ratios.sum() - GAP
    )
    words = WORD.findall(ax.get_title(loc="left"))
    words += f"(cf. {beside})".split() if beside else []
    lines = [rf"$\bf{{{letter}}}$ "]
    for word in words:
        longer = f"{lines[-1]} {word}"
        fits = style.width(longer, style.SHEET["axes.titlesize"]) <= room
        lines[-1:] = [longer] if fits else [lines[-1], word]
    ax.set_title("\n".join(lines))


def alternative(figure: Figure) -> str:
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
