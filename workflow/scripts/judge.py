"""Judges every claim and finding and writes the tables."""

from pathlib import Path

from neuralrace.claims.judge import judge_papers
from neuralrace.claims.table import read_blind, write_tables
from neuralrace.job import job

with job("claims", snakemake.log[0]) as this:
    files = [Path(path) for path in snakemake.input.claims]
    blind = read_blind(Path("results/blind.json"))
    with this.stage("judge"):
        claims, findings = judge_papers(files, Path("results"), snakemake.params.cells, blind)
    write_tables(claims, findings, Path("results"))
    told = f"{len(claims)} claims: results/claims.md, {len(findings)} findings: findings.md"
    this.say(f"judged {told}")
