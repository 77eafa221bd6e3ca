"""Checks every result file against its checksum, its schema and the present configuration."""

from neuralrace.job import job
from neuralrace.records.verify import verify

with job("verify", snakemake.log[0]) as this:
    verify({path: snakemake.params.spec[path] for path in snakemake.input.files}, this.report)
