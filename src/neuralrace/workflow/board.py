"""Stage `board`: puts the scores of all tasks of the benchmark together."""

from collections.abc import Mapping
from pathlib import Path

from neuralrace.board.build import board
from neuralrace.board.pages import frame, markdown
from neuralrace.claims.judge import judge_claims
from neuralrace.claims.spec import planned_claims
from neuralrace.claims.table import findings_json
from neuralrace.results.atomic import replacing, write_text
from neuralrace.results.cells import open_results
from neuralrace.results.checksums import checksum_path
from neuralrace.workflow.job import Job


def run(job: Job, code: str, cells: Mapping[str, Mapping[str, str]], findings: str) -> None:
    """Writes the board as a page, a table and NetCDF, and the findings as JSON.

    Args:
        job: with the metrics of the cells of all tasks and the file of findings as inputs.
        code: checksum of the code when the job was planned.
        cells: these cells, with the checksums of their files' specifications.
        findings: fingerprint of the findings when the job was planned.

    Raises:
        UserError: as `neuralrace.workflow.draw.run`.
    """
    page, table, numbers, found = map(Path, job.outputs)
    folder = page.parent
    stated = planned_claims([Path(p) for p in job.inputs if p.endswith(".yaml")], findings)
    metrics = [path for path in job.inputs if path.endswith(".nc")]
    with job.writing("board", code, checksum_path(numbers), folder, findings, inputs=metrics):
        results = open_results(folder, cells, expected=cells)
        tree = board(results.values())
        _, judged = judge_claims(stated, folder, list(cells), expected=cells)
        with replacing(numbers) as temporary:
            tree.to_netcdf(temporary, engine="netcdf4")
        write_text(frame(tree).to_csv(index=False), table)
        write_text(findings_json(judged), found)
        write_text(markdown(tree, judged), page)
