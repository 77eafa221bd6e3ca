"""Stage `solve`: solves the theory of a cell from its specification."""

from neuralrace.config.cell import SolvedEnsemble
from neuralrace.extensions.registry import SOLUTIONS
from neuralrace.results.axes import record_steps
from neuralrace.results.checksums import fingerprint
from neuralrace.results.files import write_result
from neuralrace.results.provenance import code_guard
from neuralrace.results.theory import theory_dataset
from neuralrace.theory.solutions.problem import Arrays, Problem
from neuralrace.workflow.job import Job


def run(job: Job, spec: str, code: str) -> None:
    """Solves the theory for the initial weights of a cell's runs, and writes `theory.nc`.

    Args:
        job: of the cell `paper/experiment/label`.
        spec: canonical JSON of the `SolvedEnsemble`.
        code: checksum of the code when the job was planned.

    Raises:
        UserError: a theory that does not apply to these data or weights, a file that cannot be
            written, or code that was edited.
    """
    ensemble = SolvedEnsemble.model_validate_json(spec)
    guard = code_guard("solve", ensemble.modules, code)
    with job.stage("solve", job.name):
        problem = Problem(ensemble, record_steps(ensemble)[0])
        _ = problem.weights  # shared by all solutions, as are the data behind them
    answers: dict[str, Arrays] = {}
    for name in ensemble.solutions:
        with job.stage("solve", job.name, solution=name):
            answers[name] = SOLUTIONS[name].load()(problem)
    with job.stage("solve", job.name):
        dataset = theory_dataset(job.name, ensemble, answers, problem=problem)
        guard()
        write_result(dataset, job.output, fingerprint(job.name, ensemble.sha256(), code))
