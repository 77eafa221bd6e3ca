"""Stage `accept`: fails if a claim or finding differs from its known outcome."""

from pathlib import Path

from neuralrace.claims.table import read_tables, refuse_surprises
from neuralrace.errors import counted
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
    counts = f"{counted(len(claims), 'claim')} and {counted(len(findings), 'finding')}"
    job.report(f"{counts}: all have their known outcome")
