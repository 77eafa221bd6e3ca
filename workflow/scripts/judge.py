"""Judges every claim and finding and writes the tables."""

from pathlib import Path

from neuralrace.claims.judge import judge_papers
from neuralrace.claims.table import read_blind, write_tables
from neuralrace.job import job
from neuralrace.product import Product

with job("claims", snakemake.log[0]) as this:
    files = [Path(path) for path in snakemake.input.claims]
    root = Path(snakemake.output[0]).parent
    blind = read_blind(root / "blind.json")
    product = Product.model_validate_json(snakemake.params.product)
    with this.stage("judge"), product.making(snakemake.output):
        claims, findings = judge_papers(files, root, snakemake.params.cells, blind)
        write_tables(claims, findings, root)
    told = f"{len(claims)} claims: {root}/claims.md, {len(findings)} findings: findings.md"
    this.report(f"judged {told}")
