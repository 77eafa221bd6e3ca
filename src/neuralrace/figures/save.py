"""The files of a figure: PNG with a palette, PDF and SVG, with the same bytes on every run."""

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib as mpl
import numpy as np
from jaxtyping import UInt8
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from scipy.spatial.distance import cdist

from neuralrace.figures import matching_cells, variables
from neuralrace.figures.compose import alternative_text, compose, first_panel
from neuralrace.figures.image_comparison import picture_difference
from neuralrace.figures.style import apply_layout, rc_context
from neuralrace.results.atomic import replacing
from neuralrace.results.cells import open_results

DPI, SLIM_DPI = 300, 130
"""Dots per inch of a picture for print, and of a slim one for web pages."""
COLOURS = 256
"""Size of their palettes, which takes a third of the bytes of full colours. With half as many,
steps of a colour bar fall together."""
DECIMALS = 6
"""Decimals of the positions of axes, as shares of the figure."""
FREQUENT = 5 / 8
"""Share of a palette for the most frequent colours, which stay exact."""
THUMBNAIL = "Thumbnail"
"""Keyword of the text of a slim PNG file that has the place of the first panel."""
PIXELS = 1000
"""Most pixels of a colour that one pixel stands for where the other colours are chosen."""


def save(
    name: str,
    results_root: str | os.PathLike[str],
    cells: Mapping[str, Mapping[str, str]],
    caption: str,
    png_path: str | os.PathLike[str],
    pdf_path: str | os.PathLike[str],
    svg_path: str | os.PathLike[str],
    slim_path: str | os.PathLike[str],
) -> None:
    """Draws a figure and writes its files; each write is atomic.

    The same results give the same bytes. Each file carries the name of the figure and its
    alternative text; PNG files carry the caption, too, and slim ones the place of the first panel
    (see `first_panel`), of which a thumbnail can be cut. A slim file that is there already is kept
    if no difference can be seen: it is under version control, and other processors draw other
    pixels.

    Args:
        name: `paper/figure`, a key of `FIGURES`.
        results_root: folder that holds `<cell id>/{trajectory,theory,metrics}.nc`.
        cells: all configured cells, each with the digest of the specification that its files
            must have, by kind of file.
        caption: the caption of the figure.
        png_path: path of the PNG file for print.
        pdf_path: path of the PDF file.
        svg_path: path of the SVG file, for web pages.
        slim_path: path of a PNG file with fewer pixels and colours, for web pages.

    Raises:
        UserError: a missing or damaged result file, a missing cell or variable, or a folder that
            cannot be written to.
    """
    shown = matching_cells(name, cells)
    declared = {cell: variables(name, cell) for cell in shown}
    results = open_results(Path(results_root), shown, expected=cells, variables=declared)
    with rc_context():
        figure = compose(name, results)
    with fixed_layout(figure):
        title, text = {"Title": name}, alternative_text(figure)
        png_texts = title | {"Description": text, "Comment": caption}
        save_picture(figure, png_texts, Path(png_path))
        place = " ".join(map(str, first_panel(figure)))
        save_if_seen(figure, png_texts | {THUMBNAIL: place}, Path(slim_path))
        # None removes dates and versions, which would change the bytes.
        for path, kind, metadata in (
            (pdf_path, "pdf", {"Subject": text, "CreationDate": None, "Producer": None}),
            (svg_path, "svg", {"Description": text, "Date": None}),
        ):
            with replacing(Path(path)) as temporary:
                figure.savefig(
                    temporary, format=kind, metadata=title | {"Creator": None} | metadata
                )


@contextmanager
def fixed_layout(figure: Figure) -> Iterator[None]:
    """Fixes the positions of all axes, so that all files of a figure have the same layout."""
    with rc_context():
        apply_layout(figure)
    with rc_context(), mpl.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
        # The layout's solver orders variables by memory address, so its last bits are random.
        for ax in figure.axes:
            ax.set_position(np.round(ax.get_position(original=True).bounds, DECIMALS).tolist())
        yield


def save_picture(
    figure: Figure, texts: Mapping[str, str], path: Path, dpi: int = DPI, colours: int = COLOURS
) -> None:
    """Writes a PNG file with a palette; the write is atomic.

    Args:
        figure: inside `fixed_layout`, so that the same figure gives the same bytes.
        texts: texts that the file carries, by PNG keyword, such as `Title` and `Description`.
        path: path of the file.
        dpi: dots per inch.
        colours: size of the palette, at most 256.

    Raises:
        UserError: a folder that cannot be written to.
    """
    # as matplotlib rounds: 2.3 times 200 is a little less than 460
    width, height = (figure.get_size_inches() * dpi + 1e-6).astype(int).tolist()
    with io.BytesIO() as content:
        figure.savefig(content, format="rgba", dpi=dpi)
        pixels = np.frombuffer(content.getvalue(), np.uint8).reshape(height, width, 4)
    picture = palette(pixels, colours)
    info = PngInfo()
    for key, text in texts.items():
        info.add_itxt(key, text)
    with replacing(path) as temporary:
        picture.save(temporary, format="PNG", compress_level=6, dpi=(dpi, dpi), pnginfo=info)


def save_if_seen(figure: Figure, texts: Mapping[str, str], path: Path) -> None:
    """Writes a slim PNG file, unless a file is there that shows the same and has the same texts.

    Args:
        figure: inside `fixed_layout`.
        texts: as for `save_picture`.
        path: path of the file.

    Raises:
        UserError: a folder that cannot be written to.
    """
    with TemporaryDirectory() as folder:
        drawn = Path(folder, path.name)
        save_picture(figure, texts, drawn, SLIM_DPI)
        if _shows(path, texts, drawn):
            path.touch()  # newer than the results, as Snakemake expects
            return
        with replacing(path) as temporary:
            temporary.write_bytes(drawn.read_bytes())


def _shows(path: Path, texts: Mapping[str, str], drawn: Path) -> bool:
    """Whether a file has these texts, and shows what another one does."""
    try:
        with Image.open(path) as known:
            # the place of a panel differs in its last digits on another machine
            if any(known.info.get(key) != texts[key] for key in texts.keys() - {THUMBNAIL}):
                return False
        return path.read_bytes() == drawn.read_bytes() or not picture_difference(path, drawn)
    except (OSError, SyntaxError):  # none, or no picture
        return False


def palette(pixels: UInt8[np.ndarray, "row column 4"], colours: int) -> Image.Image:
    """A picture with a palette: areas keep their exact colour, and no pixel changes much.

    Args:
        pixels: red, green, blue and opacity, which is ignored.
        colours: size of the palette, at most 256.
    """
    numbers = pixels.view(">u4")[..., 0] >> 8  # each colour as one number
    found, counts = np.unique(numbers, return_counts=True)
    order = np.lexsort((found, counts))[::-1]  # the most frequent first
    found, counts = found[order], counts[order]
    present = np.stack([found >> 16, found >> 8, found], axis=1).astype(np.uint8)
    exact = present[: int(FREQUENT * colours)]
    # The search for other colours depends on their mean only at its start: it needs few pixels.
    few = np.repeat(present, -(-counts // PIXELS), axis=0)[None]
    others = Image.fromarray(few).quantize(colours - len(exact), Image.Quantize.MAXCOVERAGE)
    chosen = np.concatenate([exact, np.reshape(others.getpalette() or [], (-1, 3))])
    nearest = np.zeros(1 << 24, dtype=np.uint8)  # index of the nearest chosen colour, by colour
    nearest[found] = cdist(present, chosen).argmin(axis=1)
    indexed = Image.fromarray(nearest[numbers])
    indexed.putpalette(chosen.astype(np.uint8).tobytes())
    return indexed
