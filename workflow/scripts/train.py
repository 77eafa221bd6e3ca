"""Trains a cell, or one part of it; goes on from a checkpoint where there is one."""

from pathlib import Path

from neuralrace.job import job
from neuralrace.plan import Settings
from neuralrace.provenance import code_sha256
from neuralrace.records.files import write
from neuralrace.records.trajectory import trajectory_dataset
from neuralrace.spec import Run
from neuralrace.training.checkpoints import Checkpoints
from neuralrace.training.ensemble import train

cell, part = snakemake.wildcards.cell, snakemake.wildcards.get("part")
with job(" ".join(filter(None, (cell, part))), snakemake.log[0]) as say:
    run = Run.model_validate_json(snakemake.params.spec)
    chosen = dict(pair.rsplit("-", 1) for pair in part.split(".")) if part else {}
    scales, seeds = ([int(chosen[a])] if a in chosen else None for a in ("init_scale", "seed"))
    path = Path(snakemake.wildcards.root, "checkpoints", cell, f"{part or 'whole'}.npz")
    key = f"{run.sha256()} {code_sha256('train')} {part}"
    interval = Settings.of(snakemake.config).checkpoint_seconds
    checkpoints = Checkpoints(path, key, interval)
    trajectory = train(run, scales, seeds, say, checkpoints)
    write(trajectory_dataset(cell, run, trajectory, scales, seeds), snakemake.output[0])
    checkpoints.clear()
