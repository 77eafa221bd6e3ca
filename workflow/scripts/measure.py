"""Computes the metrics of a cell."""

from neuralrace.job import job
from neuralrace.metrics.measure import metrics_dataset
from neuralrace.records.files import read, write
from neuralrace.spec import Cell

with job(snakemake.wildcards.cell, snakemake.log[0]) as say:
    cell = Cell.model_validate_json(snakemake.params.spec)
    trajectory = read(snakemake.input.trajectory, "trajectory")
    theory = read(snakemake.input.theory, "theory") if cell.solutions else None
    metrics = metrics_dataset(snakemake.wildcards.cell, cell, trajectory, theory)
    write(metrics, snakemake.output[0])
    say(f"measured {', '.join(cell.metrics)}")
