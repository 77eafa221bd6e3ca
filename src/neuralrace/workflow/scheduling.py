"""Start and end of a workflow run: the lock of the results folder, and Snakemake's own cost."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from neuralrace.errors import UserError
from neuralrace.results.atomic import remove_temporaries
from neuralrace.results.lock import locked
from neuralrace.workflow.job import write_record

_locks = ExitStack()
"""Locks that this process holds until it ends."""


def begin_run(results: Path, outputs: Sequence[Path]) -> None:
    """Locks the results folder, and removes incomplete files of killed runs.

    Args:
        results: the results folder.
        outputs: files that the run may write.

    Raises:
        UserError: as `neuralrace.results.lock.locked`.
    """
    if _locks.enter_context(locked(results, outputs)):
        remove_temporaries(outputs)
    else:
        print(
            f"{results}: this file system has no locks; start one run there at a time",
            file=sys.stderr,
        )


def end_run(results: Path, started: float) -> None:
    """Records Snakemake's own core-seconds if any job ran.

    A folder that is full or cannot be written to is only reported: the outcome of the run stands.

    Args:
        results: the results folder.
        started: start of Snakemake, in seconds since the epoch.
    """
    logs = results / "logs"
    if any(path.stat().st_mtime > started for path in logs.rglob("*.json")):
        try:
            write_record("scheduling", started, logs / "scheduling.json")
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
