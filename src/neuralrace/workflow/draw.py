"""Stage `draw`: draws a figure from result files."""

from collections.abc import Mapping
from pathlib import Path

from neuralrace.extensions.registry import FIGURES
from neuralrace.figures.save import save
from neuralrace.workflow.job import Job


def run(
    job: Job, caption: str, code: str, cells: Mapping[str, Mapping[str, str]], root: str
) -> None:
    """Draws a figure and writes its files; see `neuralrace.figures.save.save`.

    Args:
        job: of the figure `paper/figure`, with result files as inputs; its outputs are PNG, PDF,
            SVG and the slim PNG.
        caption: caption of the figure.
        code: checksum of the code when the job was planned.
        cells: cells that the figure shows, with the checksums of their files' specifications.
        root: the results folder.

    Raises:
        UserError: a result file that is damaged or of another specification, a file that cannot be
            written, or code that was edited.
    """
    checksums, modules = job.output.with_suffix(".sha256"), [FIGURES[job.name].module]
    with job.writing(
        "draw", code, checksums, Path(root), job.name, caption, modules=modules, cell_id=job.name
    ):
        save(job.name, root, cells, caption, *job.outputs)
