"""Fonts and formulas: lookups that matplotlib repeats for each text are cached.

A figure is laid out twice and written to four files. Each time, matplotlib searches the font of
every text and parses every formula. Its PDF files also carry tables of fonts that no reader of a
PDF uses. Glyphs and their positions are the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import lru_cache, partial
from typing import Any

from fontTools import subset
from matplotlib import _mathtext
from matplotlib.font_manager import FontManager, FontProperties, fontManager
from matplotlib.mathtext import MathTextParser

FORMULAS = 2048
"""Number of cached formulas, where each resolution counts."""
LEFT_OUT = ("cmap", "GSUB", "GPOS", "GDEF", "kern", "name", "OS/2", "post")
"""Tables that choose, place and name glyphs; PDF files choose, place and number them themselves."""

_search = lru_cache(FontManager.findfont)
_loaded = subset.load_font
_parsed = lru_cache(FORMULAS)(MathTextParser.parse)
_parsers: dict[str, MathTextParser] = {}
"""The first parser of each kind: every file has its own one, and all of a kind parse equally."""


# Keys of a cache are copies, as matplotlib changes font properties in place.
def _findfont(self: FontManager, prop: FontProperties | str, *options: Any, **named: Any) -> Any:
    return _search(self, copy(prop), *options, **named)


def _parse(
    self: MathTextParser,
    s: str,
    dpi: int | float = 72,
    prop: FontProperties | None = None,
    **named: Any,
) -> Any:
    kind = self._output_type  # pyright: ignore
    return _parsed(_parsers.setdefault(kind, self), s, dpi, copy(prop), **named)


def _load_font(file: Any, options: subset.Options) -> Any:
    """A font whose glyphs have numbers for names, as reading thousands of names takes long."""
    font = _loaded(file, options)
    for table in LEFT_OUT:
        if table in font:
            del font[table]
    font.setGlyphOrder([f"glyph{number:05d}" for number in range(font["maxp"].numGlyphs)])
    return font


REPLACED: list[tuple[Any, str, Any]] = [
    (FontManager, "findfont", _findfont),
    (_mathtext, "findfont", partial(_findfont, fontManager)),  # a bound method of its own
    (MathTextParser, "parse", _parse),
    (subset, "load_font", _load_font),
]
"""Owner, name and replacement."""


@contextmanager
def cached_fonts() -> Iterator[None]:
    """Caches fonts and formulas inside the `with` block, where rcParams of texts may not change."""
    originals = [getattr(owner, name) for owner, name, _ in REPLACED]
    try:
        for owner, name, replacement in REPLACED:
            setattr(owner, name, replacement)
        yield
    finally:
        for (owner, name, _), original in zip(REPLACED, originals, strict=True):
            setattr(owner, name, original)
