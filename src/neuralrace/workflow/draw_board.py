"""Stage `draw_board`: draws the board of the benchmark, and a map of each entry."""

from pathlib import Path

import xarray as xr

from neuralrace.figures.board import draw_board, draw_map
from neuralrace.figures.compose import alternative_text
from neuralrace.figures.save import fixed_layout, save_picture
from neuralrace.workflow.job import Job


def run(job: Job, code: str) -> None:
    """Draws every picture, and writes it as PNG.

    Args:
        job: with `benchmark.nc` as input; its outputs are the picture of the board and, named after
            their entries, the maps.
        code: checksum of the code when the job was planned.

    Raises:
        UserError: as `neuralrace.workflow.draw.run`.
    """
    whole, *maps = map(Path, job.outputs)
    checksums, numbers = whole.with_suffix(".sha256"), Path(job.inputs[0])
    with job.writing("draw_board", code, checksums, numbers.parent, cell_id="benchmark"):
        board = xr.load_datatree(numbers)
        figures = {whole: draw_board(board)} | {path: draw_map(board, path.stem) for path in maps}
        for path, figure in figures.items():
            with fixed_layout(figure):
                texts = {"Title": path.stem, "Description": alternative_text(figure)}
                save_picture(figure, texts, path)
