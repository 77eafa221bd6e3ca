"""Trains one part of a cell; goes on from a checkpoint where there is one."""

from pathlib import Path

from neuralrace.devices import compute_with

# before JAX and NumPy are loaded
compute_with(snakemake.threads, gpu=bool(snakemake.resources.get("gpu")))

from neuralrace.job import job
from neuralrace.make import Workshop
from neuralrace.plan import Settings
from neuralrace.spec import Ensemble

w = snakemake.wildcards
with job(f"{w.cell} {w.part}", snakemake.log[0]) as this:
    settings = Settings.of(snakemake.config)
    workshop = Workshop(Path(settings.results), settings.checkpoint_seconds, this)
    ensemble = Ensemble.model_validate_json(snakemake.params.spec)
    workshop.train(w.cell, ensemble, snakemake.params.key, w.part)
