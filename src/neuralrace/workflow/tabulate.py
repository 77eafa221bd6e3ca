"""Stage `tabulate`: writes the metrics of all cells as one table, `metrics.csv`."""

from collections.abc import Mapping

from neuralrace.results.analysis import to_frame
from neuralrace.results.atomic import write_text
from neuralrace.results.cells import open_results
from neuralrace.results.checksums import checksum_path
from neuralrace.workflow.job import Job


def run(job: Job, code: str, cells: Mapping[str, Mapping[str, str]]) -> None:
    """Writes `metrics.csv` into the results folder.

    Args:
        job: with the metrics of all cells as inputs.
        code: checksum of the code when the job was planned.
        cells: all cells, with the checksums of their files' specifications.

    Raises:
        UserError: as `neuralrace.workflow.draw.run`.
    """
    path = job.output
    with job.writing("tabulate", code, checksum_path(path), path.parent):
        table = to_frame(open_results(path.parent, cells, expected=cells))
        write_text(table.to_csv(index=False), path)
