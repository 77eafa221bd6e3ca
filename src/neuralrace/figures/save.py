"""From result files to the files of a figure."""

import io
import os
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from neuralrace.atomic import replacing
from neuralrace.figures import matching
from neuralrace.figures.compose import alternative, compose
from neuralrace.figures.style import SHEET
from neuralrace.job import job
from neuralrace.records.results import open_results

SLIM = {"dpi": 130, "colours": 96}
"""Of a picture that is seen on a page of a site: a quarter of the bytes of one that is printed."""


def save(
    name: str,
    results_root: str | os.PathLike[str],
    cell_ids: Sequence[str],
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
        cell_ids: all cells that there are; the figure takes those that it shows.
        caption: its caption.
        png_path: where the picture goes.
        pdf_path: where the vector graphic goes.
        svg_path: where that for pages of a site goes.
        slim_path: where a picture of fewer dots and colours goes, for pages on a screen.

    Raises:
        UserError: a missing or damaged result file, a missing cell or variable, or a folder that
            cannot be written to.
    """
    results = open_results(Path(results_root), matching(name, cell_ids))
    with mpl.rc_context(SHEET):
        figure = compose(name, results)
        title, said = {"Title": name}, alternative(figure)
        picture = title | {"Description": said, "Comment": caption, "Software": None}
        graphic = title | {"Description": said, "Creator": None, "Date": None}
        document = (
            title | {"Subject": said} | dict.fromkeys(["CreationDate", "Creator", "Producer"])
        )
        for path, metadata in (
            (Path(png_path), picture),
            (Path(svg_path), graphic),
            (Path(pdf_path), document),
        ):
            with replacing(path) as temporary:
                figure.savefig(temporary, format=path.suffix[1:], metadata=metadata)
            figure.set_layout_engine("none")  # as it is: the other formats have the same places
        dots = io.BytesIO()
        figure.savefig(dots, format="png", dpi=SLIM["dpi"])
    texts = PngInfo()
    for key in ("Title", "Description", "Comment"):
        texts.add_itxt(key, picture[key])
    few = Image.open(dots).convert("RGB").quantize(SLIM["colours"], dither=Image.Dither.NONE)
    with replacing(Path(slim_path)) as temporary:
        few.save(temporary, format="PNG", optimize=True, pnginfo=texts)


def draw(
    name: str, results_root: str, cell_ids: Sequence[str], caption: str, log: str, *paths: str
) -> None:
    """The job that draws a figure; see `save`.

    Raises:
        SystemExit: it could not be drawn; the log says why.
    """
    with job(name, log) as this:
        with this.stage("draw", name):
            save(name, results_root, cell_ids, caption, *paths)
        this.report(f"drawn in {paths[0]}")
