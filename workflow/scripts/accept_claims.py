"""Fails where a claim or finding did not come out as it is known to."""

from pathlib import Path

from neuralrace.claims.table import read_tables, refuse_surprises
from neuralrace.job import job

with job("claims", snakemake.log[0]) as this:
    claims, findings = read_tables(Path(snakemake.input.claims).parent)
    refuse_surprises([*claims, *findings])
    this.report(f"{len(claims)} claims and {len(findings)} findings came out as known")
