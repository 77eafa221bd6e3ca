"""Train a cell: from its specification to `trajectory.nc`."""

from pathlib import Path

from neuralrace.provenance import planned
from neuralrace.records.files import write
from neuralrace.records.trajectory import trajectory_dataset
from neuralrace.seal import fingerprint
from neuralrace.spec import Ensemble
from neuralrace.training.checkpoints import Checkpoints
from neuralrace.training.trainer import COMPILED, train
from neuralrace.workflow.job import Job


def run(
    job: Job, cell: str, spec: str, code: str, path: str, checkpoint: str, seconds: float
) -> None:
    """Trains all runs of a cell; goes on from a checkpoint where there is one.

    Args:
        job: what it reports to.
        cell: `paper/experiment/label`.
        spec: canonical JSON of its `Ensemble`.
        code: digest of the code that it was planned with.
        path: where the trajectory goes.
        checkpoint: where checkpoints of it stand.
        seconds: time between two of them.

    Raises:
        UserError: as `neuralrace.training.trainer.train`, a file that cannot be written, or code
            that was edited.
        Stopped: the process was asked to end; a checkpoint or the trajectory is written.
    """
    ensemble = Ensemble.model_validate_json(spec)
    guard = planned("train", ensemble.modules, code)
    identity = fingerprint(cell, ensemble.sha256(), code)
    checkpoints = Checkpoints(Path(checkpoint), identity, seconds, job.requests, guard)
    job.count_compilation(COMPILED)
    # the next checkpoint answers requests to end
    with job.stage("train", cell), job.requests.held():
        dataset = trajectory_dataset(
            cell, ensemble, train(ensemble, report=job.report, checkpoints=checkpoints)
        )
        guard()
        write(dataset, path, identity)
        checkpoints.clear()
