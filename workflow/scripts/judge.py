"""Judges every claim and writes the table."""

from pathlib import Path

from neuralrace.claims.judge import judge_papers
from neuralrace.claims.table import write_table
from neuralrace.job import job

with job("claims", snakemake.log[0]) as say:
    files = [Path(path) for path in snakemake.input.claims]
    rows = judge_papers(files, Path("results"), snakemake.params.cells)
    write_table(rows, Path("results"))
    say(f"judged {len(rows)} claims: {Path('results/claims.md')}")
