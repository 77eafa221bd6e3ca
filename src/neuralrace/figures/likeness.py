"""Whether two pictures of a figure look alike.

Machines draw the same figure with other dots: edges are smoothed otherwise, letters are fitted to
the grid or not, and those of a long line of text end up elsewhere. None of it can be seen. So
pictures are compared as an eye has them: without their finest grain, and spot by spot, where a spot
that is the same a little to the side has not changed. What they say is compared as the texts that
they carry.
"""

from itertools import product
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import binary_dilation, gaussian_filter, label

WIDTH = 2100
"""Dots of the width that pictures are compared at: 300 to an inch of a page."""
GRAIN = 2.5
"""Dots by which both are smoothed: more than edges are, less than lines are wide."""
MOVED = 9
"""Dots by which a spot may have moved: half a letter, as far as a line of text as wide as a panel
ends apart where letters are fitted to the grid and where they are not."""
SEEN = 55
"""Least difference that counts, in a channel of 0 to 255. Smoothing makes less, as does
rounding to few colours; lines in two colours of the palette differ by more."""
MOST = 30
"""Dots that may differ and not be seen: a twentieth of an inch of the thinnest line has more."""
MUCH = 0.1
"""Share of all dots that edges and letters never have: where more differ, no spot is looked for."""


def picture_difference(one: Path, other: Path) -> str | None:
    """What sets two pictures of a figure apart, in words; None where they are alike.

    Raises:
        OSError: a file is missing, or is no picture.
    """
    with Image.open(one) as first, Image.open(other) as second:
        if first.size != second.size:
            return "other size"
        if any(first.info.get(key) != second.info.get(key) for key in ("Title", "Description")):
            return "other titles, labels or legends"
        dots = _dots(_seen(first), _seen(second))
    return f"other in {dots} dots of {WIDTH} across" if dots > MOST else None


def _dots(one: np.ndarray, other: np.ndarray) -> int:
    """In how many dots two pictures differ, wherever each spot differs least."""
    differ = _apart(one, other) > SEEN
    if differ.mean() > MUCH:
        return int(differ.sum())
    spots = np.zeros(differ.shape, np.int32)
    label(binary_dilation(differ, iterations=2), output=spots)
    rows, columns = np.nonzero(spots)
    spot, colours = spots[rows, columns], one[rows, columns]
    framed = np.pad(other, [(MOVED, MOVED), (MOVED, MOVED), (0, 0)], mode="edge")
    least = np.bincount(spot)
    for down, right in product(range(2 * MOVED + 1), repeat=2):
        differ = _apart(colours, framed[rows + down, columns + right]) > SEEN
        least = np.minimum(least, np.bincount(spot[differ], minlength=len(least)))
    return int(least.sum())


def _seen(picture: Image.Image) -> np.ndarray:
    """Colours of a picture without its grain, (rows, columns, 3) of 0 to 255."""
    height = round(picture.height * WIDTH / picture.width)
    colours = picture.convert("RGB").resize((WIDTH, height), Image.Resampling.BICUBIC)
    return gaussian_filter(np.asarray(colours, np.float32), (GRAIN, GRAIN, 0))


def _apart(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Distances of colours (..., 3), by the channel in which they differ most."""
    return np.abs(one - other).max(axis=-1)
