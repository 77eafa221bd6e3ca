"""Robustness runs of an experiment: fresh seeds, and sizes that a paper does not print doubled."""

import json
from collections.abc import Mapping
from pathlib import Path

from neuralrace.atomic import write_text
from neuralrace.errors import UserError
from neuralrace.metrics.measure import metrics_dataset
from neuralrace.records.files import write
from neuralrace.records.results import CellResults
from neuralrace.records.theory import theory_dataset
from neuralrace.records.trajectory import trajectory_dataset
from neuralrace.spec import Cell, Ensemble, SolvedEnsemble
from neuralrace.training.trainer import train
from neuralrace.workflow.job import Job


def run(job: Job, experiment: str, variants: Mapping[str, str], folder: str) -> None:
    """Trains, solves and measures all variants of an experiment's cells, one after the other.

    That a variant cannot be run, as all its runs diverge, is an outcome of the trial.

    Args:
        job: what it reports to.
        experiment: `paper/experiment`.
        variants: canonical JSON of each cell, by `variant/label`.
        folder: where their metrics go, and `failed.json`: what could not be run, and why.

    Raises:
        UserError: a file that cannot be written.
    """
    failed = {}
    for number, (place, spec) in enumerate(variants.items(), start=1):
        cell, name = Cell.model_validate_json(spec), f"{experiment}/{Path(place).name}"
        job.report(f"{place}: {number} of {len(variants)}")
        try:
            ensemble = cell.only(Ensemble)
            trained = trajectory_dataset(name, ensemble, train(ensemble, report=job.report))
            solved = theory_dataset(name, cell.only(SolvedEnsemble)) if cell.solutions else None
            results = CellResults(name, Path(folder, place), cell, trained, solved)
            measured = metrics_dataset(results)
        except UserError as error:
            failed[f"{experiment}/{place}"] = str(error)
        else:
            write(measured, results.path("metrics"))
    write_text(json.dumps(failed, indent=2) + "\n", Path(folder, "failed.json"))
