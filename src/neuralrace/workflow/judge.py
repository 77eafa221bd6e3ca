"""Stage `judge`: judges claims and findings from metrics files."""

from collections.abc import Mapping
from pathlib import Path

from neuralrace.claims.judge import judge_claims
from neuralrace.claims.spec import planned_claims
from neuralrace.claims.table import read_variants, write_tables
from neuralrace.claims.variants import VariantTable
from neuralrace.config.variants import VariantSet, variants_path
from neuralrace.errors import counted
from neuralrace.workflow.job import Job


def run(
    job: Job,
    code: str,
    cells: Mapping[str, Mapping[str, str]],
    tables: Mapping[VariantSet, str],
    statements: str,
) -> None:
    """Writes the tables of claims and findings, surprising ones included.

    Args:
        job: with metrics files and the papers' `claims.yaml` as inputs.
        code: checksum of the code when the job was planned.
        cells: all cells, with the checksums of their files' specifications.
        tables: checksum of the outcome of each set of variants; empty where there is none.
        statements: fingerprint of the claims when the job was planned.

    Raises:
        UserError: as `neuralrace.workflow.draw.run`, or a claim that cannot be judged.
    """
    folder = job.output.parent
    claims = planned_claims([Path(p) for p in job.inputs if p.endswith(".yaml")], statements)
    metrics = [path for path in job.inputs if path.endswith(".nc")]
    with job.writing(
        "judge",
        code,
        folder / "claims.sha256",
        folder,
        statements,
        *tables.values(),
        inputs=metrics,
    ):
        varied: dict[VariantSet, VariantTable] = {
            group: read_variants(variants_path(folder, group)) for group in tables
        }
        judged, findings = judge_claims(claims, folder, list(cells), varied, cells)
        write_tables(judged, findings, folder, [file.parent.name for file in claims])
    counts = counted(len(judged), "claim"), counted(len(findings), "finding")
    job.report("{}: {folder}/claims.md, {}: {folder}/findings.md".format(*counts, folder=folder))
