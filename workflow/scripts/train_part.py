"""Trains one part of a cell; goes on from a checkpoint where there is one."""

from pathlib import Path

from neuralrace.environment import settle

LEFT_OUT = settle(snakemake.threads, gpu=bool(snakemake.resources.get("gpu")))

from neuralrace.job import job
from neuralrace.make import Workshop
from neuralrace.plan import Settings
from neuralrace.spec import Ensemble

cell_id, part = snakemake.params.cell, snakemake.wildcards.part
with job(f"{cell_id} {part}", snakemake.log[0], LEFT_OUT) as this:
    settings = Settings.of(snakemake.config)
    workshop = Workshop(Path(settings.results), settings.checkpoint_seconds, this)
    ensemble = Ensemble.model_validate_json(snakemake.params.spec)
    workshop.train(cell_id, ensemble, snakemake.params.key, part)
