"""Tabulate metrics: all of them as one tidy table."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from neuralrace.analysis import to_frame
from neuralrace.atomic import write_text
from neuralrace.provenance import planned
from neuralrace.records.results import open_results
from neuralrace.seal import recorded
from neuralrace.workflow.job import Job


def run(
    job: Job,
    code: str,
    cells: Mapping[str, Mapping[str, str]],
    root: str,
    inputs: Sequence[str],
    path: str,
) -> None:
    """Writes `metrics.csv`.

    Args:
        job: what it reports to.
        code: digest of the code that it was planned with.
        cells: all cells, and digest of the specification of each of their files.
        root: the results folder.
        inputs: paths of their metrics.
        path: where the table goes.

    Raises:
        UserError: as `neuralrace.workflow.draw.run`.
    """
    guard = planned("tabulate", (), code)
    checksums = Path(f"{path}.sha256")
    with (
        job.stage("tabulate"),
        recorded(checksums, Path(root), inputs, [path], code, guard=guard),
    ):
        table = to_frame(open_results(root, cells, expected=cells))
        write_text(table.to_csv(index=False), path)
