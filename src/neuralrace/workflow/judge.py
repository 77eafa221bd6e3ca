"""Judge claims and findings, from metrics alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from neuralrace.claims.judge import judge_papers
from neuralrace.claims.spec import planned_claims
from neuralrace.claims.table import read_blind, write_tables
from neuralrace.results.checksums import checksums_of_outputs
from neuralrace.results.provenance import code_guard
from neuralrace.workflow.job import Job


def run(
    job: Job,
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    code: str,
    cells: Mapping[str, Mapping[str, str]],
    robustness: str,
    statements: str,
) -> None:
    """Writes the tables of claims and findings, whatever they say.

    Args:
        job: what it reports to.
        name: of the tables.
        inputs: paths of the metrics that decide them, and of the papers' `claims.yaml`.
        outputs: paths of the tables.
        code: digest of the code that it was planned with.
        cells: all cells, and digest of the specification of each of their files.
        robustness: checksum of `blind.json` beside the tables; empty where there is none.
        statements: fingerprint of what the claims say.

    Raises:
        UserError: as `neuralrace.workflow.draw.run`, or a claim that cannot be judged.
    """
    guard = code_guard("judge", (), code)
    folder = Path(outputs[0]).parent
    files = [Path(path) for path in inputs if path.endswith(".yaml")]
    metrics = [path for path in inputs if path.endswith(".nc")]
    planned_claims(files, statements)
    seal, digests = folder / "claims.sha256", (statements, robustness)
    with (
        job.stage("judge"),
        checksums_of_outputs(seal, folder, metrics, outputs, code, *digests, guard=guard),
    ):
        blind = read_blind(folder / "blind.json")
        judged, findings = judge_papers(files, folder, list(cells), blind, cells)
        write_tables(judged, findings, folder)
    job.report(f"{len(judged)} claims: {folder}/claims.md, {len(findings)} findings: findings.md")
