"""Stage `judge_variants`: judges claims and findings on the variants of the cells."""

import json
from collections.abc import Mapping
from pathlib import Path

from neuralrace.claims.judge import judge_variants
from neuralrace.claims.spec import planned_claims
from neuralrace.claims.table import write_variants
from neuralrace.claims.variants import VariantTable
from neuralrace.config.cell import Cell
from neuralrace.config.variants import VariantSet
from neuralrace.errors import counted
from neuralrace.results.checksums import checksum_path, file_sha256
from neuralrace.results.provenance import package_versions, processor_attributes
from neuralrace.workflow.job import Job


def run(job: Job, group: VariantSet, code: str, cells: Mapping[str, str], statements: str) -> None:
    """Writes `<group>.json`, beside the folder `variants` of all variants.

    Args:
        job: with `failed.json` of the variants and the papers' `claims.yaml` as inputs.
        group: name of the set of variants.
        code: checksum of the code when the job was planned.
        cells: canonical JSON of all cells, by `paper/experiment/label`.
        statements: fingerprint of the claims when the job was planned.

    Raises:
        UserError: a claim that cannot be judged, or a file that cannot be read or written.
    """
    path = job.output
    claims = planned_claims([Path(p) for p in job.inputs if p.endswith(".yaml")], statements)
    lists = [Path(p) for p in job.inputs if p.endswith(".json")]
    failed = {run: error for file in lists for run, error in json.loads(file.read_text()).items()}
    configured = {name: Cell.model_validate_json(spec) for name, spec in cells.items()}
    computed_from = (statements, *map(file_sha256, lists))
    with job.writing(
        "judge_variants", code, checksum_path(path), path.parent, *computed_from, inputs=()
    ):
        judged = judge_variants(claims, configured, path.parent, group, failed)
        made_by = {"versions": package_versions("jax", "jaxlib", "flax"), **processor_attributes()}
        write_variants(VariantTable(made_by=made_by, statements=judged), path)
    job.report(
        f"{counted(len(judged), 'statement')} judged; run make claims to see which verdicts change"
    )
