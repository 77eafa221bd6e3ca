"""Solves the theory of a cell."""

from neuralrace.job import job
from neuralrace.records.files import write
from neuralrace.records.theory import theory_dataset
from neuralrace.spec import SolvedRun

with job(snakemake.wildcards.cell, snakemake.log[0]) as say:
    run = SolvedRun.model_validate_json(snakemake.params.spec)
    write(theory_dataset(snakemake.wildcards.cell, run), snakemake.output[0])
    say(f"solved {', '.join(run.solutions)}")
