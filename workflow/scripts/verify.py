"""Checks every result file, and what was made from them, against seals, schema and plan."""

from pathlib import Path

from neuralrace.job import job
from neuralrace.records.verify import verify

with job("verify", snakemake.log[0]) as this:
    root, gallery = Path(snakemake.params.results), Path(snakemake.params.gallery)
    keys = {Path(name): key for name, key in snakemake.params.planned.items()}
    verify(root, gallery, this.report, keys)
