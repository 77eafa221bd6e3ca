"""Trains, solves and measures all variants of an experiment's cells, one after the other."""

import json
from pathlib import Path

from neuralrace.environment import settle

LEFT_OUT = settle(snakemake.threads)

from neuralrace.atomic import write_text
from neuralrace.errors import UserError
from neuralrace.job import job
from neuralrace.metrics.measure import metrics_dataset
from neuralrace.records.files import write
from neuralrace.records.results import CellResults
from neuralrace.records.theory import theory_dataset
from neuralrace.records.trajectory import trajectory_dataset
from neuralrace.spec import Cell, Ensemble, SolvedEnsemble
from neuralrace.training.trainer import train

experiment, folder = snakemake.wildcards.experiment, Path(snakemake.output[0])
with job(f"blind {experiment}", snakemake.log[0], LEFT_OUT) as this:
    failed, variants = {}, json.loads(snakemake.params.variants)
    for number, (place, spec) in enumerate(variants.items(), start=1):
        cell, name = Cell.model_validate_json(spec), f"{experiment}/{Path(place).name}"
        this.report(f"{place}: {number} of {len(variants)}")
        try:
            ensemble = cell.only(Ensemble)
            trained = trajectory_dataset(name, ensemble, train(ensemble, report=this.report))
            solved = theory_dataset(name, cell.only(SolvedEnsemble)) if cell.solutions else None
            results = CellResults(name, folder / place, cell, trained, solved)
            write(metrics_dataset(results), results.path("metrics"))
        except UserError as error:  # such as every run diverged: an outcome of the trial
            failed[f"{experiment}/{place}"] = str(error)
    write_text(json.dumps(failed, indent=2) + "\n", folder / "failed.json")
