"""Stage `plot`: draws the standard figure of a cell from its trajectory and theory."""

from collections.abc import Mapping
from pathlib import Path

from neuralrace.figures.compose import alternative_text
from neuralrace.figures.plot import plot
from neuralrace.figures.save import fixed_layout, save_picture
from neuralrace.results.cells import open_results
from neuralrace.workflow.job import Job


def run(job: Job, code: str, cells: Mapping[str, Mapping[str, str]], root: str) -> None:
    """Draws the figure of `neuralrace.plot` for a cell, and writes it as PNG.

    Args:
        job: of the cell `paper/experiment/label`, with its trajectory and theory as inputs.
        code: checksum of the code when the job was planned.
        cells: the cell, with the checksums of its files' specifications.
        root: the results folder.

    Raises:
        UserError: as `neuralrace.workflow.draw.run`.
    """
    checksums = job.output.with_suffix(".sha256")
    with job.writing("plot", code, checksums, Path(root), job.name, cell_id=job.name):
        figure = plot(open_results(root, cells, expected=cells)[job.name])
        with fixed_layout(figure):
            description = {"Title": job.name, "Description": alternative_text(figure)}
            save_picture(figure, description, job.output)
