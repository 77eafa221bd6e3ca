"""Draws a figure."""

from neuralrace.figures.save import save
from neuralrace.job import job

with job(snakemake.params.figure, snakemake.log[0]):
    save(snakemake.params.figure, snakemake.input.data, snakemake.output.png, snakemake.output.pdf)
