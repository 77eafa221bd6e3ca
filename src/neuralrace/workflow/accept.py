"""Stage `accept`: fails if a claim or finding differs from its known outcome."""

from pathlib import Path

from neuralrace.claims.table import read_tables, refuse_surprises
from neuralrace.workflow.job import Job


def run(job: Job) -> None:
    """Checks the tables of claims and findings.

    Args:
        job: with `claims.json` and `findings.json` of one folder as inputs.

    Raises:
        UserError: the claims and findings that differ from their known outcome.
    """
    claims, findings = read_tables(Path(job.inputs[0]).parent)
    refuse_surprises([*claims, *findings])
    job.report(f"{len(claims)} claims and {len(findings)} findings have their known outcome")
