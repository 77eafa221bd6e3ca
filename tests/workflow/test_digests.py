"""The checksum of a stage covers every module that its jobs load."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_outside import CELL, FILES, install
from test_provenance import CHOICES, STAGES

from neuralrace.results import provenance

pytestmark = pytest.mark.workflow

NOTING = """
import gc, json, os, sys

freeze = gc.freeze

def note():  # after each job of a worker
    files = [getattr(m, "__file__", None) for m in list(sys.modules.values())]
    with open(os.environ["LOADED"], "a") as noted:
        print(json.dumps([f for f in files if f]), file=noted)
    freeze()

gc.freeze = note
"""
"""Site customisation that makes workers log the files of all modules that they have loaded."""

COVERED = """
import json, sys
from neuralrace.results.provenance import code_files
from neuralrace.extensions.registry import FIGURES
from neuralrace.workflow.study import Study

study = Study({}, [])
cell = "paper/experiment/main"
parts = study.specifications(cell)
runs = study.variants["blind"]["deep_linear/time_to_learn"]
more = {
    "train": parts["trajectory"].modules,
    "solve": parts["theory"].modules,
    "measure": parts["metrics"].modules,
    "draw": [FIGURES["paper/journey"].module],
    "variants": {m for c in runs.values() for m in c.modules},
}
stages = sys.argv[1:]
print(json.dumps({s: [str(f) for f in code_files(s, more.get(s, ()))] for s in stages}))
"""

FOLDER = "results/paper/experiment/main"
TARGETS = {
    "train": [f"{FOLDER}/trajectory.nc"],
    "solve": [f"{FOLDER}/theory.nc"],
    "measure": [f"{FOLDER}/metrics.nc"],
    "tabulate": ["metrics", "--until", "measure", "tabulate"],
    "judge": ["claims", "--until", "measure", "judge"],
    "draw": ["figures/paper/journey.png"],
    "plot": ["figures/paper/experiment/main.png"],
    "board": ["results/benchmark.md"],
    "draw_board": ["figures/benchmark/board.png"],
    "variants": ["results/variants/blind/deep_linear/time_to_learn/failed.json"],
    "judge_variants": ["results/blind.json"],
}
"""Targets that run a stage, once its inputs exist."""
BEFORE = {"tabulate": ["cells"]}
"""Targets to run first, so that no job of another stage runs in the same worker."""

UNCOVERED = {
    # imports its submodules lazily, for interactive use
    "neuralrace/__init__.py",
    # measures the speed of the machine before the first training, and computes no result
    "neuralrace/workflow/speed.py",
    # imported by `find_spec` of a subpackage; holds a docstring only
    "neuralrace/theory/__init__.py",
}
# Loaded to list the choices of a configuration; those that a cell names are in its checksum.
CHOSEN = ("datasets", "networks", "training/optimisers")
UNNAMED = {
    f"neuralrace/{place}"
    for file in provenance._together(frozenset(CHOICES))
    if (place := file.relative_to(provenance.ROOT).as_posix()).startswith(CHOSEN)
    and not place.startswith("networks/tasks/")
}
UNNAMED |= {f"outside/{name}.py" for name in ("__init__", "datasets/__init__", "datasets/spiral")}


def relative(files):
    """Files of the library and of the package that extends it, relative to their parent."""
    places = set()
    for file in map(Path, files):
        for package in ("neuralrace", "outside"):
            if package in file.parts[:-1] and "site-packages" not in file.parts:
                place = len(file.parts) - 1 - file.parts[::-1].index(package)
                places.add("/".join(file.parts[place:]))
    return places


def test_every_module_that_a_job_loads_is_in_the_checksum_of_its_stage(workspace, tmp_path):
    outside = tmp_path / "extension"
    install(outside, {**FILES, "sitecustomize.py": NOTING})
    workspace.configure("paper", {"experiment": CELL})
    workspace.configure("benchmark", {"spiral_one": CELL | {"metrics": ["theory_scores"]}})
    workspace.claims("paper")
    (workspace.path / "config/benchmark/findings.yaml").write_text("findings: []\n")
    paths = (workspace.path / "src", outside)
    noted = tmp_path / "loaded.jsonl"
    environment = workspace.environment() | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)), "LOADED": str(noted)
    }  # fmt: skip

    def run(*command):
        done = subprocess.run(
            [sys.executable, *command], cwd=workspace.path, env=environment, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    covered = json.loads(run("-c", COVERED, *STAGES))
    for stage in STAGES:
        for targets in (BEFORE.get(stage, []), TARGETS[stage]):
            noted.unlink(missing_ok=True)
            if targets:
                run("-m", "snakemake", *targets, "--cores", "1")
        loaded = set[str]()
        for line in noted.read_text().splitlines():
            loaded |= relative(json.loads(line))
        own = f"neuralrace/workflow/{stage}.py"
        assert own in loaded
        assert "neuralrace/training/environment.py" in loaded
        assert "neuralrace/workflow/worker.py" in relative(covered[stage])
        missing = loaded - relative(covered[stage]) - UNNAMED - UNCOVERED
        assert not missing, f"{stage}: loaded, but not in its checksum: {sorted(missing)}"
