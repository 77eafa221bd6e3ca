"""Stage `measure`: computes the metrics of a cell from its trajectory and theory."""

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


def run(job: Job, spec: str, code: str) -> None:
    """Computes every metric of a cell, and writes `metrics.nc`.

    Args:
        job: of the cell `paper/experiment/label`, with its trajectory and theory as inputs.
        spec: canonical JSON of the `Cell`.
        code: checksum of the code when the job was planned.

    Raises:
        UserError: a cell that a metric refuses, a result file that is damaged or of another
            specification, a file that cannot be written, or code that was edited.
    """
    path, cell = job.output, Cell.model_validate_json(spec)
    guard = code_guard("measure", cell.modules, code)
    if any(METRICS[metric].declaration.trains for metric in cell.metrics):
        job.count_compilation()
    expected = {kind: part.sha256() for kind, part in specifications(cell).items()}
    with job.stage("measure", job.name):
        with unchanged_inputs(path.parents[3], map(Path, job.inputs)) as checksums:
            dataset = metrics_dataset(CellResults(job.name, path.parent, cell, expected=expected))
        guard()
        write_result(dataset, path, fingerprint(job.name, cell.sha256(), code), checksums)
