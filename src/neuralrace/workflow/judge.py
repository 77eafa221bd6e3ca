"""Stage `judge`: judges claims and findings from metrics files."""

from collections.abc import Mapping
from pathlib import Path

from neuralrace.claims.judge import judge_claims
from neuralrace.claims.spec import planned_claims
from neuralrace.claims.table import read_robustness, write_tables
from neuralrace.workflow.job import Job


def run(
    job: Job,
    code: str,
    cells: Mapping[str, Mapping[str, str]],
    robustness: str,
    statements: str,
) -> None:
    """Writes the tables of claims and findings, surprising ones included.

    Args:
        job: with metrics files and the papers' `claims.yaml` as inputs.
        code: checksum of the code when the job was planned.
        cells: all cells, with the checksums of their files' specifications.
        robustness: checksum of `robustness.json` beside the tables; empty where there is none.
        statements: fingerprint of the claims when the job was planned.

    Raises:
        UserError: as `neuralrace.workflow.draw.run`, or a claim that cannot be judged.
    """
    folder = job.output.parent
    claims = planned_claims([Path(p) for p in job.inputs if p.endswith(".yaml")], statements)
    metrics = [path for path in job.inputs if path.endswith(".nc")]
    with job.writing(
        "judge", code, folder / "claims.sha256", folder, statements, robustness, inputs=metrics
    ):
        variants = read_robustness(folder / "robustness.json")
        judged, findings = judge_claims(claims, folder, list(cells), variants, cells)
        write_tables(judged, findings, folder)
    job.report(f"{len(judged)} claims: {folder}/claims.md, {len(findings)} findings: findings.md")
