"""Accept claims: fail where one did not come out as it is known to."""

from collections.abc import Sequence
from pathlib import Path

from neuralrace.claims.table import read_tables, refuse_surprises
from neuralrace.workflow.job import Job


def run(job: Job, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Passes only where every claim and finding came out as configured.

    Args:
        job: what it reports to.
        name: of the tables.
        inputs: paths of `claims.json` and `findings.json`, in one folder.
        outputs: a file that Snakemake touches then.

    Raises:
        UserError: what did not, a line each.
    """
    claims, findings = read_tables(Path(inputs[0]).parent)
    refuse_surprises([*claims, *findings])
    job.report(f"{len(claims)} claims and {len(findings)} findings came out as known")
