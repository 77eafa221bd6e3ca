"""Stage `board`: puts the scores of all tasks of the benchmark together."""

from collections.abc import Mapping
from pathlib import Path

from neuralrace.board.build import board
from neuralrace.board.pages import frame, markdown
from neuralrace.results.atomic import replacing, write_text
from neuralrace.results.cells import open_results
from neuralrace.results.checksums import checksum_path
from neuralrace.workflow.job import Job


def run(job: Job, code: str, cells: Mapping[str, Mapping[str, str]]) -> None:
    """Writes `benchmark.md`, `benchmark.csv` and `benchmark.nc` into the results folder.

    Args:
        job: with the metrics of the cells of all tasks as inputs.
        code: checksum of the code when the job was planned.
        cells: these cells, with the checksums of their files' specifications.

    Raises:
        UserError: as `neuralrace.workflow.draw.run`.
    """
    page, table, numbers = map(Path, job.outputs)
    with job.writing("board", code, checksum_path(numbers), page.parent):
        results = open_results(page.parent, cells, expected=cells)
        tree = board(results.values())
        with replacing(numbers) as temporary:
            tree.to_netcdf(temporary, engine="netcdf4")
        write_text(frame(tree).to_csv(index=False), table)
        write_text(markdown(tree), page)
