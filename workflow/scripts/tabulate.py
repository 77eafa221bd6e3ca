"""Writes all metrics as one tidy table."""

from pathlib import Path

from neuralrace.analysis import to_frame
from neuralrace.atomic import write_text
from neuralrace.job import job
from neuralrace.product import Product
from neuralrace.records.results import open_results

with job("metrics.csv", snakemake.log[0]):
    product = Product.model_validate_json(snakemake.params.product)
    with product.making(snakemake.output):
        table = to_frame(open_results(Path(product.root), snakemake.params.cells))
        write_text(table.to_csv(index=False), snakemake.output[0])
