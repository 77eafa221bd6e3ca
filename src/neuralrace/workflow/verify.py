"""Verify results: their content, and what they were computed from."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from neuralrace.results.verify import verify
from neuralrace.workflow.job import Job


def run(
    job: Job,
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    root: str,
    gallery: str,
    planned: Mapping[str, str],
) -> None:
    """Checks every result file, figure and table; see `neuralrace.results.verify.verify`.

    Args:
        job: what it reports to.
        name: of the job.
        inputs: none.
        outputs: none.
        root: the results folder.
        gallery: the folder of figures.
        planned: fingerprint that each result file is to have, by its path.

    Raises:
        UserError: what is wrong, and the command that mends it.
    """
    verify(
        Path(root), Path(gallery), job.report, {Path(path): key for path, key in planned.items()}
    )
