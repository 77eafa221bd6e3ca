"""From result files to the files of a figure."""

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from scipy.spatial.distance import cdist

from neuralrace.figures import matching_cells
from neuralrace.figures.compose import alternative_text, compose
from neuralrace.figures.style import arrange, sheet
from neuralrace.results.atomic import replacing
from neuralrace.results.cells import open_results

DPI, SLIM_DPI = 300, 130
"""Of a picture that is printed, and of one that is seen on a page of a site."""
COLOURS, SLIM_COLOURS = 256, 128
"""Of these: a palette takes a third of the bytes."""
DIGITS = np.array([1 << 16, 1 << 8, 1], dtype=np.int32)
"""Of red, green and blue, in a colour as one number."""
PLACES = 6
"""Decimals of where axes stand, as shares of a figure."""
FREQUENT = 5 / 8
"""Share of a palette that is exactly what there is most of; the others cover all that is left."""


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
    """Draws a figure and writes its files, each either whole or as it was before.

    The same results give the same bytes. Each file carries the name of the figure and a text that
    stands for it where it cannot be seen; pictures carry the caption, too.

    Args:
        name: `paper/figure`, a key of `FIGURES`.
        results_root: folder that holds `<cell id>/{trajectory,theory,metrics}.nc`.
        cells: all cells that there are, each with the digest of the specification that its files
            must have, by kind; the figure takes those that it shows.
        caption: its caption.
        png_path: where the picture goes.
        pdf_path: where the vector graphic goes.
        svg_path: where that for pages of a site goes.
        slim_path: where a picture of fewer dots and colours goes, for pages on a screen.

    Raises:
        UserError: a missing or damaged result file, a missing cell or variable, or a folder that
            cannot be written to.
    """
    results = open_results(Path(results_root), matching_cells(name, cells), expected=cells)
    with sheet():
        figure = compose(name, results)
    with fixed_layout(figure):
        title, said = {"Title": name}, alternative_text(figure)
        texts = title | {"Description": said, "Comment": caption}
        save_picture(figure, texts, Path(png_path))
        save_picture(figure, texts, Path(slim_path), SLIM_DPI, SLIM_COLOURS)
        undated = dict.fromkeys(["CreationDate", "Creator", "Producer"])
        with replacing(Path(pdf_path)) as temporary:
            figure.savefig(temporary, format="pdf", metadata=title | {"Subject": said} | undated)
        undated = dict.fromkeys(["Creator", "Date"])
        with replacing(Path(svg_path)) as temporary:
            figure.savefig(
                temporary, format="svg", metadata=title | {"Description": said} | undated
            )


@contextmanager
def fixed_layout(figure: Figure) -> Iterator[None]:
    """Keeps all axes where the layout has put them, so that all files of a figure look the same."""
    with sheet():
        arrange(figure)
    with sheet(), mpl.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
        # the solver of the layout goes by addresses, so that its last bits are chance
        for ax in figure.axes:
            ax.set_position(np.round(ax.get_position(original=True).bounds, PLACES).tolist())
        yield


def save_picture(
    figure: Figure, texts: Mapping[str, str], path: Path, dpi: int = DPI, colours: int = COLOURS
) -> None:
    """Writes a PNG picture with a palette; an existing file is replaced only by a whole one.

    Args:
        figure: inside `fixed_layout`, so that the same figure gives the same bytes.
        texts: texts that the file carries, by PNG keyword, such as `Title` and `Description`.
        path: where the picture goes.
        dpi: dots per inch.
        colours: size of the palette, at most 256.

    Raises:
        UserError: a folder that cannot be written to.
    """
    with io.BytesIO() as dots:
        figure.savefig(dots, format="rgba", dpi=dpi)
        size = tuple((figure.get_size_inches() * dpi).astype(int).tolist())
        few = palette(Image.frombytes("RGBA", size, dots.getvalue()).convert("RGB"), colours)
    info = PngInfo()
    for key, text in texts.items():
        info.add_itxt(key, text)
    with replacing(path) as temporary:
        few.save(temporary, format="PNG", optimize=True, dpi=(dpi, dpi), pnginfo=info)


def palette(picture: Image.Image, colours: int) -> Image.Image:
    """A picture in few colours: its areas keep theirs, and no dot gets one that is far off.

    Args:
        picture: in red, green and blue.
        colours: how many, at most 256.
    """
    found = sorted(picture.getcolors(picture.width * picture.height) or [], reverse=True)
    all_there = np.array([rgb for _, rgb in found])
    exact = all_there[: int(FREQUENT * colours)]
    others = picture.quantize(colours - len(exact), Image.Quantize.MAXCOVERAGE).getpalette()
    chosen = np.concatenate([exact, np.reshape(others or [], (-1, 3)).astype(int)])
    nearest = np.zeros(1 << 24, dtype=np.uint8)  # by colour, as one number
    nearest[all_there @ DIGITS] = cdist(all_there, chosen).argmin(axis=1)
    few = Image.fromarray(nearest[np.asarray(picture, dtype=np.int32) @ DIGITS])
    few.putpalette(chosen.astype(np.uint8).tobytes())
    return few
