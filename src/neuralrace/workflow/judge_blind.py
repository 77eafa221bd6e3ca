"""Judge claims and findings by the robustness runs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from neuralrace.claims.judge import judge_blind
from neuralrace.claims.spec import planned_claims
from neuralrace.claims.table import write_blind
from neuralrace.config.cell import Cell
from neuralrace.results.checksums import checksum_path, checksums_of_outputs, file_sha256
from neuralrace.results.provenance import code_guard
from neuralrace.workflow.job import Job


def run(
    job: Job,
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    code: str,
    cells: Mapping[str, str],
    statements: str,
) -> None:
    """Writes `blind.json`.

    Args:
        job: what it reports to.
        name: of the table.
        inputs: paths of `failed.json` of the robustness runs, and of the papers' `claims.yaml`.
        outputs: path of the judgements, beside the folder of all robustness runs, `blind`.
        code: digest of the code that it was planned with.
        cells: canonical JSON of all cells, by `paper/experiment/label`.
        statements: fingerprint of what the claims say.

    Raises:
        UserError: a claim that cannot be judged, or a file that cannot be read or written.
    """
    guard = code_guard("judge_blind", (), code)
    (path,) = map(Path, outputs)
    claims = [Path(each) for each in inputs if each.endswith(".yaml")]
    lists = [Path(each) for each in inputs if each.endswith(".json")]
    written = planned_claims(claims, statements)
    configured = {name: Cell.model_validate_json(spec) for name, spec in cells.items()}
    failed = {k: v for each in lists for k, v in json.loads(each.read_text()).items()}
    digests = (statements, *map(file_sha256, lists))
    with checksums_of_outputs(
        checksum_path(path), path.parent, (), outputs, code, *digests, guard=guard
    ):
        judged = judge_blind(written, configured, path.parent / "blind", failed)
        write_blind(judged, path)
    job.report(f"{len(judged)} statements judged; make claims shows which verdicts survive")
