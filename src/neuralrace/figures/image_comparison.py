"""Comparison of two PNG files of a figure, up to differences that cannot be seen.

Two machines draw the same figure with different pixels. Edges are smoothed in another way, and
letters may be fitted to the pixel grid or not, which moves the end of a long line of text. So
pictures are smoothed before they are compared. A region that differs may also be shifted by a few
pixels, to where it differs least. Titles, labels and legends are compared as texts in the files.
"""

from itertools import product
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import binary_dilation, gaussian_filter, label

WIDTH = 2100
"""Width in pixels at which pictures are compared: 300 per inch of a page."""
SMOOTHING = 2.5
"""Standard deviation of the smoothing in pixels: more than an edge, less than a line."""
SHIFT = 9
"""Largest shift of a region in pixels: half a letter. Fitting letters to the pixel grid moves the
end of a line of text as wide as a panel by as much."""
THRESHOLD = 55
"""Least difference that counts, in a channel of 0 to 255. Smoothing and rounding to a palette make
smaller ones; lines in two colours of the palette differ by more."""
TOLERANCE = 30
"""Pixels that may differ: a twentieth of an inch of the thinnest line has more."""
HOPELESS = 0.1
"""Share of pixels above which no shift is tried: edges and letters never differ in so many."""


def picture_difference(one: Path, other: Path) -> str | None:
    """How two pictures of a figure differ, in words; None if no difference can be seen.

    Raises:
        OSError: a file is missing, or is no picture.
    """
    with Image.open(one) as first, Image.open(other) as second:
        if first.size != second.size:
            return "other size"
        if any(first.info.get(key) != second.info.get(key) for key in ("Title", "Description")):
            return "other titles, labels or legends"
        pixels = _different_pixels(_smoothed(first), _smoothed(second))
    return f"other in {pixels} dots of {WIDTH} across" if pixels > TOLERANCE else None


def _different_pixels(one: np.ndarray, other: np.ndarray) -> int:
    """Number of pixels that differ, where each connected region is shifted to differ least."""
    differ = _distance(one, other) > THRESHOLD
    if differ.mean() > HOPELESS:
        return int(differ.sum())
    regions = np.zeros(differ.shape, np.int32)
    label(binary_dilation(differ, iterations=2), output=regions)
    rows, columns = np.nonzero(regions)
    region, colours = regions[rows, columns], one[rows, columns]
    framed = np.pad(other, [(SHIFT, SHIFT), (SHIFT, SHIFT), (0, 0)], mode="edge")
    least = np.bincount(region)
    for down, right in product(range(2 * SHIFT + 1), repeat=2):
        differ = _distance(colours, framed[rows + down, columns + right]) > THRESHOLD
        least = np.minimum(least, np.bincount(region[differ], minlength=len(least)))
    return int(least.sum())


def _smoothed(picture: Image.Image) -> np.ndarray:
    """Smoothed colours, (rows, columns, 3) from 0 to 255."""
    height = round(picture.height * WIDTH / picture.width)
    colours = picture.convert("RGB").resize((WIDTH, height), Image.Resampling.BICUBIC)
    return gaussian_filter(np.asarray(colours, np.float32), (SMOOTHING, SMOOTHING, 0))


def _distance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Distances of colours (..., 3), by the channel that differs most."""
    return np.abs(one - other).max(axis=-1)
