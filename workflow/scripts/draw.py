"""Draws a figure."""

from neuralrace.figures.save import save
from neuralrace.job import job

name = snakemake.params.figure
with job(name, snakemake.log[0]) as this:
    with this.stage("draw", name):
        save(name, snakemake.params.root, snakemake.params.cells, *snakemake.output)
    this.say(f"drawn in {snakemake.output.png}")
