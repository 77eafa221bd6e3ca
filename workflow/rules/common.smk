# The configuration, and what rules take their inputs, parameters and resources from.
import json
import os
import re
import sys
import threading
import time
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cache, reduce
from math import inf
from pathlib import Path

from snakemake.exceptions import WorkflowError

from neuralrace.claims.blind import blind_cells
from neuralrace.claims.plan import needed_cells
from neuralrace.claims.spec import read_claims
from neuralrace.cost import cost_of
from neuralrace.errors import UserError
from neuralrace.figures import inputs
from neuralrace.figures.caption import caption
from neuralrace.figures.plan import shown
from neuralrace.plan import laid_over, papers, read_file, read_plan
from neuralrace.provenance import code_sha256
from neuralrace.registry import FIGURES
from neuralrace.seal import fingerprint, sha256
from neuralrace.workflow.job import write_record
from neuralrace.workflow.recovery import claim, sweep
from neuralrace.workflow.stages import code, fingerprints, specifications, unmade
from neuralrace.workflow.workers import Workers

STARTED = time.time()
PAPERS = list(map(str, papers()))
CLAIMS = list(map(str, papers("claims.yaml")))
WORKERS = Workers()


# Configuration -----------------------------------------------------------------------------------


@contextmanager
def refusing():
    """Shows an error of the user's as one message, before anything runs."""
    try:
        yield
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


@refusing()
def load():
    """The validated configuration, and the files that it comes from, strongest last."""
    files = {name: read_file(Path(name)) for name in map(str, [*PAPERS, *workflow.configfiles])}
    # read by ourselves: Snakemake's loader runs what a file tells it to, and knows no origin of a
    # value; what was given on the command line comes last
    config.update(reduce(laid_over, [*files.values(), config]))
    return read_plan(config, files), files


@refusing()
def refuse_another_plan():
    """Refuses to compute anything but what was planned, on a machine that plans anew."""
    cells = [fingerprints(cell, spec) for cell, spec in PLAN.cells.items()]
    planned = f"{os.getpid()} {fingerprint(*(key for kinds in cells for key in kinds.values()))}"
    process, _, digest = os.environ.setdefault("NEURALRACE_PLANNED", planned).partition(" ")
    if planned != f"{os.getpid()} {digest}" and process != str(os.getpid()):
        raise UserError(
            "configuration or code were changed after this run was planned; let it end, and run "
            "the same command again"
        )


PLAN, FILES = load()
RESULTS = PLAN.results
GALLERY = "figures" if RESULTS == "results" else f"{RESULTS}/figures"
refuse_another_plan()


pathvars:
    results=RESULTS,
    figures=GALLERY,


wildcard_constraints:
    cell="|".join(map(re.escape, PLAN.cells)) or "none",
    paper="|".join(sorted({name.split("/")[0] for name in FIGURES})),
    figure="|".join(sorted({name.split("/")[1] for name in FIGURES})),
    experiment="[a-z0-9_]+/[a-z0-9_]+",


# Cells -------------------------------------------------------------------------------------------


@cache
def specification(cell, kind):
    """The part of a cell's specification that fixes one of its files."""
    return specifications(PLAN.cells[cell])[kind]


def spec_of(kind):
    """Parameter: specification of a file."""
    return lambda w: specification(w.cell, kind).canonical()


def code_of(kind):
    """Parameter: digest of the code that computes a file."""
    return lambda w: code(kind, specification(w.cell, kind))


@cache
def cost(cell):
    """Estimated cost of a cell."""
    return cost_of(PLAN.cells[cell], PLAN.gpus_each > 0)


def submission(w):
    """Group of the jobs that a cluster gets as one submission, and one Snakemake there runs."""
    # --force-use-threads does not reach it (Snakemake 9.27), and without, it would start itself
    # anew for each job, and workers with it
    workflow.execution_settings.use_threads = True
    return "cells"


def seconds(*stages):
    """Estimated core-seconds of stages of a cell."""
    return lambda w: sum(getattr(cost(w.cell), stage) for stage in stages)


def minutes(amount):
    """Minutes to ask a cluster for, twice as many at each attempt; nodes may be slow."""
    return lambda w, attempt: (1 + int(4 * amount(w) / 60)) * 2 ** (attempt - 1)


def memory(w, attempt):
    """Megabytes to ask a cluster for, twice as many at each attempt."""
    return min(2 * cost(w.cell).memory_mb * 2 ** (attempt - 1), PLAN.memory_mb or inf)


def result_files(files):
    """Paths of result files by cell and kind; theory where there is any."""
    return [f"{RESULTS}/{c}/{k}.nc" for c, k in files if k in specifications(PLAN.cells[c])]


def all_metrics():
    """Cell and kind of all metrics."""
    return [(cell, "metrics") for cell in PLAN.cells]


def digests_of(cells):
    """Digest of the specification of each file of cells."""
    return {
        cell: {kind: part.sha256() for kind, part in specifications(PLAN.cells[cell]).items()}
        for cell in cells
    }


# Figures and claims ------------------------------------------------------------------------------


@cache
@refusing()
def figure_cells(figure):
    """Cells that a figure shows."""
    return shown(figure, PLAN.cells, FILES)


def figure_files(w):
    """Result files that a figure reads."""
    name = f"{w.paper}/{w.figure}"
    return result_files(inputs(name, figure_cells(name)))


def gallery(paper="*"):
    """The pictures of all figures, or of those of a paper."""
    return [f"{GALLERY}/{name}.png" for name in FIGURES if fnmatch(name, f"{paper}/*")]


@cache
@refusing()
def claims():
    """The claims of all papers; only who asks for them needs them read."""
    return read_claims([Path(name) for name in CLAIMS])


@refusing()
def claimed():
    """Metrics that decide the claims."""
    return result_files((cell, "metrics") for cell in needed_cells(claims(), PLAN.cells))


@cache
@refusing()
def blind_runs():
    """Cells of the robustness runs, by experiment and by variant and label."""
    return blind_cells(claims(), PLAN.cells)


def blind_seconds(w):
    """Estimated core-seconds of the robustness runs of an experiment."""
    return sum(cost_of(cell).seconds() for cell in blind_runs()[w.experiment].values())


# Jobs --------------------------------------------------------------------------------------------


@cache
def announce():
    """Tells what is estimated to be ahead, at the speed of this machine."""
    todo = unmade(Path(RESULTS), PLAN.cells)
    factor = WORKERS.run("speed", "speed", f"{RESULTS}/logs/speed.log", {})
    programs, core_seconds = set(), 0.0
    for cell in todo:
        core_seconds += cost(cell).seconds(programs)
        programs.add(cost(cell).program)
    print(
        f"{len(todo)} of {len(PLAN.cells)} cells are to be computed or finished: about "
        f"{core_seconds * factor / 60:.0f} core-minutes on this machine",
        file=sys.stderr,
    )


ANNOUNCING = threading.Lock()


def work(job, name, log, threads=1, gpu=0, **arguments):
    """Hands a job to a warm worker, and waits for its end."""
    try:
        if job in ("train", "solve"):
            with ANNOUNCING:
                announce()
        WORKERS.run(job, name, str(log), arguments, threads, bool(gpu))
    except UserError as error:
        raise WorkflowError(str(error)) from None


def outputs():
    """All files that the workflow writes."""
    cells = [f"{RESULTS}/{cell}/{kind}.nc" for cell in PLAN.cells for kind in specifications(PLAN.cells[cell])]
    pictures = [str(Path(png).with_suffix(kind)) for png in gallery() for kind in (".png", ".pdf", ".svg")]
    slim = [f"{GALLERY}/slim/{name}.png" for name in FIGURES]
    return [*cells, *pictures, *slim, f"{RESULTS}/metrics.csv", *TABLES]


def finish():
    """Writes what Snakemake itself cost, if it ran any job, and lets it end."""
    written = [path.stat().st_mtime for path in Path(RESULTS, "logs").rglob("*.json")]
    if written and max(written) > STARTED:
        write_record("scheduling", STARTED, Path(RESULTS, "logs/scheduling.json"))
    # each start of jobs leaves a timer of its rate limit, and Python waits for all of them
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()
