"""Stage `train`: trains a cell from its specification."""

from neuralrace.config.cell import Ensemble
from neuralrace.results.checksums import fingerprint
from neuralrace.results.files import write_result
from neuralrace.results.provenance import code_guard
from neuralrace.results.trajectory import trajectory_dataset
from neuralrace.training.trainer import train
from neuralrace.workflow.checkpoints import FileCheckpoints
from neuralrace.workflow.job import Job


def run(job: Job, spec: str, code: str, often: float) -> None:
    """Trains all runs of a cell, from a checkpoint if there is one, and writes `trajectory.nc`.

    Args:
        job: of the cell `paper/experiment/label`.
        spec: canonical JSON of the `Ensemble`.
        code: checksum of the code when the job was planned.
        often: seconds between two checkpoints.

    Raises:
        UserError: as `neuralrace.training.trainer.train`, a file that cannot be written, or code
            that was edited.
        Stopped: the process was asked to end; a checkpoint is written.
    """
    path, ensemble = job.output, Ensemble.model_validate_json(spec)
    guard = code_guard("train", ensemble.modules, code)
    identity = fingerprint(job.name, ensemble.sha256(), code)
    checkpoint = path.parents[3] / "checkpoints" / f"{job.name}.npz"
    checkpoints = FileCheckpoints(checkpoint, identity, often, job.shutdown, guard)
    job.count_compilation()
    # a request to end waits for the next checkpoint, or after the last one for the trajectory
    with job.stage("train", job.name), job.shutdown.deferred():
        dataset = trajectory_dataset(job.name, ensemble, train(ensemble, job.report, checkpoints))
        guard()
        write_result(dataset, path, identity)
        checkpoints.clear()
