"""Measure a cell: from its trajectory and theory to `metrics.nc`."""

from collections.abc import Sequence
from pathlib import Path

from neuralrace.config.cell import Cell
from neuralrace.extensions.registry import METRICS
from neuralrace.metrics.dataset import metrics_dataset
from neuralrace.results.cells import CellResults
from neuralrace.results.checksums import fingerprint, unchanged_inputs
from neuralrace.results.files import write_result
from neuralrace.results.provenance import code_guard
from neuralrace.workflow.job import Job
from neuralrace.workflow.stages import specifications


def run(
    job: Job, name: str, inputs: Sequence[str], outputs: Sequence[str], spec: str, code: str
) -> None:
    """Computes every metric of a cell.

    Args:
        job: what it reports to.
        name: of the cell, `paper/experiment/label`.
        inputs: paths of trajectory and theory, if it has any.
        outputs: path of the metrics, beside these.
        spec: canonical JSON of the `Cell`.
        code: digest of the code that it was planned with.

    Raises:
        UserError: what a metric refuses, a damaged file or one of another specification, a file
            that cannot be written, or code that was edited.
    """
    (path,) = map(Path, outputs)
    cell = Cell.model_validate_json(spec)
    guard = code_guard("measure", cell.modules, code)
    if any(METRICS[metric].declaration.trains for metric in cell.metrics):
        job.count_compilation()
    expected = {kind: part.sha256() for kind, part in specifications(cell).items()}
    with job.stage("measure", name):
        with unchanged_inputs(path.parents[3], map(Path, inputs)) as checksums:
            dataset = metrics_dataset(CellResults(name, path.parent, cell, expected=expected))
        guard()
        write_result(dataset, path, fingerprint(name, cell.sha256(), code), checksums)
