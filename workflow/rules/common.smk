# The configuration, and the pool of worker processes that run the jobs.
import atexit
import gc
import os
import re
import sys
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from snakemake.exceptions import WorkflowError, print_exception

from neuralrace.errors import UserError
from neuralrace.extensions.registry import FIGURES
from neuralrace.workflow.interrupts import interrupts
from neuralrace.workflow.messages import shorten_messages
from neuralrace.workflow.pool import WorkerPool
from neuralrace.workflow.scheduling import begin_run, end_run
from neuralrace.workflow.study import Study

gc.disable()  # until jobs start: collecting garbage would make planning half a second longer
atexit.register(gc.freeze)  # and the end .2 s longer
STARTED = time.time()
INTERRUPTS = interrupts()
WORKERS = WorkerPool()
ESTIMATING = threading.Lock()


@contextmanager
def exit_on_user_error():
    """Prints a mistake in the configuration as one message, without a traceback."""
    try:
        yield
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


with exit_on_user_error():
    if workflow.modifier.namespace is None:
        study = Study(workflow.config_settings.config, workflow.configfiles)
    else:  # used as a module: `config` is set by the workflow that uses it
        study = Study(config)
    study.refuse_changed_plan()
config.update(study.config)


pathvars:
    results=study.results,
    figures=study.figures,


wildcard_constraints:
    cell="|".join(map(re.escape, study.plan.cells)) or "none",
    paper="|".join(sorted({name.split("/")[0] for name in FIGURES})),
    figure="|".join(sorted({name.split("/")[1] for name in FIGURES})),
    experiment="[a-z0-9_]+/[a-z0-9_]+",
    variants="blind|ranges",


def submission_group(w):
    """Group of a job: a cluster gets many jobs of one group as one submission; see profiles/."""
    # the Snakemake inside a submission ignores --force-use-threads (9.27), and would start another
    # Snakemake with its own workers for each job
    workflow.execution_settings.use_threads = True
    return "gpu_cells" if study.cost(w.cell).device == "gpu" else "cells"


def print_estimate():
    """Prints how long the jobs of this run will take, at the measured speed of this machine."""
    jobs = tuple(workflow.dag.needrun_jobs(exclude_finished=False))
    speed = partial(WORKERS.run, "speed", "speed", f"{study.results}/logs/speed.log", {})
    if line := study.estimate([job.output[0] for job in jobs if job.output], speed):
        print(line, file=sys.stderr)


def run_in_worker(job, name, input, output, params, log, threads=1, resources={}, **more):
    """Calls `neuralrace.workflow.<job>.run(..., **params)` in a worker process."""
    arguments = {**dict(params.items()), **more}
    try:
        # by the first of all jobs, which others do not wait for; never where others submit jobs
        if workflow.local_exec and ESTIMATING.acquire(blocking=False):
            print_estimate()
        gpu = bool(resources.get("gpu"))
        WORKERS.run(job, name, log[0], arguments, input, output, threads, gpu)
    except UserError as error:
        raise WorkflowError(str(error)) from None


def mark_incomplete():
    """Marks outputs of failed jobs: update() restores the former files, which look complete."""
    for failed in workflow.scheduler.failed:
        for job in failed if failed.is_group() else [failed]:
            if failed.is_group() and study.up_to_date(job.output):
                continue  # this job had succeeded before another one of its group failed
            workflow.persistence.started(job)
