"""Solve a cell: from its specification to `theory.nc`."""

from neuralrace.provenance import planned
from neuralrace.records.files import write
from neuralrace.records.theory import theory_dataset
from neuralrace.seal import fingerprint
from neuralrace.spec import SolvedEnsemble
from neuralrace.workflow.job import Job


def run(job: Job, cell: str, spec: str, code: str, path: str) -> None:
    """Solves the theory of a cell for the initial weights of its runs, without training.

    Args:
        job: what it reports to.
        cell: `paper/experiment/label`.
        spec: canonical JSON of its `SolvedEnsemble`.
        code: digest of the code that it was planned with.
        path: where the theory goes.

    Raises:
        UserError: a theory that is not for these data or weights, a file that cannot be written, or
            code that was edited.
    """
    ensemble = SolvedEnsemble.model_validate_json(spec)
    guard = planned("solve", ensemble.modules, code)
    with job.stage("solve", cell):
        dataset = theory_dataset(cell, ensemble)
        guard()
        write(dataset, path, fingerprint(cell, ensemble.sha256(), code))
