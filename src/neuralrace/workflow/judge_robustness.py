"""Stage `judge_robustness`: judges claims and findings from the robustness runs."""

import json
from collections.abc import Mapping
from pathlib import Path

from neuralrace.claims.judge import judge_robustness
from neuralrace.claims.spec import planned_claims
from neuralrace.claims.table import write_robustness
from neuralrace.config.cell import Cell
from neuralrace.results.checksums import checksum_path, file_sha256
from neuralrace.workflow.job import Job


def run(job: Job, code: str, cells: Mapping[str, str], statements: str) -> None:
    """Writes `robustness.json`, beside the folder `robustness` of all robustness runs.

    Args:
        job: with `failed.json` of the robustness runs and the papers' `claims.yaml` as inputs.
        code: checksum of the code when the job was planned.
        cells: canonical JSON of all cells, by `paper/experiment/label`.
        statements: fingerprint of the claims when the job was planned.

    Raises:
        UserError: a claim that cannot be judged, or a file that cannot be read or written.
    """
    path = job.output
    claims = planned_claims([Path(p) for p in job.inputs if p.endswith(".yaml")], statements)
    lists = [Path(p) for p in job.inputs if p.endswith(".json")]
    failed = {run: error for file in lists for run, error in json.loads(file.read_text()).items()}
    configured = {name: Cell.model_validate_json(spec) for name, spec in cells.items()}
    computed_from = (statements, *map(file_sha256, lists))
    with job.writing(
        "judge_robustness", code, checksum_path(path), path.parent, *computed_from, inputs=()
    ):
        judged = judge_robustness(claims, configured, path.parent / "robustness", failed)
        write_robustness(judged, path)
    job.report(f"{len(judged)} statements judged; run make claims to see which verdicts change")
