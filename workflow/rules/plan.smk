# What there is to do: the plan of the configuration, and that of its smoke version.
import json
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import contextmanager
from copy import deepcopy
from fnmatch import fnmatch
from functools import cache, partial
from pathlib import Path

from snakemake.common.configfile import load_configfile
from snakemake.exceptions import WorkflowError
from snakemake.utils import update_config

from neuralrace.atomic import write_text
from neuralrace.claims.blind import blind_cells
from neuralrace.claims.plan import needed_cells
from neuralrace.claims.spec import read_claims
from neuralrace.errors import UserError
from neuralrace.figures import inputs
from neuralrace.figures.plan import shown
from neuralrace.forked import call
from neuralrace.plan import read_plan
from neuralrace.provenance import code_sha256
from neuralrace.registry import FIGURES
from neuralrace.schedule import groups, keys, outdated
from neuralrace.seal import sha256
from neuralrace.spec import Ensemble, SolvedEnsemble

STARTED = time.time()
CLAIMS = sorted(map(str, Path("config").glob("*/claims.yaml")))


class Files(Mapping):
    """Content of configuration files by name, read when a message is to say where a key stands."""

    def __init__(self, names):
        self.names = list(map(str, names))

    def __getitem__(self, name):
        return load_configfile(name)

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
def load_plans():
    """Plan and files of each results folder: the configuration as given, and at its smoke size."""
    given = workflow.overwrite_configfiles
    own = [name for name in workflow.configfiles if name not in given]
    files = Files([*own, *given])
    plan = read_plan(config, files)
    sizes = Files(sorted(Path("config").glob("*/smoke.yaml")))
    smoke, shrunk = {"experiments": {}}, deepcopy(dict(config))
    for size in sizes.values():
        update_config(smoke, size)
    # an experiment that a file of one's own has set up is not shrunk: the two need not go together
    for name in given:
        for paper, experiments in (files[str(name)].get("experiments") or {}).items():
            for experiment in experiments or {}:
                smoke["experiments"].get(paper, {}).pop(experiment, None)
    update_config(shrunk, smoke)
    smaller = Files([*files, *sizes])
    plans = {"results": plan, "results/smoke": read_plan(shrunk, smaller)}
    if plan.gpu is None:  # whoever plans for other machines says what they have
        here = shutil.which("nvidia-smi") is not None
        plans = {root: plan.model_copy(update={"gpu": here}) for root, plan in plans.items()}
    return plans, {"results": files, "results/smoke": smaller}


PLANS, FILES = load_plans()


wildcard_constraints:
    root="results(/smoke)?",
    gallery="figures|results/smoke/figures",
    cell="[a-z0-9_]+/[a-z0-9_]+/[a-z0-9._-]+",
    part="[a-z0-9_.-]+",


OUTDATED = {root: outdated(Path(root), plan) for root, plan in PLANS.items()}
OVERDUE = {root: f"{root}/outdated.txt" for root in PLANS}


def exists(root, work):
    """Whether a file that is to be made is there."""
    return any(os.path.exists(f"{root}/{work.cell_id}/{kind}.nc") for kind in work.keys)


# the jobs of a run read the file of the process that plans
if workflow.is_main_process:
    for root, todo in OUTDATED.items():
        if overdue := [cell for cell, work in todo.items() if exists(root, work)]:
            write_text("\n".join(overdue) + "\n", OVERDUE[root])


def parts_of(root, work):
    """Parts in which a cell is trained in jobs of their own."""
    return list(PLANS[root].parts(work.cell_id)) if "trajectory" in work.keys else []


@cache
@refusing()
def claims():
    """The claims of all papers; only who asks for them needs them read."""
    return read_claims([Path(name) for name in CLAIMS])


@refusing()
def claimed_metrics(w):
    """Metrics that decide the claims."""
    cells = needed_cells(claims(), PLANS["results"].cells)
    return [f"results/{cell}/metrics.nc" for cell in cells]


@cache
@refusing()
def blind_runs():
    """Cells that are run blindly, by experiment and by variant and label."""
    return blind_cells(claims(), PLANS["results"].cells)


def sha256_of(name):
    """Digest of a file that may be absent."""
    path = Path(name)
    return sha256(path) if path.exists() else "absent"


def result_files(root, files):
    """Result files, each by its cell and kind; theory where there is any."""
    return [
        f"{root}/{name}/{kind}.nc"
        for name, kind in files
        if kind != "theory" or PLANS[root].cells[name].solutions
    ]


def cell_files(root, *kinds):
    """Result files of all cells."""
    return result_files(root, [(name, kind) for name in PLANS[root].cells for kind in kinds])


def results_of(w):
    """Results folder that a gallery is drawn from."""
    return os.path.dirname(w.gallery) or "results"


@refusing()
def figure_cells(figure, w):
    """Cells that a figure shows."""
    root = results_of(w)
    return shown(figure, PLANS[root].cells, FILES[root])


def figure_data(figure, w):
    """Result files that a figure is drawn from."""
    root = results_of(w)
    return result_files(root, inputs(figure, figure_cells(figure, w)))


def gallery(root, paper="*"):
    """Every figure of a paper, below a gallery folder."""
    return [f"{root}/{name}.png" for name in FIGURES if fnmatch(name, f"{paper}/*")]


def drawn(*arguments):
    """Draws a figure in a fork of a process that has imported what it takes."""
    try:
        call("neuralrace.figures.save", "draw", *arguments)
    except UserError as error:
        raise WorkflowError(str(error)) from None


def write_own_cost():
    """Core-seconds of this process beside those of the jobs, if it had any."""
    written = [path.stat().st_mtime for path in Path("results/logs").glob("*.json")]
    if written and max(written) > STARTED:
        spent = {"stage": "scheduling", "cell": "", "core_seconds": round(time.process_time(), 3)}
        write_text(json.dumps([spent]) + "\n", "results/logs/scheduling.json")
