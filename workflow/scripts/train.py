"""Trains a cell, or one part of it."""

from neuralrace.job import job
from neuralrace.records.files import write
from neuralrace.records.trajectory import trajectory_dataset
from neuralrace.spec import Run
from neuralrace.training.ensemble import train

cell, part = snakemake.wildcards.cell, snakemake.wildcards.get("part")
with job(" ".join(filter(None, (cell, part))), snakemake.log[0]) as say:
    run = Run.model_validate_json(snakemake.params.spec)
    chosen = dict(pair.rsplit("-", 1) for pair in part.split(".")) if part else {}
    scales, seeds = ([int(chosen[a])] if a in chosen else None for a in ("init_scale", "seed"))
    trajectory = train(run, scales, seeds, report=say)
    write(trajectory_dataset(cell, run, trajectory, scales, seeds), snakemake.output[0])
