"""Writes all metrics as one tidy table."""

from neuralrace.job import job
from neuralrace.metrics.measure import tidy
from neuralrace.records.files import read, write_text

with job("metrics.csv", snakemake.log[0]):
    table = tidy(read(path, "metrics") for path in snakemake.input.metrics)
    write_text(table.to_csv(index=False), snakemake.output[0])
