"""Stage `verify`: verifies the content and the provenance of all results."""

from collections.abc import Mapping
from pathlib import Path

from neuralrace.results.verify import verify
from neuralrace.workflow.job import Job


def run(job: Job, root: str, gallery: str, planned: Mapping[str, str]) -> None:
    """Checks every result file, figure and table; see `neuralrace.results.verify.verify`.

    Args:
        job: receives progress messages.
        root: the results folder.
        gallery: the folder of figures.
        planned: expected fingerprint of each result file, by its path.

    Raises:
        UserError: the problems, with the command that computes the files again.
    """
    fingerprints = {Path(path): fingerprint for path, fingerprint in planned.items()}
    verify(Path(root), Path(gallery), job.report, fingerprints)
