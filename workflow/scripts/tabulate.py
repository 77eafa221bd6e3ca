"""Writes all metrics as one tidy table."""

from neuralrace.atomic import write_text
from neuralrace.job import job
from neuralrace.metrics.measure import tidy
from neuralrace.records.files import read

with job("metrics.csv", snakemake.log[0]):
    table = tidy(read(path, "metrics") for path in snakemake.input.metrics)
    write_text(table.to_csv(index=False), snakemake.output[0])
