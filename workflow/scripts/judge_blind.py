"""Judges every claim and finding on fresh seeds and with what is ours doubled."""

import json
from pathlib import Path

from neuralrace.claims.judge import judge_blind
from neuralrace.claims.spec import read_claims
from neuralrace.claims.table import write_blind
from neuralrace.job import job
from neuralrace.spec import Cell

with job("blind", snakemake.log[0]) as this:
    cells = {name: Cell.model_validate_json(spec) for name, spec in snakemake.params.cells.items()}
    folders = [Path(folder) for folder in snakemake.input.folders]
    failed = [json.loads((folder / "failed.json").read_text()) for folder in folders]
    told = {place: why for each in failed for place, why in each.items()}
    claims = read_claims([Path(path) for path in snakemake.input.claims])
    blind = judge_blind(claims, cells, Path(snakemake.output[0]).parent / "blind", told)
    write_blind(blind, Path(snakemake.output[0]))
    this.report(f"judged {len(blind)} statements blindly; make claims shows which verdicts survive")
