"""The checksum of a stage covers every module that its jobs load."""

import json
import os
import shutil
from pathlib import Path

import pytest
from test_outside import CELL, FILES, install
from test_provenance import CHOICES, STAGES

from neuralrace.results import provenance
from warm_python import PYTHON

pytestmark = pytest.mark.workflow

NOTING = """
import json, sys, types

import psutil

def memory_info(process):  # which a worker asks for after each job
    files = [getattr(m, "__file__", None) for m in list(sys.modules.values())]
    request = sys._getframe(2).f_locals["request"]
    with open({path!r}, "a") as noted:
        print(json.dumps([request["job"], request["name"], [f for f in files if f]]), file=noted)
    return types.SimpleNamespace(rss=10**12)  # so much that the worker is replaced

if "neuralrace.workflow.worker" in sys.orig_argv:
    psutil.Process.memory_info = memory_info
"""
"""Site customisation: workers log all modules that they have loaded, and run one job only."""

COVERED = """
import json, sys
from neuralrace.results.provenance import code_files
from neuralrace.extensions.registry import FIGURES
from neuralrace.workflow.study import Study

study = Study({}, [])
cell = sys.argv[1]
parts = study.specifications(cell)
runs = study.variants["blind"]["deep_linear/time_to_learn"]
more = {
    "train": parts["trajectory"].modules,
    "solve": parts["theory"].modules,
    "measure": parts["metrics"].modules,
    "draw": [FIGURES["paper/journey"].module],
    "variants": {m for c in runs.values() for m in c.modules},
}
stages = sys.argv[2:]
print(json.dumps({s: [str(f) for f in code_files(s, more.get(s, ()))] for s in stages}))
"""

CHECKED = "paper/experiment/main"
OF_CELLS = ("train", "solve", "measure")
TARGETS = (
    "results/metrics.csv",
    "results/claims.md",
    "figures/paper/journey.png",
    "figures/paper/experiment/main.png",
    "results/benchmark.md",
    "figures/benchmark/board.png",
    "results/blind.json",
)
"""Files whose jobs and those before them are of all stages."""
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
    noted = tmp_path / "loaded.jsonl"
    install(outside, {**FILES, "sitecustomize.py": NOTING.format(path=str(noted))})
    # few cells, as each job has a worker of its own
    workspace.configure("deep_linear", {"time_to_learn": workspace.deep["time_to_learn"]})
    shutil.rmtree(workspace.path / "config/layer_dynamics")
    workspace.configure("paper", {"experiment": CELL})
    workspace.configure("benchmark", {"spiral_one": CELL | {"metrics": ["theory_scores"]}})
    workspace.claims("paper")
    (workspace.path / "config/benchmark/findings.yaml").write_text("findings: []\n")
    paths = (workspace.path / "src", outside)
    environment = workspace.environment() | {"PYTHONPATH": os.pathsep.join(map(str, paths))}

    def run(*command):
        done = PYTHON.run(command, workspace.path, environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    covered = json.loads(run("-c", COVERED, CHECKED, *STAGES))
    run("-m", "snakemake", *TARGETS, "--cores", "1")
    loaded = {stage: set[str]() for stage in STAGES}
    for line in noted.read_text().splitlines():
        stage, name, files = json.loads(line)
        # `speed` computes no result; other cells name other modules
        if stage in STAGES and (stage not in OF_CELLS or name == CHECKED):
            loaded[stage] |= relative(files)
        if stage == "judge":  # to import it takes as long as to judge
            assert not [file for file in files if "site-packages/scipy/stats/" in file]
    for stage, files in loaded.items():
        assert f"neuralrace/workflow/{stage}.py" in files, f"no job of {stage} ran"
        assert "neuralrace/training/environment.py" in files
        assert "neuralrace/workflow/worker.py" in relative(covered[stage])
        missing = files - relative(covered[stage]) - UNNAMED - UNCOVERED
        assert not missing, f"{stage}: loaded, but not in its checksum: {sorted(missing)}"
