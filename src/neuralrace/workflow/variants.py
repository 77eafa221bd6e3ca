"""Stage `variants`: an experiment's cells again, with fresh seeds, or other settings."""

import json
from collections.abc import Mapping

from neuralrace.config.cell import Cell, Ensemble, SolvedEnsemble
from neuralrace.errors import UserError
from neuralrace.metrics.dataset import metrics_dataset
from neuralrace.results.atomic import write_text
from neuralrace.results.cells import CellResults
from neuralrace.results.files import write_result
from neuralrace.results.provenance import code_guard
from neuralrace.results.theory import theory_dataset
from neuralrace.results.trajectory import trajectory_dataset
from neuralrace.training.trainer import train
from neuralrace.workflow.job import Job


def run(job: Job, cells: Mapping[str, str], code: Mapping[str, str]) -> None:
    """Trains, solves and measures all variants of an experiment's cells, one after the other.

    The job goes on after a variant that cannot be run, such as one whose runs all diverge.

    Args:
        job: of the experiment `paper/experiment`. Its output is `failed.json`: the variants that
            failed, with their error. Metrics go beside it, into `variant/label`.
        cells: canonical JSON of each variant, by `variant/label`.
        code: checksum of the code of each variant when the job was planned.

    Raises:
        UserError: a file that cannot be written, or code that was edited.
    """
    folder = job.output.parent
    variants = {label: Cell.model_validate_json(spec) for label, spec in cells.items()}
    guards = {
        label: code_guard("variants", cell.modules, code[label]) for label, cell in variants.items()
    }
    failed = {}
    for number, (label, cell) in enumerate(variants.items(), start=1):
        cell_id = f"{job.name}/{label.rpartition('/')[2]}"
        job.report(f"{label}: {number} of {len(cells)}")
        try:
            if unfit := cell.unfit():
                raise unfit
            ensemble = cell.only(Ensemble)
            trained = trajectory_dataset(cell_id, ensemble, train(ensemble, job.report))
            solved = theory_dataset(cell_id, cell.only(SolvedEnsemble)) if cell.solutions else None
            results = CellResults(cell_id, folder / label, cell, trained, solved)
            measured = metrics_dataset(results)
        except UserError as error:
            failed[f"{job.name}/{label}"] = str(error)
        else:
            guards[label]()
            write_result(measured, results.path("metrics"))
    for guard in guards.values():
        guard()
    write_text(json.dumps(failed, indent=2) + "\n", job.output)
