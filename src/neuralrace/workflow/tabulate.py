"""Tabulate metrics: all of them as one tidy table."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from neuralrace.results.analysis import to_frame
from neuralrace.results.atomic import write_text
from neuralrace.results.cells import open_results
from neuralrace.results.checksums import checksum_path, checksums_of_outputs
from neuralrace.results.provenance import code_guard
from neuralrace.workflow.job import Job


def run(
    job: Job,
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    code: str,
    cells: Mapping[str, Mapping[str, str]],
) -> None:
    """Writes `metrics.csv`.

    Args:
        job: what it reports to.
        name: of the table.
        inputs: paths of the metrics of all cells.
        outputs: path of the table.
        code: digest of the code that it was planned with.
        cells: all cells, and digest of the specification of each of their files.

    Raises:
        UserError: as `neuralrace.workflow.draw.run`.
    """
    guard = code_guard("tabulate", (), code)
    (path,) = map(Path, outputs)
    with (
        job.stage("tabulate"),
        checksums_of_outputs(checksum_path(path), path.parent, inputs, outputs, code, guard=guard),
    ):
        table = to_frame(open_results(path.parent, cells, expected=cells))
        write_text(table.to_csv(index=False), path)
