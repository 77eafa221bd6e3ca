"""Train a cell: from its specification to `trajectory.nc`."""

from collections.abc import Sequence
from pathlib import Path

from neuralrace.config.cell import Ensemble
from neuralrace.results.checksums import fingerprint
from neuralrace.results.files import write_result
from neuralrace.results.provenance import code_guard
from neuralrace.results.trajectory import trajectory_dataset
from neuralrace.training.trainer import train
from neuralrace.workflow.checkpoints import FileCheckpoints
from neuralrace.workflow.job import Job


def run(
    job: Job,
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    spec: str,
    code: str,
    often: float,
) -> None:
    """Trains all runs of a cell; goes on from a checkpoint where there is one.

    Args:
        job: what it reports to.
        name: of the cell, `paper/experiment/label`.
        inputs: none.
        outputs: path of the trajectory.
        spec: canonical JSON of the `Ensemble`.
        code: digest of the code that it was planned with.
        often: seconds between two checkpoints.

    Raises:
        UserError: as `neuralrace.training.trainer.train`, a file that cannot be written, or code
            that was edited.
        Stopped: the process was asked to end; a checkpoint is written.
    """
    (path,) = map(Path, outputs)
    ensemble = Ensemble.model_validate_json(spec)
    guard = code_guard("train", ensemble.modules, code)
    identity = fingerprint(name, ensemble.sha256(), code)
    checkpoint = path.parents[3] / "checkpoints" / f"{name}.npz"
    checkpoints = FileCheckpoints(checkpoint, identity, often, job.requests, guard)
    job.count_compilation()
    # the next checkpoint answers requests to end; after the last one, the trajectory is written
    with job.stage("train", name), job.requests.held():
        dataset = trajectory_dataset(name, ensemble, train(ensemble, job.report, checkpoints))
        guard()
        write_result(dataset, path, identity)
        checkpoints.clear()
