"""Judge claims and findings, from metrics alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from neuralrace.claims.judge import judge_papers
from neuralrace.claims.table import read_blind, write_tables
from neuralrace.provenance import planned
from neuralrace.seal import recorded
from neuralrace.workflow.job import Job


def run(
    job: Job,
    code: str,
    cells: Mapping[str, Mapping[str, str]],
    root: str,
    claims: Sequence[str],
    inputs: Sequence[str],
    paths: Sequence[str],
) -> None:
    """Writes the tables of claims and findings, whatever they say.

    Args:
        job: what it reports to.
        code: digest of the code that it was planned with.
        cells: all cells, and digest of the specification of each of their files.
        root: the results folder.
        claims: paths of the papers' `claims.yaml`.
        inputs: paths of the metrics that decide them.
        paths: of the tables.

    Raises:
        UserError: as `neuralrace.workflow.draw.run`, or a claim that cannot be judged.
    """
    guard = planned("judge", (), code)
    folder = Path(root)
    files = [Path(path) for path in claims]
    with (
        job.stage("judge"),
        recorded(folder / "claims.sha256", folder, inputs, paths, code, guard=guard),
    ):
        blind = read_blind(folder / "blind.json")
        judged, findings = judge_papers(files, folder, list(cells), blind, cells)
        write_tables(judged, findings, folder)
    job.report(f"{len(judged)} claims: {folder}/claims.md, {len(findings)} findings: findings.md")
