"""Robustness runs of an experiment: fresh seeds, and sizes that a paper does not print doubled."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

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


def run(
    job: Job,
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    cells: Mapping[str, str],
    code: Mapping[str, str],
) -> None:
    """Trains, solves and measures all variants of an experiment's cells, one after the other.

    That a variant cannot be run, as all its runs diverge, is an outcome of the trial.

    Args:
        job: what it reports to.
        name: of the experiment, `paper/experiment`.
        inputs: none.
        outputs: path of `failed.json`: what could not be run, and why. Metrics go beside it, in
            `variant/label`.
        cells: canonical JSON of each cell, by `variant/label`.
        code: digest of the code that each of them was planned with.

    Raises:
        UserError: a file that cannot be written, or code that was edited.
    """
    (path,) = map(Path, outputs)
    specified = {place: Cell.model_validate_json(spec) for place, spec in cells.items()}
    guards = {p: code_guard("blind", cell.modules, code[p]) for p, cell in specified.items()}
    failed = {}
    for number, (place, cell) in enumerate(specified.items(), start=1):
        cell_id = f"{name}/{Path(place).name}"
        job.report(f"{place}: {number} of {len(cells)}")
        try:
            if unfit := cell.unfit():
                raise unfit
            ensemble = cell.only(Ensemble)
            trained = trajectory_dataset(cell_id, ensemble, train(ensemble, job.report))
            solved = theory_dataset(cell_id, cell.only(SolvedEnsemble)) if cell.solutions else None
            results = CellResults(cell_id, path.parent / place, cell, trained, solved)
            measured = metrics_dataset(results)
        except UserError as error:
            failed[f"{name}/{place}"] = str(error)
        else:
            guards[place]()
            write_result(measured, results.path("metrics"))
    for guard in guards.values():
        guard()
    write_text(json.dumps(failed, indent=2) + "\n", path)
