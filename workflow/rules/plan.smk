# What there is to do, where results go, and what of them is outdated.
import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cache, partial, reduce
from pathlib import Path

from snakemake.exceptions import WorkflowError

from neuralrace.atomic import write_text
from neuralrace.claims.blind import blind_cells
from neuralrace.claims.plan import needed_cells
from neuralrace.claims.spec import read_claims
from neuralrace.errors import UserError
from neuralrace.figures import inputs
from neuralrace.figures.caption import caption
from neuralrace.figures.plan import shown
from neuralrace.forked import call
from neuralrace.job import write_record
from neuralrace.plan import laid_over, papers, read_file, read_plan
from neuralrace.provenance import code_sha256
from neuralrace.registry import FIGURES
from neuralrace.schedule import announced, groups, keys, outdated
from neuralrace.seal import sha256
from neuralrace.spec import Ensemble, SolvedEnsemble

STARTED = time.time()
PAPERS = list(map(str, papers()))
CLAIMS = list(map(str, papers("claims.yaml")))


class Files(Mapping):
    """Content of configuration files by name, read when it is asked for."""

    def __init__(self, names):
        self.names = list(map(str, names))

    def __getitem__(self, name):
        return read_file(Path(name))

    def __iter__(self):
        return iter(self.names)

    def __len__(self):
        return len(self.names)


@contextmanager
def refusing():
    """What the user is to mend ends Snakemake with that message alone, before anything runs."""
    try:
        yield
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


@refusing()
def load_plan():
    """The plan, and the files that it comes from, strongest last."""
    files = Files([*PAPERS, *workflow.overwrite_configfiles])
    # not by Snakemake's loader, which would run what a file tells it to; what was given on the
    # command line comes last
    config.update(reduce(laid_over, [*files.values(), config]))
    return read_plan(config, files), files


PLAN, FILES = load_plan()
RESULTS = PLAN.results
GALLERY = "figures" if RESULTS == "results" else f"{RESULTS}/figures"


# the folder of parts and not the cell alone: Snakemake takes a label that ends in many equal widths
# for a wildcard without end
wildcard_constraints:
    folder="[a-z0-9_]+/[a-z0-9_]+/[a-z0-9._-]+/parts",
    part="[a-z0-9_.-]+",


OUTDATED = outdated(Path(RESULTS), PLAN)
JOBS = [group for group in groups(PLAN) if OUTDATED.keys() & group.cells] if OUTDATED else []
# newer than what is there, and an input of what is outdated: that is made again
OVERDUE = f"{RESULTS}/outdated.txt"
if OUTDATED and workflow.is_main_process:
    with refusing():
        write_text("\n".join(OUTDATED) + "\n", OVERDUE)
    print(announced(JOBS), file=sys.stderr)


def parts_of(work):
    """Parts in which a cell is trained in jobs of their own."""
    return list(PLAN.parts(work.cell_id)) if "trajectory" in work.keys else []


@cache
@refusing()
def claims():
    """The claims of all papers; only who asks for them needs them read."""
    return read_claims([Path(name) for name in CLAIMS])


@refusing()
def claimed_metrics(w):
    """Metrics that decide the claims."""
    return [f"{RESULTS}/{cell}/metrics.nc" for cell in needed_cells(claims(), PLAN.cells)]


@cache
@refusing()
def blind_runs():
    """Cells that are run blindly, by experiment and by variant and label."""
    return blind_cells(claims(), PLAN.cells)


def sha256_of(name):
    """Digest of a file that may be absent."""
    path = Path(name)
    return sha256(path) if path.exists() else "absent"


def result_files(files):
    """Result files, each by its cell and kind; theory where there is any."""
    return [
        f"{RESULTS}/{name}/{kind}.nc"
        for name, kind in files
        if kind != "theory" or PLAN.cells[name].solutions
    ]


def cell_files(*kinds):
    """Result files of all cells."""
    return result_files((name, kind) for name in PLAN.cells for kind in kinds)


@cache
@refusing()
def figure_cells(figure):
    """Cells that a figure shows."""
    return shown(figure, PLAN.cells, FILES)


def figure_data(figure, w):
    """Result files that a figure is drawn from."""
    return result_files(inputs(figure, figure_cells(figure)))


def gallery(paper="*"):
    """Every figure of a paper."""
    return [f"{GALLERY}/{name}.png" for name in FIGURES if fnmatch(name, f"{paper}/*")]


def drawn(*arguments):
    """Draws a figure in a fork of a process that has imported what it takes."""
    os.environ["MPLBACKEND"] = "agg"  # nothing is shown, whatever a person has it shown by
    try:
        call("neuralrace.figures.save", "draw", *arguments)
    except UserError as error:
        raise WorkflowError(str(error)) from None


def write_own_cost():
    """Core-seconds of this process beside those of the jobs, if it had any."""
    written = [path.stat().st_mtime for path in Path(RESULTS, "logs").glob("*.json")]
    if written and max(written) > STARTED:
        write_record("scheduling", STARTED, f"{RESULTS}/logs/scheduling.json")
