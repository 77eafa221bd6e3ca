# The configuration, and the processes that do the work.
import gc
import os
import re
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

from neuralrace.atomic import sweep
from neuralrace.errors import UserError
from neuralrace.locking import locked
from neuralrace.registry import FIGURES
from neuralrace.seal import fingerprint_of
from neuralrace.stopping import answer_for_snakemake
from neuralrace.workflow.job import write_record
from neuralrace.workflow.study import Study
from neuralrace.workflow.workers import Workers

# A plan is many small objects that stay: to look through them again and again takes half a second.
gc.disable()
STARTED = time.time()
WORKERS = Workers()
LOCK = threading.Lock()
LOCKED = ExitStack()  # left by the end of the process alone


@contextmanager
def refusing():
    """Shows an error of the user's as one message, before anything runs."""
    try:
        yield
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


with refusing():
    if workflow.modifier.namespace is None:
        study = Study(workflow.config_settings.config, workflow.configfiles)
    else:  # what a workflow hands over that has this one as a module
        study = Study(config)
    study.refuse_another_plan()
config.update(study.config)


pathvars:
    results=study.results,
    figures=study.figures,


wildcard_constraints:
    cell="|".join(map(re.escape, study.plan.cells)) or "none",
    paper="|".join(sorted({name.split("/")[0] for name in FIGURES})),
    figure="|".join(sorted({name.split("/")[1] for name in FIGURES})),
    experiment="[a-z0-9_]+/[a-z0-9_]+",


def submission(w):
    """Group of the jobs that a cluster gets as one submission, and one Snakemake there runs."""
    # --force-use-threads does not reach it (Snakemake 9.27), and without, it would start itself
    # anew for each of its jobs, and workers with it
    workflow.execution_settings.use_threads = True
    return "gpu_cells" if study.cost(w.cell).place == "gpu" else "cells"


@cache
def announce():
    """Says what is ahead, at the speed of this machine; once."""
    print(
        study.ahead(WORKERS.run("speed", "speed", f"{study.results}/logs/speed.log", {})),
        file=sys.stderr,
    )


def work(job, name, input, output, params, log, threads=1, resources={}, **more):
    """Hands a job to a warm worker, and waits for its end."""
    files = {"inputs": list(input), "outputs": list(output)}
    arguments = {"name": name, **files, **dict(params.items()), **more}
    try:
        if job == "train":
            with LOCK:
                announce()
        WORKERS.run(job, name, log[0], arguments, threads, bool(resources.get("gpu")))
    except UserError as error:
        raise WorkflowError(str(error)) from None


def ask_again():
    """Has the next run make what failed, where a former result stays in its place.

    Snakemake puts that back as if the job that failed had made it, with the parameters of this job
    and the present time (9.27), and would find nothing to do.
    """
    planned = study.fingerprints
    for failed in workflow.scheduler.failed:
        for job in failed if failed.is_group() else [failed]:
            made = failed.is_group() and all(
                fingerprint_of(Path(file)) == planned.get(file) for file in map(str, job.output)
            )
            if not made:
                workflow.persistence.started(job)


def finish():
    """Writes what Snakemake itself cost, if it ran any job, and lets it end."""
    written = [path.stat().st_mtime for path in Path(study.results, "logs").rglob("*.json")]
    if written and max(written) > STARTED:
        write_record("scheduling", STARTED, Path(study.results, "logs/scheduling.json"))
    # each start of jobs leaves a timer of its rate limit, and Python waits for all of them
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()
