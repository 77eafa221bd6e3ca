"""Measure a cell: from its trajectory and theory to `metrics.nc`."""

from collections.abc import Sequence
from pathlib import Path

from neuralrace.metrics.measure import metrics_dataset
from neuralrace.provenance import planned
from neuralrace.records.files import write
from neuralrace.records.results import CellResults
from neuralrace.registry import METRICS
from neuralrace.seal import fingerprint, unchanged
from neuralrace.spec import Cell
from neuralrace.workflow.job import Job
from neuralrace.workflow.stages import specifications


def run(job: Job, cell: str, spec: str, code: str, path: str, inputs: Sequence[str]) -> None:
    """Computes every metric of a cell.

    Args:
        job: what it reports to.
        cell: `paper/experiment/label`.
        spec: canonical JSON of its `Cell`.
        code: digest of the code that it was planned with.
        path: where the metrics go, beside trajectory and theory.
        inputs: paths of trajectory and theory.

    Raises:
        UserError: what a metric refuses, a damaged file or one of another specification, a file
            that cannot be written, or code that was edited.
    """
    whole = Cell.model_validate_json(spec)
    guard = planned("measure", whole.modules, code)
    if any(METRICS[name].declaration.trains for name in whole.metrics):
        from neuralrace.training.trainer import COMPILED

        job.count_compilation(COMPILED)
    folder = Path(path).parent
    expected = {kind: part.sha256() for kind, part in specifications(whole).items()}
    with job.stage("measure", cell):
        with unchanged(folder.parents[2], map(Path, inputs)) as checksums:
            dataset = metrics_dataset(CellResults(cell, folder, whole, expected=expected))
        guard()
        write(dataset, path, fingerprint(cell, whole.sha256(), code), checksums)
