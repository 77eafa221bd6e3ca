"""What Snakemake prints while jobs run: one line for each that has finished, which names it."""

import logging
import time
from collections.abc import Callable
from typing import Any

HIDDEN = ("JOB_INFO", "JOB_STARTED", "JOB_ERROR", "GROUP_INFO", "GROUP_ERROR", "PROGRESS")
"""Events that print nothing: jobs report their own progress and errors."""
SELECTING, NO_BACKUP = "Select jobs to execute...", "Cannot restore"
"""Beginnings of Snakemake's messages before each start of jobs, and that an unfinished output has
no former version; they belong to no event."""


def line_filter(names: dict[int, str]) -> Callable[[logging.LogRecord], bool]:
    """A filter of log records that gives each finished job one line.

    Args:
        names: of all jobs of the run, by Snakemake's number of the job.

    Returns:
        A function that says whether a record is shown, and rewrites those of finished jobs.
    """
    done = 0

    def shown(record: logging.LogRecord) -> bool:
        nonlocal done
        event = getattr(record, "event", None)
        if event is None:
            return not str(record.msg).startswith((SELECTING, NO_BACKUP))
        if event.name == "JOB_FINISHED":
            done += 1
            clock, name = time.strftime("%H:%M:%S"), names[vars(record)["job_id"]]
            # without the event, Snakemake adds no line with the date
            record.event = None
            record.msg = f"{clock} {name} done, {done} of {len(names)}"
        return event.name not in HIDDEN

    return shown


def shorten_messages(workflow: Any) -> None:
    """Prints one line for each finished job, unless `--quiet progress` asks for descriptions.

    Args:
        workflow: Snakemake's workflow, whose jobs are about to run.
    """
    if any(each.name == "PROGRESS" for each in workflow.output_settings.quiet or ()):
        return
    jobs = workflow.dag.needrun_jobs(exclude_finished=False)
    names = {job.jobid: job_name(job.rule.name, job.wildcards_dict) for job in jobs}
    logging.getLogger("snakemake.logging").addFilter(line_filter(names))


def job_name(rule: str, wildcards: dict[str, str]) -> str:
    """The cell, figure or experiment of a job, and its rule: `deep_linear/exact/main: train`."""
    return ": ".join(filter(None, ("/".join(wildcards.values()), rule)))
