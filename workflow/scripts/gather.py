"""Gathers a cell that was trained in parts."""

from neuralrace.job import job
from neuralrace.records.files import read, write
from neuralrace.records.trajectory import gather

with job(snakemake.wildcards.cell, snakemake.log[0]):
    write(gather([read(path, "trajectory") for path in snakemake.input.parts]), snakemake.output[0])
