"""Accept claims: fail where one did not come out as it is known to."""

from pathlib import Path

from neuralrace.claims.table import read_tables, refuse_surprises
from neuralrace.workflow.job import Job


def run(job: Job, root: str) -> None:
    """Passes only where every claim and finding came out as configured.

    Args:
        job: what it reports to.
        root: the results folder, with the tables.

    Raises:
        UserError: what did not, a line each.
    """
    claims, findings = read_tables(Path(root))
    refuse_surprises([*claims, *findings])
    job.report(f"{len(claims)} claims and {len(findings)} findings came out as known")
