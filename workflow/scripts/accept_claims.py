"""Fails where a claim did not come out as it is known to."""

from pathlib import Path

from neuralrace.claims.table import read_table, refuse_surprises
from neuralrace.job import job

with job("claims", snakemake.log[0]) as say:
    rows = read_table(Path(snakemake.input.table))
    refuse_surprises(rows)
    say(f"{len(rows)} claims came out as known")
