"""Makes what is outdated of the cells that share a job; one that fails does not stop the others."""

import json
import sys
from pathlib import Path

from neuralrace.environment import settle

LEFT_OUT = settle(snakemake.threads, gpu=bool(snakemake.resources.get("gpu")))

from neuralrace.job import job
from neuralrace.make import Workshop
from neuralrace.plan import Settings
from neuralrace.spec import Cell

with job(snakemake.rule, snakemake.log[0], LEFT_OUT) as this:
    settings = Settings.of(snakemake.config)
    workshop = Workshop(Path(settings.results), settings.checkpoint_seconds, this)
    work, failed = json.loads(snakemake.params.work), []
    for cell_id, todo in work.items():
        cell = Cell.model_validate_json(todo["cell"])
        try:
            workshop.make(cell_id, cell, todo["keys"], todo["parts"])
        except Exception as error:
            this.failed(cell_id, error)
            failed.append(cell_id)
if failed:
    sys.exit(1)
