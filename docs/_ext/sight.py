"""The page that shows all figures in grey and as colour-blind readers see them."""

from collections.abc import Iterable

import numpy as np
from rest import heading, indented

SIGHTS = {
    "grey": [[0.2126, 0.7152, 0.0722]] * 3,
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
}
"""What becomes of linear red, green and blue: luminance (ITU-R BT.709), and vision without one kind
of cones (Machado, Oliveira and Fernandes 2009, severity 1)."""
INTRODUCTION = """\
Every figure as a printer without colours and as readers without green cones (deuteranopia) or
without red ones (protanopia) have it, from left to right. Kinds of things differ in line style or
marker as well as in colour, so that all of them can be told apart here, too, and matrices are the
lighter, the larger their entries. Browsers make these pictures from those of the gallery, by the
matrices of Machado, Oliveira and Fernandes (2009).
"""


def seen(colours: np.ndarray, sight: str) -> np.ndarray:
    """Colours (..., 3) of sRGB, 0 to 1, as they are seen."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    turned = np.clip(linear @ np.transpose(SIGHTS[sight]), 0, 1)
    return np.where(turned <= 0.0031308, 12.92 * turned, 1.055 * turned ** (1 / 2.4) - 0.055)


def page(pictures: Iterable[tuple[str, str]]) -> str:
    """The page, of figures and where their pictures stand in the site."""
    filters = "".join(_filter(name, matrix) for name, matrix in SIGHTS.items())
    styles = "".join(f".sight-{name} {{ filter: url(#sight-{name}); }}" for name in SIGHTS)
    drawing = f'<svg width="0" height="0" aria-hidden="true">{filters}</svg>'
    parts = [heading("Figures in grey", "="), INTRODUCTION]
    parts += [f".. raw:: html\n\n{indented(f'<style>{styles}</style>{drawing}')}\n"]
    for figure, picture in pictures:
        row = (
            f".. image:: /{picture}\n   :alt: {figure}, {name}\n   :class: sight sight-{name}\n"
            for name in SIGHTS
        )
        parts += [f".. rubric:: {figure}\n", *row]
    return "\n".join(parts)


def _filter(name: str, matrix: list[list[float]]) -> str:
    rows = " ".join(" ".join(map(str, [*row, 0, 0])) for row in matrix)
    return (
        f'<filter id="sight-{name}" color-interpolation-filters="linearRGB">'
        f'<feColorMatrix type="matrix" values="{rows} 0 0 0 1 0"/></filter>'
    )
