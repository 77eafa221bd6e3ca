"""From result files to the two files of a figure."""

import os
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

from neuralrace.atomic import replacing
from neuralrace.figures import matching
from neuralrace.figures.style import SHEET
from neuralrace.job import job
from neuralrace.records.results import open_results
from neuralrace.registry import FIGURES


def save(
    name: str,
    results_root: str | os.PathLike[str],
    cell_ids: Sequence[str],
    png_path: str | os.PathLike[str],
    pdf_path: str | os.PathLike[str],
) -> None:
    """Draws a figure and writes it as PNG and PDF, each either whole or as it was before.

    The same results give the same bytes.

    Args:
        name: `paper/figure`, a key of `FIGURES`.
        results_root: folder that holds `<cell id>/{trajectory,theory,metrics}.nc`.
        cell_ids: all cells that there are; the figure takes those that it shows.
        png_path: where the image goes.
        pdf_path: where the vector graphic goes.

    Raises:
        UserError: a missing or damaged result file, a missing cell or variable, or a folder that
            cannot be written to.
    """
    results = open_results(Path(results_root), matching(name, cell_ids))
    drawn = FIGURES[name].load()
    with mpl.rc_context(SHEET):
        figure = drawn(results)
        for path, metadata in (
            (Path(png_path), {"Software": None}),
            (Path(pdf_path), {"CreationDate": None, "Creator": None, "Producer": None}),
        ):
            with replacing(path) as temporary:
                figure.savefig(temporary, format=path.suffix[1:], metadata=metadata)
            figure.set_layout_engine("none")  # as it is: the other format has the same places


def draw(
    name: str, results_root: str, cell_ids: Sequence[str], png_path: str, pdf_path: str, log: str
) -> None:
    """The job that draws a figure; see `save`.

    Raises:
        SystemExit: it could not be drawn; the log says why.
    """
    with job(name, log) as this:
        with this.stage("draw", name):
            save(name, results_root, cell_ids, png_path, pdf_path)
        this.report(f"drawn in {png_path}")
