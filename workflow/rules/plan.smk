# What there is to do, where results go, and what of them is outdated.
import json
import sys
import time
from collections.abc import Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cache, reduce
from math import inf
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
from neuralrace.profile import check, given
from neuralrace.registry import FIGURES
from neuralrace.product import Product
from neuralrace.schedule import (
    announced,
    groups,
    keys,
    on_processors,
    outdated,
    part,
    refuse_another,
)
from neuralrace.seal import sha256
from neuralrace.spec import Ensemble
from neuralrace.stopping import lead
from neuralrace.upkeep import finish, join, prepare

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
    plan = read_plan(config, files)
    if workflow.is_main_process:
        place(plan)
    return plan, files


def place(plan):
    """Sees to it that jobs know where they run, and that no more share a machine than its GPUs."""
    profile = given(sys.argv[1:])
    check(profile)
    if not profile.elsewhere:
        lead()
        if "gpu" not in workflow.global_resources:
            workflow.register_resource("gpu", plan.gpus_each)
    elif plan.gpus is None:
        raise UserError(
            f"{profile.name}: config: gpus: not said, and this machine cannot know what the nodes "
            "have; write gpus=0, or how many each of them has"
        )


PLAN, FILES = load_plan()
RESULTS = PLAN.results
ROOM = PLAN.memory_mb or inf  # no machine has more, whatever a job wants
GALLERY = "figures" if RESULTS == "results" else f"{RESULTS}/figures"


# the folder of parts and not the cell alone: Snakemake takes a label that ends in many equal widths
# for a wildcard without end
wildcard_constraints:
    folder="[a-z0-9_]+/[a-z0-9_]+/[a-z0-9._-]+/parts",
    part="[a-z0-9_.-]+",


OUTDATED = outdated(Path(RESULTS), PLAN)
# in the process of a job, which may be started again after all it is for was made, its rule stays
ASKED = OUTDATED.keys() if workflow.is_main_process else PLAN.cells.keys()
JOBS = [group for group in groups(PLAN) if ASKED & group.cells] if ASKED else []
# newer than what is there, and an input of what is outdated: that is made again; it says what was
# planned, and no job makes anything else
OVERDUE = f"{RESULTS}/outdated.json"
TO_MAKE = {cell: dict(work.keys) for cell, work in OUTDATED.items()}
if workflow.is_main_process:
    ALONE = join(Path(".snakemake"))
    if OUTDATED:
        print(announced(len(OUTDATED), JOBS), file=sys.stderr)
else:
    with refusing():
        refuse_another(TO_MAKE, Path(OVERDUE))


@cache
def overdue():
    """Newer than what is there, and an input of what is to be made again."""
    if workflow.is_main_process:
        with refusing():
            # with the time, as Snakemake takes a file of the same content for the same
            content = {"planned": STARTED, "cells": TO_MAKE}
            write_text(json.dumps(content, indent=0) + "\n", OVERDUE)
    return OVERDUE


if OUTDATED:
    overdue()


def to_make():
    """Paths of the result files that are to be made."""
    return [f"{RESULTS}/{cell}/{kind}.nc" for cell, kinds in TO_MAKE.items() for kind in kinds]


@cache
def wanted(cell):
    """Keys of the files of a cell as they are to be made, by kind."""
    return keys(cell, PLAN.cells[cell])


def grown(amount, most=inf):
    """What a job asks for: each attempt twice as much as the last, which may have failed for want.

    `amount` is a number, or a function of wildcards that tells it.
    """
    first = amount if callable(amount) else lambda wildcards: amount
    return lambda wildcards, attempt: min(first(wildcards) * 2 ** (attempt - 1), most)


def cell_of(w):
    """The cell of a part, by the folder that its parts lie in."""
    return str(Path(w.folder).parent)


@cache
def part_of(cell):
    """The job of each part of a cell that is trained in parts."""
    return part(PLAN, cell)


@cache
def blind_job(experiment):
    """The job that runs an experiment blindly."""
    return on_processors(experiment, blind_runs()[experiment])


def parts_of(work):
    """Parts in which a cell is trained in jobs of their own."""
    return list(PLAN.parts(work.cell_id)) if "trajectory" in work.keys else []


@cache
@refusing()
def claims():
    """The claims of all papers; only who asks for them needs them read."""
    return read_claims([Path(name) for name in CLAIMS])


@refusing()
def claimed():
    """Cell and kind of the files that decide the claims."""
    return [(cell, "metrics") for cell in needed_cells(claims(), PLAN.cells)]


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
    """Paths of result files, each given by its cell and kind; theory where there is any."""
    return [f"{RESULTS}/{cell}/{kind}.nc" for cell, kind in files if kind in wanted(cell)]


def cell_files(*kinds):
    """Cell and kind of the result files of all cells."""
    return [(cell, kind) for cell in PLAN.cells for kind in kinds]


@cache
@refusing()
def figure_cells(figure):
    """Cells that a figure shows."""
    return shown(figure, PLAN.cells, FILES)


def gallery(paper="*"):
    """Every figure of a paper."""
    return [f"{GALLERY}/{name}.png" for name in FIGURES if fnmatch(name, f"{paper}/*")]


def product(seal, files, stage, *said, modules=()):
    """What is made from result files, each given by its cell and kind, as it is planned."""
    return Product(
        seal=seal,
        root=RESULTS,
        inputs={f"{c}/{kind}.nc": wanted(c)[kind] for c, kind in files if kind in wanted(c)},
        stage=stage,
        modules=tuple(modules),
        code=code_sha256(stage, modules),
        said=said,
    )


@cache
def figure(name):
    """A figure."""
    return product(
        f"{GALLERY}/{name}.sha256",
        inputs(name, figure_cells(name)),
        "draw",
        name,
        caption(name, PLAN.cells),
        modules=[FIGURES[name].module],
    )


@cache
def judged():
    """The tables of claims and findings."""
    files = map(sha256_of, [*CLAIMS, f"{RESULTS}/blind.json"])
    return product(f"{RESULTS}/claims.sha256", claimed(), "judge", *files, *PLAN.cells)


@cache
def tabulated():
    """The table of all metrics."""
    return product(f"{RESULTS}/metrics.csv.sha256", cell_files("metrics"), "tabulate")


def again(made):
    """An input of a product that is not as its seal says, or not what is asked for; or none."""
    return [] if made.current else [overdue()]


def drawn(*arguments):
    """Draws a figure in a fork of a process that has imported what it takes."""
    try:
        call("neuralrace.figures.save", "draw", *arguments)
    except UserError as error:
        raise WorkflowError(str(error)) from None


def write_own_cost():
    """Core-seconds of this process beside those of the jobs, if it had any."""
    written = [path.stat().st_mtime for path in Path(RESULTS, "logs").glob("*.json")]
    if written and max(written) > STARTED:
        write_record("scheduling", STARTED, f"{RESULTS}/logs/scheduling.json")
