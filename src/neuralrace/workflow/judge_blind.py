"""Judge claims and findings by the robustness runs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from neuralrace.claims.judge import judge_blind
from neuralrace.claims.spec import read_claims
from neuralrace.claims.table import write_blind
from neuralrace.spec import Cell
from neuralrace.workflow.job import Job


def run(
    job: Job, cells: Mapping[str, str], claims: Sequence[str], folders: Sequence[str], path: str
) -> None:
    """Writes `blind.json`.

    Args:
        job: what it reports to.
        cells: canonical JSON of all cells, by `paper/experiment/label`.
        claims: paths of the papers' `claims.yaml`.
        folders: of the robustness runs, one for each experiment.
        path: where the judgements go, beside these folders' common one, `blind`.

    Raises:
        UserError: a claim that cannot be judged, or a file that cannot be read or written.
    """
    configured = {name: Cell.model_validate_json(spec) for name, spec in cells.items()}
    listed = [json.loads(Path(folder, "failed.json").read_text()) for folder in folders]
    failed = {place: reason for each in listed for place, reason in each.items()}
    statements = read_claims([Path(claim) for claim in claims])
    judged = judge_blind(statements, configured, Path(path).parent / "blind", failed)
    write_blind(judged, Path(path))
    job.report(f"{len(judged)} statements judged; make claims shows which verdicts survive")
