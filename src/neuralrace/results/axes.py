"""Coordinates and provenance attributes that all files of a cell share."""

from collections.abc import Sequence

import numpy as np

from neuralrace.config.cell import Ensemble
from neuralrace.results.provenance import Stage, code_sha256, package_versions, processor_attributes
from neuralrace.training.batches import FullBatch

Coordinates = dict[str, tuple[str, np.ndarray, str]]
"""Dimension, values and unit of each coordinate."""


def provenance_attributes(
    cell_id: str, spec: Ensemble, stage: Stage, packages: Sequence[str], in_memory: bool = False
) -> dict[str, str]:
    """Attributes that record the origin of a file, without date or host.

    Args:
        cell_id: `paper/experiment/label`.
        spec: specification of the runs.
        stage: what computes the dataset.
        packages: packages whose versions are recorded, in addition to ours and NumPy.
        in_memory: whether the dataset is for no file. Digests and the attributes of the processor
            are left out then: these read all source files and load SciPy, which takes longer than
            a small network trains.
    """
    paper, experiment, cell = cell_id.split("/")
    origin = {
        "Conventions": "CF-1.11",
        "source": "neuralrace",
        "paper": paper,
        "experiment": experiment,
        "cell": cell,
        "spec": spec.canonical(),
        "versions": package_versions(*packages),
    }
    if in_memory:
        return origin
    return origin | {
        "spec_sha256": spec.sha256(),
        "code_sha256": code_sha256(stage, spec.modules),
        **processor_attributes(),
    }


def record_steps(ensemble: Ensemble) -> tuple[np.ndarray, np.ndarray]:
    """Gradient steps of the time axis and of the snapshot axis."""
    steps, record = ensemble.training.steps, ensemble.record
    return (
        np.arange(0, steps + 1, record.every),
        np.arange(0, steps + 1, steps // record.snapshots),
    )


def axes(ensemble: Ensemble, samples: int) -> Coordinates:
    """Coordinates of an ensemble by name.

    `time` counts epochs for full-batch training and steps otherwise. `flow_time` is gradient-flow
    time in units of tau, the time of the theory.

    Args:
        ensemble: specification of the runs.
        samples: size of the dataset.
    """
    unit = "epochs" if isinstance(ensemble.training.batch, FullBatch) else "steps"
    clock = ensemble.training.flow_step(samples)
    step, snapshot = record_steps(ensemble)
    return {
        "init_scale": ("init_scale", np.asarray(ensemble.init_scales), "1"),
        "seed": ("seed", np.asarray(ensemble.seed_numbers), "1"),
        "time": ("time", step, unit),
        "flow_time": ("time", clock * step, "tau"),
        "snapshot": ("snapshot", snapshot, unit),
        "snapshot_flow_time": ("snapshot", clock * snapshot, "tau"),
    }
