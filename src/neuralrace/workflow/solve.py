"""Solve a cell: from its specification to `theory.nc`."""

from collections.abc import Sequence

from neuralrace.config.cell import SolvedEnsemble
from neuralrace.results.checksums import fingerprint
from neuralrace.results.files import write_result
from neuralrace.results.provenance import code_guard
from neuralrace.results.theory import theory_dataset
from neuralrace.workflow.job import Job


def run(
    job: Job, name: str, inputs: Sequence[str], outputs: Sequence[str], spec: str, code: str
) -> None:
    """Solves the theory of a cell for the initial weights of its runs, without training.

    Args:
        job: what it reports to.
        name: of the cell, `paper/experiment/label`.
        inputs: none.
        outputs: path of the theory.
        spec: canonical JSON of the `SolvedEnsemble`.
        code: digest of the code that it was planned with.

    Raises:
        UserError: a theory that is not for these data or weights, a file that cannot be written, or
            code that was edited.
    """
    ensemble = SolvedEnsemble.model_validate_json(spec)
    guard = code_guard("solve", ensemble.modules, code)
    with job.stage("solve", name):
        dataset = theory_dataset(name, ensemble)
        guard()
        write_result(dataset, outputs[0], fingerprint(name, ensemble.sha256(), code))
